"""Commands between marks of ours, in shells that show none by themselves."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.shell_integration.marks import CommandBegan, CommandEnded, Mark, MarkReader
from ironcurtain.shell_integration.typed_marks import end_mark, with_marks
from tests.fish import without_manuals
from tests.programs import program

NONCE = "77a0"
SHELLS = ("dash", "bash", "zsh", "fish")


def run(shell: str, line: str) -> list[bytes | Mark]:
    """:returns: what a shell writes when it runs a line, in a terminal of its own."""
    program(shell)
    with tempfile.TemporaryDirectory() as home:
        without_manuals(Path(home))
        done = subprocess.run(
            [program("script"), "--quiet", "--command", f"exec {shell}", "/dev/null"],
            input=f" stty -echo\n{line}\nexit\n".encode(),
            env={"PATH": "/usr/bin:/bin", "TERM": "dumb", "SHELL": "/bin/sh", "HOME": home},
            capture_output=True,
            timeout=60,
        )
    reader = MarkReader("other")
    reader.also(NONCE)
    return reader.feed(done.stdout)


class LineTests(SynchronousTestCase):
    """What is typed."""

    def between(self, shell: str, command: str) -> tuple[bytes, int]:
        """:returns: what a command wrote between its marks, and its status."""
        line = with_marks(command, shell, NONCE)
        assert line is not None
        pieces = run(shell, line)
        began = pieces.index(CommandBegan())
        (ended,) = (each for each in pieces if isinstance(each, CommandEnded))
        output = b"".join(each for each in pieces[began : pieces.index(ended)] if isinstance(each, bytes))
        return output.replace(b"\r", b""), ended.status

    def test_output_and_status(self) -> None:
        for shell in SHELLS:
            self.assertEqual(self.between(shell, "echo out; sh -c 'exit 3'"), (b"out\n", 3), shell)

    def test_a_comment_does_not_hide_the_end(self) -> None:
        for shell in ("dash", "bash", "fish"):
            self.assertEqual(self.between(shell, "echo out # it"), (b"out\n", 0), shell)

    def test_an_output_elsewhere_does_not_hide_the_end(self) -> None:
        self.assertEqual(self.between("dash", "exec >/dev/null; false"), (b"", 1))

    def test_what_does_not_parse_does_not_begin(self) -> None:
        for shell in ("dash", "bash", "zsh"):  # fish goes on with the line until it is cancelled
            line = with_marks("echo )", shell, NONCE)
            assert line is not None
            self.assertNotIn(CommandBegan(), run(shell, line), shell)

    def test_the_end_alone(self) -> None:
        for shell in SHELLS:
            self.assertIn(CommandEnded(0), run(shell, end_mark(shell, NONCE)), shell)

    def test_a_shell_of_another_syntax(self) -> None:
        self.assertIsNone(with_marks("ls", "tcsh", NONCE))
