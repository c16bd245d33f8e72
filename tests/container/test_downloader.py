from __future__ import annotations

import base64
import hashlib
import io
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.container.image_choices import FOLDERS
from ironcurtain.container.versions import read_answer
from tests.programs import program

NPM = """\
#!/bin/sh
# In npm's place: knows one package, in the releases that the test gives.
set -eu
echo "$@" >>"$HERE/asked"
case "$1 $*" in
    "pack "*) [ "${6-}" = "@s/agent@1.2.3" ] || { echo "npm ERR! code E404" >&2; exit 1; }
              cp "$HERE/agent.tgz" ./s-agent-1.2.3.tgz && echo s-agent-1.2.3.tgz ;;
    *" agent-broken "*) echo "npm ERR! network" >&2; exit 1 ;;
    *"--json @s/agent version"*) echo '"1.2.3"' ;;
    *"--json ranged@1 version"*) printf '[\\n  "1.9.0",\\n  "1.10.0",\\n  "1.2.0"\\n]\\n' ;;
    *" @s/agent-x64@1.2.3 dist.integrity"*) echo sha512-x64 ;;
    *" ranged@1.10.0 dist.integrity"*) echo sha512-ranged ;;
    *" broken@1.2.3 dist.integrity"*) echo "npm ERR! code ECONNRESET" >&2; exit 1 ;;
    *) echo "npm ERR! code E404" >&2; exit 1 ;;
esac
"""

CURL = """\
#!/bin/sh
# In curl's place: one page that leads on, and one archive.
set -eu
for word in "$@"; do
    [ "${before-}" != --output ] || output=$word
    before=$word
done
case $word in
    */releases/latest) printf %s https://example.org/agent/releases/tag/v4.5.6 ;;
    */v4.5.6/agent.tar.bz2) cp "$HERE/agent.tgz" "$output" ;;
    *) echo "curl: (22) 404" >&2; exit 22 ;;
esac
"""


class Case(SynchronousTestCase):
    """The programs of the downloader's image, run here with stand-ins for what asks the network."""

    def setUp(self) -> None:
        program("openssl")
        self.here = Path(tempfile.mkdtemp(prefix="ic-"))
        self.addCleanup(shutil.rmtree, self.here)
        for name, text in (("npm", NPM), ("curl", CURL)):
            (self.here / name).write_text(text)
            (self.here / name).chmod(0o755)
        with tarfile.open(self.here / "agent.tgz", "w:gz") as packed:
            entry = tarfile.TarInfo("package/bin/agent")
            entry.size, entry.mode = 5, 0o755
            packed.addfile(entry, io.BytesIO(b"agent"))
        digest = hashlib.sha512((self.here / "agent.tgz").read_bytes()).digest()
        self.integrity = f"sha512-{base64.b64encode(digest).decode()}"

    def run_script(self, name: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a script of the image."""
        environ = {"PATH": f"{self.here}:{os.environ['PATH']}", "HERE": str(self.here), "TMPDIR": str(self.here)}
        line = ["sh", str(FOLDERS / "downloader" / name), *words]
        return subprocess.run(line, env=environ, capture_output=True, text=True, timeout=60, check=False)


class DownloadTests(Case):
    def test_a_package_with_the_right_checksum_is_unpacked(self) -> None:
        done = self.run_script("download", "@s/agent@1.2.3", self.integrity, str(self.here / "out"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual((self.here / "out/bin/agent").read_text(), "agent")

    def test_an_archive_is_unpacked_as_it_is(self) -> None:
        address = "https://example.org/v4.5.6/agent.tar.bz2"
        done = self.run_script("download", address, self.integrity, str(self.here / "out"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual((self.here / "out/package/bin/agent").read_text(), "agent")

    def test_another_checksum_stops_it_before_anything_is_unpacked(self) -> None:
        for package in ("@s/agent@1.2.3", "https://example.org/v4.5.6/agent.tar.bz2"):
            done = self.run_script("download", package, f"sha512-{'A' * 86}==", str(self.here / "out"))
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"has the checksum {self.integrity}, expected sha512-AAA", done.stderr)
            self.assertFalse((self.here / "out").exists())

    def test_what_cannot_be_fetched_stops_it(self) -> None:
        for package in ("@s/agent@9.9.9", "https://example.org/v9/agent.tar.bz2"):
            done = self.run_script("download", package, self.integrity, str(self.here / "out"))
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("404", done.stderr)

    def test_nothing_is_left_behind(self) -> None:
        before = set(self.here.iterdir())
        self.run_script("download", "@s/agent@1.2.3", self.integrity, str(self.here / "out"))
        self.assertEqual({path.name for path in set(self.here.iterdir()) - before}, {"out", "asked"})


class NewestTests(Case):
    def newest(self, *words: str) -> str:
        """:returns: what it prints."""
        done = self.run_script("newest", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_it_says_version_and_checksums(self) -> None:
        said = self.newest("agent", "@s/agent", "amd64=@s/agent-x64@{version}")
        self.assertEqual(said, "newest agent 1.2.3 amd64=sha512-x64\n")
        self.assertIsNotNone(read_answer(said))

    def test_an_architecture_without_a_release_is_left_out(self) -> None:
        said = self.newest("agent", "@s/agent", "arm64=@s/agent-arm64@{version}", "amd64=@s/agent-x64@{version}")
        self.assertEqual(said, "newest agent 1.2.3 amd64=sha512-x64\n")

    def test_of_a_range_it_is_the_highest(self) -> None:
        self.assertEqual(self.newest("r", "ranged@1", "any=ranged@{version}"), "newest r 1.10.0 any=sha512-ranged\n")

    def test_a_page_leads_on_to_the_newest(self) -> None:
        said = self.newest(
            "agent", "https://example.org/releases/latest", "amd64=https://example.org/v{version}/agent.tar.bz2"
        )
        self.assertEqual(said, f"newest agent 4.5.6 amd64={self.integrity}\n")

    def test_it_does_not_guess(self) -> None:
        for words in (
            ("agent", "nosuch", "any=@s/agent-x64@{version}"),
            ("agent", "@s/agent", "any=broken@{version}"),
            ("agent", "https://example.org/nosuch", "any=x@{version}"),
            ("agent", "https://example.org/releases/latest", "any=https://example.org/v{version}/nosuch"),
        ):
            done = self.run_script("newest", *words)
            self.assertNotEqual(done.returncode, 0, words)
            self.assertEqual(done.stdout, "", words)
