"""A real terminal for tests: tmux, which shows what a program draws, and presses keys."""

from __future__ import annotations

import os
import re
import select
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable

import pyte

from tests.product import LIMIT, Product, wait_until
from tests.programs import program

PATIENCE = 120.0
"""Seconds for whatever is waited for, unless a test says otherwise."""


FLAGS = ("alternate_on", "insert_flag", "mouse_any_flag", "origin_flag", "wrap_flag", "cursor_flag")
"""What a program can have set; 0 0 0 0 1 1 is how it was."""


def is_readable(terminal: int, seconds: float = 0.0) -> bool:
    """
    Look whether an end of a terminal can be read. This has the kernel deliver what was written to its other end, which
    it does somewhat later; to ask how much there is to read (FIONREAD) does not.

    :param seconds: how long to wait until it can.
    """
    looked = select.poll()  # select() takes no descriptor above 1023
    looked.register(terminal, select.POLLIN)
    return looked.poll(seconds * 1000) != []


class Tmux:
    """
    A terminal of its own, by a tmux server of its own, with a shell in it.

    :param patience: seconds that :meth:`wait` waits.
    :raises SkipTest: there is no tmux.
    """

    def __init__(self, product: Product, columns: int = 80, rows: int = 24, patience: float = PATIENCE) -> None:
        self._program = program("tmux")
        self._patience = patience
        self._typed = ""
        self.directory = tempfile.mkdtemp(prefix="ic-tmux-")
        self._environ = {**product.environ, "TERM": "xterm-256color", "TMUX_TMPDIR": self.directory}
        self._environ.setdefault("LANG", "C.UTF-8")
        size = ("-x", str(columns), "-y", str(rows))
        directory = str(product.project)
        self.run("-f", "/dev/null", "new-session", "-d", "-s", "test", *size, "-c", directory, "/bin/sh")
        self._environ["TMUX_PANE"] = "%0"  # what commands are about that do not name another
        # A session of its own, since with someone attached to it the one that is tested would be another.
        line = [self._program, "-L", "test", "-u", "-C", "new-session", "-s", "control", "exec cat"]
        self._control = subprocess.Popen(line, env=self._environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.wait("^[#$]")  # what is typed before the shell's prompt would be echoed before it

    def run(self, *words: str) -> str:
        """:returns: what tmux prints."""
        return subprocess.run(
            [self._program, "-L", "test", *words],
            env=self._environ,
            text=True,
            capture_output=True,
            check=True,
            timeout=LIMIT,
        ).stdout

    def ask(self, command: str, *words: str) -> str:
        """
        Have a command carried out for the terminal without starting a program, which takes 14 ms of a processor.

        :returns: what it prints.
        """
        assert self._control.stdin is not None and self._control.stdout is not None
        line = shlex.join([command, "-t", "test:", *words])
        assert "\n" not in line
        self._control.stdin.write(f"{line}\n".encode())
        self._control.stdin.flush()
        end: str | None = None
        printed: list[str] = []
        for read in map(bytes.decode, self._control.stdout):
            kind, _, which = read.rstrip("\n").partition(" ")
            if end is None and kind == "%begin" and which.endswith(" 1"):  # else it is no answer to what we asked
                end = which
            elif end == which and kind in ("%end", "%error"):
                assert kind == "%end", (line, printed)
                return "".join(printed)
            elif end is not None:
                printed.append(read)
        raise AssertionError(f"tmux has ended, and did not answer {line!r}")

    def keys(self, *keys: str) -> None:
        """Press keys, by the names that tmux gives them."""
        self.ask("send-keys", *keys)

    @property
    def text(self) -> str:
        """What is on the screen."""
        return self.ask("capture-pane", "-p")

    @property
    def device(self) -> str:
        """The path of the terminal."""
        return self.ask("display-message", "-p", "#{pane_tty}").strip()

    @property
    def rang(self) -> bool:
        """Whether the bell rang."""
        return "1" in self.ask("display-message", "-p", "#{window_bell_flag}")

    @property
    def flags(self) -> tuple[str, ...]:
        """Where the cursor is, and how the terminal is set: :data:`FLAGS`."""
        names = ("cursor_x", "cursor_y", *FLAGS)
        return tuple(self.ask("display-message", "-p", " ".join(f"#{{{name}}}" for name in names)).split())

    @property
    def cells(self) -> list[tuple[object, ...]]:
        """What is on the screen, cell by cell: character and appearance; of a blank only what can be seen of it."""
        columns, rows = map(int, self.ask("display-message", "-p", "#{pane_width} #{pane_height}").split())
        screen = pyte.Screen(columns, rows)
        drawn = self.ask("capture-pane", "-p", "-e", "-N").rstrip("\n").replace("\n", "\r\n")
        pyte.Stream(screen).feed(drawn)
        found = [screen.buffer[y][x] for y in range(rows) for x in range(columns)]
        return [(c.data, c.bg, c.reverse, c.underscore, c.fg if c.data.strip() or c.reverse else "") for c in found]

    def type(self, text: str) -> None:
        """Type a text, and press Enter."""
        self._typed = text
        self.keys("-l", text)
        self.keys("Enter")

    def read(self) -> None:
        """Wait until the program has read what was typed: keys that come with others in one read may mean nothing."""
        terminal = os.open(self.device, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
        try:
            self.until(lambda: not is_readable(terminal), "it is not read")
        finally:
            os.close(terminal)

    def resize(self, columns: int, rows: int) -> None:
        """Have another size."""
        self.ask("resize-window", "-x", str(columns), "-y", str(rows))

    def wait(self, pattern: str) -> str:
        """
        :returns: the screen, as soon as the pattern is on it.
        :raises AssertionError: what was typed last matches: it is on the screen, too, and where it is broken into lines
            depends on how long the paths of this machine are.
        """
        echoed = any(re.search(pattern, self._typed[at:], re.MULTILINE) for at in range(len(self._typed)))
        assert not echoed, f"{pattern!r} can be what was typed: {self._typed!r}"
        found: list[str] = []

        def shown() -> bool:
            found.append(self.text)
            return re.search(pattern, found[-1], re.MULTILINE) is not None

        self.until(shown, f"{pattern!r} is not on the screen")
        return found[-1]

    def until(self, holds: Callable[[], bool], failure: str = "it did not happen") -> None:
        """
        Wait for something of which nobody tells.

        :param failure: what is said if it never comes.
        """
        try:
            wait_until(holds, self._patience)
        except AssertionError:
            raise AssertionError(f"{failure}:\n{self.text}") from None

    def close(self) -> None:
        """End it and all that runs in it."""
        server = int(self.ask("display-message", "-p", "#{pid}"))
        self.run("kill-server")
        self._control.communicate()
        os.waitpid(server, 0)  # it became our child when the command that started it ended: see Product
        shutil.rmtree(self.directory)
