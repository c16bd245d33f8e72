"""How pip's settings are told to uv, and who installs in the end."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.package import installer


class TranslationTests(SynchronousTestCase):
    def assert_translated(self, settings: str, expected: dict[str, str] | None) -> None:
        wanted = None if expected is None else {"UV_INDEX_STRATEGY": "unsafe-best-match", **expected}
        self.assertEqual(installer.translated(settings), wanted)

    def test_indexes_files_and_certificates(self) -> None:
        self.assert_translated(
            "global.cert='/ca.pem'\nglobal.constraint='/c.txt'\nglobal.extra-index-url='\\nhttps://a\\nhttps://b'\n"
            "global.find-links='/w /v'\nglobal.index-url='https://mirror/simple'\nglobal.trusted-host='mirror'\n",
            {
                "SSL_CERT_FILE": "/ca.pem",
                "UV_CONSTRAINT": "/c.txt",
                "UV_INDEX": "https://a https://b",
                "UV_FIND_LINKS": "/w,/v",
                "UV_DEFAULT_INDEX": "https://mirror/simple",
                "UV_INSECURE_HOST": "mirror",
            },
        )

    def test_variables_count_before_the_section_and_that_before_the_global_one(self) -> None:
        lines = ["install.index-url='https://b'", ":env:.index-url='https://c'", "global.index-url='https://a'"]
        self.assert_translated("\n".join(lines), {"UV_DEFAULT_INDEX": "https://c"})
        self.assert_translated("\n".join([lines[0], lines[2]]), {"UV_DEFAULT_INDEX": "https://b"})

    def test_what_has_no_counterpart_leaves_it_to_pip(self) -> None:
        for line in ("global.no-index='1'", ":env:.require-hashes='true'", "install.target='/t'", "global.proxy='p'"):
            self.assert_translated(line, None)

    def test_what_changes_nothing_or_concerns_other_commands(self) -> None:
        self.assert_translated(":env:.user='0'\nglobal.quiet='1'\ndownload.no-index='1'\nnot a setting\n", {})


class UvTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.place = Path(tempfile.mkdtemp(prefix="ic-"))
        self.addCleanup(shutil.rmtree, self.place)
        self.uv = self.place / "uv"

    def write(self, status: int) -> None:
        self.uv.write_text(f'#!/bin/sh\nprintf "%s\\n" "$UV_DEFAULT_INDEX" "$@" >{self.place}/said\nexit {status}\n')
        self.uv.chmod(0o755)

    def installs(self, **environ: str) -> bool:
        given = {"HOME": str(self.place), "PATH": "/usr/bin:/bin", "PIP_CONFIG_FILE": "/dev/null", **environ}
        return installer.uv_installs(self.uv, ["--no-deps", "six"], given)

    def test_it_is_told_the_index_and_the_words(self) -> None:
        self.write(0)
        self.assertTrue(self.installs(PIP_INDEX_URL="https://mirror/simple"))
        said = (self.place / "said").read_text().splitlines()
        self.assertEqual((said[:3], said[-2:]), (["https://mirror/simple", "pip", "install"], ["--no-deps", "six"]))

    def test_its_own_variable_counts_before_those_of_pip(self) -> None:
        self.write(0)
        self.assertTrue(self.installs(PIP_INDEX_URL="https://mirror/simple", UV_DEFAULT_INDEX="https://own"))
        self.assertEqual((self.place / "said").read_text().splitlines()[0], "https://own")

    def test_one_that_fails_is_absent_or_could_not_do_the_same_leaves_it_to_pip(self) -> None:
        self.assertFalse(self.installs())
        self.write(1)
        self.assertFalse(self.installs())
        self.write(0)
        self.assertFalse(self.installs(PIP_NO_INDEX="1"))
