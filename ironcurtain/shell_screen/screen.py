"""
Draws the agent mode on a terminal, below the prompt: lines that stay, and a live area under them that is drawn again
and again. Only this module and ``look.py`` make escape sequences.
"""

from __future__ import annotations

import re

import msgspec

from ironcurtain.shell_screen.live import live
from ironcurtain.shell_screen.panel import Panel
from ironcurtain.shell_screen.question import Frame
from ironcurtain.terminal.changes import TerminalChanges
from ironcurtain.text.columns import Line, Span, cells, rows, unstyled
from ironcurtain.view.step_record import Edge, Printed

QUIET_SECONDS = 2.0
"""How long a command must have been silent before its time is shown below what it printed."""

_PLAIN = re.compile(rb"(?:[^\x00-\x1f\x7f]|\t|\r*\n|\x1b\[[\d;:]*m)*")
"""Output after which the cursor is where its last line ends."""

_READY = "\x1b7\x1b[r\x1b8\x1b[4l\x1b[?7h\x1b(B\x0f"
"""
What lets all that is drawn be seen, whatever output has left: the whole screen scrolls, characters replace others,
lines wrap, letters are letters. It moves no cursor; without margins, origin mode changes nothing.
"""

_STYLE = "\x1b[0m"

_PASTES_MARKED, _PASTES_UNMARKED = "\x1b[?2004h", "\x1b[?2004l"


class _Output(msgspec.Struct):
    """
    What a command has printed.

    :param at: when it printed the last time.
    :param followed: whether it is known where the cursor is.
    """

    at: float
    followed: bool = True
    ends_line: bool = True


class Screen:
    """
    The terminal's bytes. What a method returns has to be written before anything else is.

    :param panel: is told what has been drawn.
    :param columns: of the terminal, as are ``rows``.
    """

    def __init__(self, panel: Panel, columns: int, rows: int) -> None:
        self._panel = panel
        self.resize(columns, rows)
        self._drawn = Frame()
        self._marked = self._ready = False
        self._changes = TerminalChanges(colours=True)
        self._output: _Output | None = None
        self._runs = panel.activity.runs

    def resize(self, columns: int, rows: int) -> None:
        """The terminal has another size; :meth:`draw` follows it."""
        self._columns, self._rows = max(columns, 1), max(rows, 1)

    def draw(self, now: float) -> bytes:
        """
        Print what is new, and draw the live area if it has changed. While a command runs there is none, but when the
        command has been silent for some seconds; what is new then waits for the command's end.

        :param now: in seconds of the panel's clock.
        """
        panel = self._panel
        begins = panel.activity.runs != self._runs
        printed = panel.record.take() if begins or not panel.running else []
        ended = self._output is not None and not panel.running
        out = self._erased() + self._on_new_line() if printed or ended else ""
        out = self._made_ready() + out if not panel.running else out
        out += "".join(map(self._permanent, printed))
        if begins or not panel.running:
            self._runs = panel.activity.runs
            self._output = _Output(now) if panel.running else None
        shown = live(panel, self._columns, self._rows, now) if self._has_room(now) else Frame()
        out += self._live(shown) + self._marking(not panel.running and bool(shown.lines))
        panel.drawn(shown, now)
        return out.encode("utf-8", "replace")

    def output(self, data: bytes, now: float) -> bytes:
        """
        :param data: a piece of the output of a command that runs.
        :returns: the same, behind whatever takes the live area away.
        """
        known = self._output if self._output is not None else _Output(now)
        followed = known.followed and _PLAIN.fullmatch(data) is not None
        self._output = _Output(now, followed, data.endswith(b"\n") if data else known.ends_line)
        self._changes.feed(data)
        self._ready = self._ready and followed
        return (self._erased() + self._marking(False)).encode() + data

    def remove(self) -> bytes:
        """Take the live area away: the terminal is for the shell or an editor now. :meth:`draw` brings it back."""
        self._panel.keys.appear(None, 0.0)  # what is pressed before it is drawn again answers nothing
        self._ready, self._changes = False, TerminalChanges(colours=True)
        return (self._erased() + self._marking(False)).encode()

    def _has_room(self, now: float) -> bool:
        """Whether the live area can be drawn without disturbing a command."""
        if not self._panel.running or self._output is None:
            return not self._panel.running
        output = self._output
        return output.followed and output.ends_line and now - output.at >= QUIET_SECONDS

    def _on_new_line(self) -> str:
        """:returns: what brings the cursor to the begin of a line, wherever a command's output ended."""
        output, self._output = self._output, None
        if output is None:
            return ""
        if self._panel.look.dumb:
            return "" if output.followed and output.ends_line else "\r\n"
        restored = self._changes.restoration().decode()
        if output.followed:
            return restored if output.ends_line else f"{restored}\r\n"
        # What it drew below might be taken for ours. Spaces up to the end of a row: from any column but the first one
        # they reach the next row.
        moved = f"{' ' * self._columns}\r" if restored in ("", _STYLE) else f"\x1b[{self._rows};1H\r\n"
        return f"{restored}{self._made_ready()}{_STYLE}{moved}\x1b[J"

    def _made_ready(self) -> str:
        if self._ready or self._panel.look.dumb:
            return ""
        self._ready = True
        return _READY

    def _permanent(self, printed: Printed) -> str:
        paint, signs = self._panel.look.paint, self._panel.look.signs
        if printed.edge is Edge.NONE:
            return f"{paint(printed.line)}\r\n"
        first = getattr(signs, printed.edge.value)
        later = " " * len(first) if printed.edge is Edge.BOTTOM else signs.side
        found = rows(printed.line, max(self._columns - 1 - len(first), 2), printed.indent)
        return "".join(
            f"{paint((Span(later if index else first, 'dim'), *row))}\r\n" for index, row in enumerate(found)
        )

    def _erased(self) -> str:
        drawn, self._drawn = self._drawn, Frame()
        if not drawn.lines:
            return ""
        return "\r\n" if self._panel.look.dumb else f"{self._to_top(drawn)}\x1b[J"

    def _to_top(self, drawn: Frame) -> str:
        up = len(drawn.lines) - 1
        return f"\r\x1b[{up}A" if up else "\r"

    def _live(self, shown: Frame) -> str:
        drawn = self._drawn
        if not shown.lines:
            return self._erased()
        self._drawn = shown
        if (drawn.lines, drawn.cursor) == (shown.lines, shown.cursor):
            return ""
        if self._panel.look.dumb:
            return self._below(drawn.lines, shown.lines)
        begin = self._to_top(drawn) if drawn.lines else ""
        body = "\x1b[K\r\n".join(map(self._panel.look.paint, shown.lines))
        back = f"\r\x1b[{shown.cursor}C" if shown.cursor else "\r"
        return f"{begin}{body}\x1b[J{back if shown.cursor != cells(unstyled(shown.lines[-1])) else ''}"

    def _below(self, old: tuple[Line, ...], new: tuple[Line, ...]) -> str:
        """:returns: what shows other lines on a terminal that cannot erase: only what was typed, if that is all."""
        if old and old[:-1] == new[:-1]:
            before, after = unstyled(old[-1]), unstyled(new[-1])
            if after.startswith(before):
                return after[len(before) :]
            if before.startswith(after):
                return "\b \b" * (len(before) - len(after))
        return ("\r\n" if old else "") + "\r\n".join(map(unstyled, new))

    def _marking(self, wanted: bool) -> str:
        """:returns: what makes the terminal mark pastes, or no longer."""
        if wanted == self._marked or self._panel.look.dumb:
            return ""
        self._marked = wanted
        return _PASTES_MARKED if wanted else _PASTES_UNMARKED
