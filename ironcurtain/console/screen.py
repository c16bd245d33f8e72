"""urwid on any byte channel: without a terminal device, signals or a loop of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import StringIO
from typing import Any, Literal, Protocol

import urwid
from urwid.display import raw

from ironcurtain.console.layout import Frame
from ironcurtain.text.columns import Span
from ironcurtain.view.look import look_for

INPUT_LIMIT = 64 * 1024
"""Maximum bytes of input processed in one turn; more does not come from a person, and is dropped."""

urwid.set_encoding("utf-8")  # for the whole process: otherwise urwid uses the locale of the process's starter

PALETTE = (
    ("dim", "default", "default", "default", "g50", "default"),
    ("bold", "default,bold", "default", "bold"),
    ("good", "dark green", "default", "default"),
    ("bad", "light red", "default", "bold"),
    ("warn", "brown", "default", "bold"),
    ("key", "dark cyan,bold", "default", "bold"),
    ("title", "white,bold", "dark blue", "standout"),
    ("chosen", "black", "light gray", "standout"),
    ("old", "dark red", "default", "default"),
    ("new", "dark green", "default", "default"),
)
"""
urwid's palette for :data:`ironcurtain.text.columns.Style`; the fourth member is for monochrome terminals, the last two
are for 256 colours. This gray has a contrast of at least 3.6 on black, white and the dark and light backgrounds of
usual themes; the dark gray of 16 colours is hardly seen on the kernel's console, and is the background itself in some
themes.
"""


class Channel(Protocol):
    """The byte channel of a console."""

    @property
    def blocked(self) -> bool:
        """Whether earlier bytes are still queued. The console then draws nothing until the channel is drained."""

    def write(self, data: bytes) -> None:
        """Send bytes to the terminal."""

    def size(self) -> tuple[int, int]:
        """:returns: columns and rows."""

    def close(self, status: int) -> None:
        """End the console."""


class ChannelScreen(raw.Screen):
    """
    urwid's terminal screen, writing to a channel. Pastes and focus are always reported: a terminal that cannot do that
    ignores it.

    :param environ: the viewer's: ``TERM``, ``COLORTERM``, ``NO_COLOR`` ...
    """

    def __init__(self, channel: Channel, environ: Mapping[str, str]) -> None:
        self._channel, self._drawn = channel, StringIO()
        super().__init__(None, self._drawn, True, True)  # type: ignore[arg-type]  # the channel delivers input
        self._undecoded = bytearray()
        """Input that is the beginning of a sequence."""
        self.term = environ.get("TERM", "")
        self.has_mouse = not self.term.startswith("linux")
        """Whether the terminal reports the mouse. For that of the kernel, urwid would watch this machine's."""
        is_kernels = not self.has_mouse
        self.has_underline, self.bg_bright_is_blink = not is_kernels, is_kernels
        self.back_color_erase = not self.term.startswith(("screen", "dumb"))
        many: Literal[16, 256] = 256 if "256color" in self.term or environ.get("COLORTERM") else 16
        self.set_terminal_properties(many if look_for(environ).color else 1, bright_is_bold=is_kernels)
        self.register_palette(PALETTE)

    @property
    def waits(self) -> bool:
        """Whether input waits for the rest of its sequence."""
        return bool(self._undecoded)

    def decode(self, data: bytes = b"") -> Sequence[str | tuple[Any, ...]]:
        """
        :param data: what one read from the terminal gave; nothing: the rest of a sequence does not come.
        :returns: keys, as urwid names them, and (event, button, column, row) of the mouse.
        """
        self._undecoded += data[: max(INPUT_LIMIT - len(self._undecoded), 0)]
        found, codes = self.parse_input(None, None, list(self._undecoded), wait_for_more=bool(data))
        del self._undecoded[: len(codes)]
        return found

    def get_cols_rows(self) -> tuple[int, int]:
        """:returns: the size of the terminal."""
        columns, rows = self._channel.size()
        self.maxrow = max(rows, 1)
        return max(columns, 1), self.maxrow

    def draw(self, frame: Frame, columns: int, rows: int) -> None:
        """Draw a frame for a terminal of that size."""
        spans = [span for line in frame.lines for span in (Span("\n"), *line)][1:]
        # urwid counts some characters as wider than we do, and then cuts the line.
        text = urwid.Text([(span.style or None, span.text) for span in spans], wrap="clip")
        canvas = urwid.CompositeCanvas(text.render((columns,)))
        canvas.cursor = frame.cursor
        self.draw_screen((columns, rows), canvas)

    def flush(self) -> None:
        """Send what was drawn through the channel."""
        data = self._drawn.getvalue()
        self._drawn.seek(0)
        self._drawn.truncate()
        if data:
            self._channel.write(data.encode("utf-8", "replace"))

    def signal_init(self, *args: Any, **kwargs: Any) -> None:
        """Ignored, as the two others: signals belong to the process, and there is no terminal device."""

    signal_restore = tty_signal_keys = signal_init
