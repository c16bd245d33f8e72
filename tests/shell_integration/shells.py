"""Interactive shells in terminals, with and without the marks, for tests to type into and to compare."""

from __future__ import annotations

import fcntl
import os
import re
import select
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pyte

from ironcurtain.shell_integration.marks import InstructionTyped, Mark, MarkReader
from ironcurtain.shell_integration.preparation import prepare
from tests.fish import without_manuals
from tests.programs import program

NONCE = "5e8f77"
PROMPT = "READY> "
VARIABLES = ("PATH", "LANG", "code", "marks", "value", "no name;")
"""That shells report; some have names that a function of a shell might use for itself."""
COLUMNS, ROWS = 100, 1500
PATIENCE = 100.0
"""Seconds that a shell has for an answer."""
QUIET = 0.05
"""Seconds after which a shell that writes nothing, and has no thread that runs, has done its work."""
AGAIN = 3.0
"""Seconds after which Ctrl-C was missed."""

_ESCAPES = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()].|[=>78])")


def pasted(text: str) -> str:
    """:returns: what a terminal sends for a paste."""
    return f"\x1b[200~{text}\x1b[201~"


class InteractiveShell:
    """
    A shell in a terminal of its own.

    :param argv: its program and arguments.
    :param home: its home directory, which is where it starts.
    :param wrapped: whether it shall show marks.
    :raises SkipTest: there is no such program.
    :ivar home: that.
    :ivar marks: that it showed.
    :ivar output: the rest of what it wrote.
    """

    def __init__(self, argv: Sequence[str], home: Path, wrapped: bool, environ: Mapping[str, str]) -> None:
        program(argv[0])
        without_manuals(home)
        own = {"HOME": os.fspath(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TERM": "xterm-256color"}
        self.home = home
        self.marks: list[Mark] = []
        self.output = b""
        self._reader = MarkReader(NONCE)
        self._seen = 0
        environ = {**own, **environ}
        if wrapped:
            prepared = prepare(argv[0], argv[1:], environ, NONCE, VARIABLES)
            argv, environ = prepared.argv, prepared.environ
        self._terminal, slave = os.openpty()
        termios.tcsetwinsize(slave, (ROWS, COLUMNS))
        self._process = subprocess.Popen(
            argv,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=home,
            env=environ,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)

    @property
    def instructions(self) -> list[str]:
        """That were typed."""
        return [mark.text for mark in self.marks if isinstance(mark, InstructionTyped)]

    @property
    def new(self) -> str:
        """What it wrote since something was typed, without escape sequences and carriage returns."""
        return _ESCAPES.sub(b"", self.output[self._seen :]).replace(b"\r", b"").decode(errors="replace")

    def type(self, keys: str) -> None:
        """Type keys; what comes from now on is new."""
        self._seen = len(self.output)
        self._write(keys.encode())

    def prompted(self, times: int) -> None:
        """Wait until it has begun to edit so many lines since something was typed."""
        self.until(lambda: self.output.count(b"\x1b[?2004h", self._seen) == times and self.new.endswith(PROMPT))

    def enter(self, line: str = "", prompt: str = PROMPT) -> str:
        """
        Type a line and Enter, and wait for the next prompt.

        :returns: what was shown.
        """
        self.type(f"{line}\r")
        self.until(lambda: "\n" in self.new and self.new.endswith(prompt))
        return self.new

    def shows(self, text: str) -> None:
        """Wait for a text."""
        self.until(lambda: text in self.new)

    def prompts(self, prompt: str = PROMPT) -> None:
        """Wait for a prompt."""
        self.until(lambda: self.new.endswith(prompt))

    def interrupt(self) -> None:
        """Press Ctrl-C until something comes of it: bash and fish, plain ones too, miss one now and then."""
        deadline = time.monotonic() + PATIENCE
        while (self._read(QUIET) or self._busy()) and time.monotonic() < deadline:
            pass
        self.type("\x03")
        while not self._read(AGAIN) and time.monotonic() < deadline:
            self._write(b"\x03")

    def until(self, true: Callable[[], bool]) -> None:
        """Wait until something is true of what it wrote."""
        deadline = time.monotonic() + PATIENCE
        while not true():
            if not self._read(deadline - time.monotonic()):
                raise AssertionError(f"waited in vain: {self.output[self._seen :]!r} {self.marks[-6:]}")

    def screen(self) -> list[str]:
        """:returns: the lines that a terminal shows."""
        screen = pyte.Screen(COLUMNS, ROWS)
        pyte.ByteStream(screen).feed(self.output)
        rows = (screen.buffer[y] for y in range(screen.cursor.y + 1))  # all rows of display take a second
        return ["".join(row[x].data for x in range(COLUMNS)).rstrip() for row in rows]

    def end(self) -> int:
        """
        Hang up.

        :returns: its exit status.
        """
        if self._terminal >= 0:
            os.close(self._terminal)
            self._terminal = -1
        return self._process.wait(PATIENCE)

    def ended(self) -> int:
        """
        Wait for its end.

        :returns: its exit status.
        """
        with suppress(OSError):
            self.until(lambda: False)
        return self.end()

    def _busy(self) -> bool:
        threads = Path(f"/proc/{self._process.pid}/task")
        try:
            own, *others = ((threads / name / "wchan").read_text() for name in sorted(os.listdir(threads), key=int))
        except (FileNotFoundError, ProcessLookupError):  # One of its threads has ended.
            return True
        return own.startswith("futex") or "0" in (own, *others)

    def _read(self, seconds: float) -> bool:
        if seconds <= 0 or not select.select([self._terminal], [], [], seconds)[0]:
            return False
        for piece in self._reader.feed(os.read(self._terminal, 65536)):
            if isinstance(piece, bytes):
                self.output += piece
            else:
                self.marks.append(piece)
        return True

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._terminal, data) :]
