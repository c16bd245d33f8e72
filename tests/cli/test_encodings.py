"""Output to terminals and pipes with other encodings, and to places that take none."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from ironcurtain.sandbox.spec import Kind, Sandbox
from tests.machine import demand_sandbox
from tests.product import LIMIT, Product

ASCII = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
"""The locale in which the least can be written."""

UNTOUCHED = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
"""Python leaves this one as it is, if nobody tells it otherwise."""

LOCALES = (
    UNTOUCHED,
    {"LC_ALL": "C"},
    {"LC_ALL": "POSIX"},
    {"LC_ALL": "", "LANG": "C", "PYTHONIOENCODING": "latin-1"},
    ASCII,
    {"LC_ALL": "xx_XX.ISO-8859-15"},
    {"PYTHONIOENCODING": "no-such-encoding"},
)


class Case(SynchronousTestCase):
    def setUp(self) -> None:
        self.product = Product()
        self.addCleanup(lambda: self.assertEqual(self.product.close(), []))
        self.product.project = self.product.person / "gr\u00fc\u00dfe \u4e16"
        self.product.project.mkdir()
        script = self.product.script(
            {
                "code": 'filesystem.write_file(path="\u4e16.txt", content="\u00fc")\n'
                'print(filesystem.list_directory(path="."))'
            },
            {"text": "fertig \u2713 \u4e16"},
        )
        self.commands = (
            ("start", "--backend", script, "--workspace", ".", "tu es \u2713"),
            ("audit", "show", "last"),
            ("logs", "last"),
            ("report",),
            ("diff", "last"),
            ("sessions",),
            ("loop", "-n", "1", "-p", "x", "--", "printf", "\u4e16"),
            ("config", "show"),
            ("--help",),
        )

    def run_command(self, *words: str, environ: dict[str, str], **how: Any) -> subprocess.CompletedProcess[bytes]:
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how}
        command = self.product.command(*words)
        given = {**self.product.environ, **environ}
        return subprocess.run(command, env=given, cwd=self.product.project, timeout=LIMIT, check=False, **streams)


class EncodingTests(Case):
    def test_no_command_fails_in_another_encoding(self) -> None:
        """One program chooses the encoding for all commands, so each is tried with what the least can be written in."""
        for environ in LOCALES:
            session, *others = self.commands  # the first one's environment reaches sandboxes and servers as well
            for words in self.commands if environ is ASCII else [session] if environ is UNTOUCHED else others[:1]:
                done = self.run_command(*words, environ=environ)
                self.assertEqual(
                    (done.returncode in (0, 3), done.stderr.count(b"Traceback")), (True, 0), (environ, words)
                )
            self.assertEqual((self.product.project / "\u4e16.txt").read_text(), "\u00fc")

    def test_terminal_of_another_encoding_gets_its_own_and_escapes(self) -> None:
        if not (compiler := shutil.which("localedef")) or not Path("/usr/share/i18n/locales/en_US").exists():
            raise SkipTest("needs localedef and its sources")
        places = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, places)
        made = [compiler, "-i", "en_US", "-f", "ISO-8859-1", f"{places}/en_US.ISO-8859-1"]
        subprocess.run(made, capture_output=True, timeout=LIMIT, check=False)
        environ = {"LOCPATH": places, "LC_ALL": "en_US.ISO-8859-1"}
        # The session's environment reaches sandboxes and servers; every other command is tried in an ASCII locale.
        for words in self.commands[:2]:
            done = self.run_command(*words, environ=environ)
            self.assertEqual((done.returncode in (0, 3), done.stderr.count(b"Traceback")), (True, 0), words)
        done = self.run_command("start", "--workspace", "\u4e17", environ=environ)
        self.assertIn(b"gr\xfc\xdfe \\u4e16/\\u4e17", done.stderr)
        self.assertTrue((self.product.project / "\u4e16.txt").exists(), "names of files are UTF-8 all the same")

    def test_python_that_takes_names_for_another_encoding_is_refused(self) -> None:
        environ = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
        beside = str(Path(sys.executable).parent / "twistd")
        for command in ([sys.executable, "-m", "ironcurtain.cli", "sessions"], [beside, "-n", "ironcurtain"]):
            done = subprocess.run(
                command, env={**self.product.environ, **environ}, cwd=Path(__file__).parents[2],
                capture_output=True, timeout=LIMIT, check=False,
            )  # fmt: skip
            self.assertIn(b"set PYTHONUTF8=1", done.stderr)
            self.assertEqual((done.returncode, done.stderr.count(b"Traceback")), (64, 0))


class UnwritableTests(Case):
    def test_a_closed_stream_is_none_of_the_descriptors_of_a_sandbox(self) -> None:
        demand_sandbox(Sandbox(kind=Kind.LANDLOCK))
        line = ["sh", "-c", 'exec "$@" 2>&-', "sh", *self.product.command(*self.commands[0])]
        environ = {**self.product.environ, "IRONCURTAIN_SANDBOX_KIND": "landlock"}
        done = subprocess.run(
            line, env=environ, cwd=self.product.project, stdout=subprocess.PIPE, timeout=LIMIT, check=False
        )
        self.assertEqual((done.returncode, done.stdout.decode()), (0, "fertig \u2713 \u4e16\n"))

    def test_output_that_cannot_be_written_ends_with_a_message(self) -> None:
        with open("/dev/full", "wb") as full:
            for words in self.commands:
                done = self.run_command(*words, environ={}, stdout=full)
                self.assertNotEqual(done.returncode, 0, words)
                self.assertIn(b"No space left on device", done.stderr, words)
                self.assertEqual(done.stderr.count(b"Traceback") + done.stderr.count(b"Exception ignored"), 0, words)
            for words in self.commands[:2]:  # the message is one for all
                both = self.run_command(*words, environ={}, stdout=full, stderr=full)
                self.assertNotEqual(both.returncode, 0, words)

    def test_closed_streams_are_no_errors(self) -> None:
        """
        They are replaced before a command is known, so one command shows it for each of them.

        A session, which starts servers, and a loop, which starts a program, have the most descriptors to mix up.
        """
        every = "<&- >&- 2>&-"
        session, shown, *others = self.commands
        loop = next(words for words in others if words[0] == "loop")
        for words, *ways in (
            (session, every),
            (shown, ">&-", "2>&-", ">&- 2>&-", every),
            (loop, every),
            (("--help",), every),
        ):
            for closed in ways:
                line = ["sh", "-c", f'exec "$@" {closed}', "sh", *self.product.command(*words)]
                done = subprocess.run(
                    line,
                    env=self.product.environ,
                    cwd=self.product.project,
                    capture_output=True,
                    timeout=LIMIT,
                    check=False,
                )
                self.assertEqual(
                    (done.returncode in (0, 3), done.stderr.count(b"Traceback")), (True, 0), (words, closed)
                )
