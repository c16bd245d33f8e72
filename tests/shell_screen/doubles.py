"""What tests of the agent mode share: a terminal in memory, and its parts joined as in the product."""

from __future__ import annotations

from typing import Any

import pyte

from ironcurtain.command_rules import Risk
from ironcurtain.escalation.decision_keys import QUIET_SECONDS
from ironcurtain.shell.messages import Action, Message, ProposedStep
from ironcurtain.shell_screen.keyboard import Keyboard, Local
from ironcurtain.shell_screen.panel import Panel
from ironcurtain.shell_screen.screen import Screen
from ironcurtain.view.look import Look

PLAN = "p1"

LISTING = ProposedStep(
    number=1,
    command="du -xh --max-depth=1 / 2>/dev/null | sort -h | tail",
    purpose="Show the largest directories",
    risk=Risk.READ,
    decision="allow",
)
JOURNAL = ProposedStep(
    number=2,
    command="sudo journalctl --vacuum-size=200M",
    purpose="Shrink the journal of the system",
    risk=Risk.PRIVILEGE,
    reason="sudo needs a person",
)
CACHES = ProposedStep(
    number=3,
    command="rm -rf ~/.cache/pip ~/.npm/_cacache ~/.cache/go-build /var/tmp/build-artifacts",
    purpose="Empty caches that are made again",
    risk=Risk.DESTRUCTIVE,
    undo="outside",
)
STEPS = (LISTING, JOURNAL, CACHES)


class _KeepingScreen(pyte.Screen):
    """
    Keeps the lines that leave it at its top, as ``pyte.HistoryScreen`` does, which takes as long again for being able
    to show them.
    """

    def __init__(self, columns: int, rows: int) -> None:
        self.above: list[Any] = []
        super().__init__(columns, rows)

    def reset(self) -> None:
        self.above.clear()
        super().reset()

    def erase_in_display(self, how: int = 0, *args: Any, **kwargs: Any) -> None:
        super().erase_in_display(how, *args, **kwargs)
        if how == 3:
            self.above.clear()

    def index(self) -> None:
        top, bottom = self.margins or (0, self.lines - 1)
        if self.cursor.y == bottom:
            self.above.append(self.buffer[top])
        super().index()


class Terminal:
    """A terminal with its history."""

    def __init__(self, columns: int, rows: int) -> None:
        self.screen = _KeepingScreen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self._text: str | None = None

    def write(self, data: bytes) -> None:
        """Show what a program prints."""
        if data:
            self._text = None
            self._stream.feed(data)

    @property
    def lines(self) -> list[str]:
        """Everything that was printed and is still there, without blanks at line ends and empty lines at the end."""
        return self.text.split("\n")

    @property
    def text(self) -> str:
        """The same, as one text. It is made once for all that look at it before more is printed."""
        if self._text is None:
            width, rows = self.screen.columns, [self.screen.buffer[row] for row in range(self.screen.lines)]
            shown = ("".join(row[column].data for column in range(width)) for row in (*self.screen.above, *rows))
            self._text = "\n".join(line.rstrip() for line in shown).rstrip("\n")
        return self._text


class AgentMode:
    """Panel, keyboard and screen at a terminal. Time passes when a test says so."""

    def __init__(self, columns: int = 80, rows: int = 24, look: Look | None = None, panel: Panel | None = None) -> None:
        self.panel = panel if panel is not None else Panel(look or Look())
        self.keyboard = Keyboard(self.panel)
        self.screen = Screen(self.panel, columns, rows)
        self.terminal = Terminal(columns, rows)
        self.written = b""
        self.now = 100.0

    def write(self, data: bytes) -> None:
        """Bytes for the terminal."""
        self.written += data
        self.terminal.write(data)

    def receive(self, *messages: Message) -> None:
        """Messages come, and each is drawn."""
        for message in messages:
            self.panel.receive(message, self.now)
            self.draw()

    def draw(self) -> None:
        """Draw what there is now."""
        self.write(self.screen.draw(self.now))

    def passes(self, seconds: float) -> list[Action | Local]:
        """:returns: what comes of it that so much time passes."""
        self.now += seconds
        done = self.keyboard.tick(self.now)
        self.draw()
        return done

    def press(self, *reads: bytes, pause: float = QUIET_SECONDS + 0.01) -> list[Action | Local]:
        """
        A person reads what is on the screen, and then types.

        :param pause: seconds before each read.
        :returns: what comes of it.
        """
        done: list[Action | Local] = []
        for read in reads:
            done += self.passes(pause)
            done += self.keyboard.typed(read, self.now)
            self.draw()
        return done

    def output(self, data: bytes) -> None:
        """A command prints."""
        self.write(self.screen.output(data, self.now))

    @property
    def text(self) -> str:
        """What is on the terminal and above it."""
        return self.terminal.text
