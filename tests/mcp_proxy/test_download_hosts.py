"""Which registries an installation reaches."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import Unavailable
from ironcurtain.mcp_proxy.download_hosts import npm_registries, uv_registries
from ironcurtain.registries import npm, pypi


class NpmTests(SynchronousTestCase):
    """What npm says."""

    def setUp(self) -> None:
        self.top = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.top)
        self.npm = self.top / "npm"

    def says(self, script: str) -> str:
        """:returns: the path of a program that answers as npm does."""
        self.npm.write_text(f"#!/bin/sh\n{script}\n")
        self.npm.chmod(0o755)
        return str(self.npm)

    def test_the_configured_registry_is_reached_and_no_other(self) -> None:
        found = npm_registries(self.says("echo https://me:secret@npm.example.com:8443/team/"), "left-pad", {})
        self.assertEqual([entry.text for entry in found.access.entries], ["npm.example.com:8443"])
        self.assertEqual(found.options, ("--registry=https://npm.example.com:8443/team/",))

    def test_a_scope_can_have_a_registry_of_its_own(self) -> None:
        program = self.says("case $3 in @a:*) echo http://10.0.0.5:4873/;; *) echo https://npm.example.com/;; esac")
        found = npm_registries(program, "@a/b", {})
        self.assertEqual([entry.text for entry in found.access.entries], ["npm.example.com:443", "10.0.0.5:4873"])
        self.assertIn("--@a:registry=http://10.0.0.5:4873/", found.options)

    def test_the_configured_authorities_are_trusted(self) -> None:
        ca_file = self.top / "ca.pem"
        program = self.says(f"case $3 in cafile) echo {ca_file};; *) echo https://npm.example.com/;; esac")
        found = npm_registries(program, "left-pad", {})
        self.assertEqual((found.options, found.files), (("--registry=https://npm.example.com/",), ()))
        ca_file.touch()
        found = npm_registries(program, "left-pad", {})
        self.assertEqual(found.options, ("--registry=https://npm.example.com/", f"--cafile={ca_file}"))
        self.assertEqual(found.files, (str(ca_file),))

    def test_npm_that_says_nothing_uses_the_public_registry(self) -> None:
        (entry,) = npm_registries(self.says("exit 1"), "left-pad", {}).access.entries
        self.assertIn(entry.pattern, npm.PUBLIC)

    def test_an_unclear_address_installs_nothing(self) -> None:
        with self.assertRaisesRegex(Unavailable, "unclear"):
            npm_registries(self.says("echo 'https://a.example b.example/'"), "left-pad", {})


class UvTests(SynchronousTestCase):
    """What uv reads."""

    def setUp(self) -> None:
        self.home = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.home)
        (self.home / ".config" / "uv").mkdir(parents=True)
        self.file = self.home / ".config" / "uv" / "uv.toml"

    def hosts(self, **environ: str) -> list[str]:
        """:returns: what an installation reaches."""
        return [entry.text for entry in uv_registries({"HOME": str(self.home), **environ}).access.entries]

    def test_without_configuration_the_public_index_and_its_files(self) -> None:
        self.assertEqual(self.hosts(), [f"{pypi.INDEX}:443", f"{pypi.FILES}:443"])

    def test_variables_and_files_name_others(self) -> None:
        self.assertEqual(self.hosts(UV_DEFAULT_INDEX="https://a.example/simple"), ["a.example:443"])
        self.file.write_text('index-url = "https://b.example:444/x"\nextra-index-url = ["http://c.example/y"]\n')
        self.assertEqual(self.hosts(), ["b.example:444", "c.example:80"])
        more = self.hosts(UV_INDEX="mine=https://d.example/z")
        self.assertEqual(more, ["b.example:444", "d.example:443", "c.example:80"])
        first, second = 'url = "https://e.example/x"\ndefault = true', 'url = "https://f.example/"'
        self.file.write_text(f"[[index]]\n{first}\n[[index]]\n{second}\n")
        self.assertEqual(self.hosts(), ["e.example:443", "f.example:443"])

    def test_passwords_are_not_passed_on(self) -> None:
        found = uv_registries({"UV_DEFAULT_INDEX": "https://me:secret@a.example/simple"})
        self.assertEqual((found.variables or {})["UV_DEFAULT_INDEX"], "https://a.example/simple")
