"""
A session at a real terminal. Printed text scrolls up; below it are the unfinished text, a status line and the input
line.

prompt_toolkit draws them. Callers escape what they print; prompt_toolkit replaces escape characters as well.
"""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import TextIO

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input import Input, create_input
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.layout.screen import Screen
from prompt_toolkit.output import ColorDepth, Output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.renderer import print_formatted_text
from prompt_toolkit.styles import Style
from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from ironcurtain.cli.terminal.surface import Listener, Surface
from ironcurtain.services.asyncio_bridge import from_asyncio
from ironcurtain.terminal.provenance import KEY, Provenance
from ironcurtain.terminal.reflow import reflows, rows_of
from ironcurtain.terminal.title import Title
from ironcurtain.text.columns import Line
from ironcurtain.view.look import COLORED, PROMPT, representable, signs_for
from ironcurtain.view.narration import Live

INPUT_LINES = 8
"""Maximum number of visible input lines; longer input scrolls."""

RESIZE_SECONDS = 0.25
"""Seconds between checks of the terminal's size."""

_NAMES = {"1": "bold", "2": "dim", "31": "ansired", "32": "ansigreen", "33": "ansiyellow", "36": "ansicyan"}
STYLE = Style.from_dict({name: " ".join(map(_NAMES.__getitem__, codes.split(";"))) for name, codes in COLORED.items()})
"""The styles of lines, for prompt_toolkit."""


class TypedLine(Buffer):
    """
    The input line, which knows what of it was typed.

    :param now: returns seconds of the reactor's clock.
    :ivar began: when its first character was typed; minus infinity if a part of it was pasted.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        super().__init__(multiline=True, on_text_changed=lambda _: self._changed())
        self._now, self._was_empty, self.began = now, True, 0.0
        self._provenance, self._entered = Provenance(), Provenance()

    def enter(self) -> tuple[str, float, str]:
        """
        Empty it.

        :returns: the line, when it was begun, and what of it was typed.
        """
        text, self._entered, self._provenance = self.text, self._provenance, Provenance()
        self.clear(append_to_history=True)
        text, own = (each.encode("utf-8", "replace").decode() for each in (text, self._entered.own()))
        return text, self.began, own

    def clear(self, append_to_history: bool = False) -> None:
        """Drop its text."""
        self.reset(append_to_history=append_to_history)
        self._was_empty = True

    def paste(self, text: str) -> None:
        """Insert what was pasted."""
        self.insert_text(text.replace("\r\n", "\n").replace("\r", "\n"))
        self.began = -math.inf

    def put_back(self, text: str) -> None:
        """Insert text at its beginning, and move the cursor to the end."""
        rest = self.text
        if not rest and self._entered.text.strip() == text:  # what was typed of it stays so
            self._provenance, text = self._entered, self._entered.text
        self.text = f"{text}\n{rest}" if rest else text
        self.cursor_position = len(self.text)

    def _changed(self) -> None:
        # A key inserts one character; a paste, the kill ring and the history insert several.
        self._provenance.change(self.text, KEY)
        if self._was_empty:
            self.began = self._now()
        self._was_empty = not self.text


class PromptSurface(Surface):
    """
    A terminal.

    :param now: returns seconds of the reactor's clock.
    :param environ: says which terminal it is.
    """

    log = Logger()
    live = True

    def __init__(
        self, source: Input, output: Output, now: Callable[[], float], environ: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._output, self._title = output, Title(environ.get("TERM", ""), output.write_raw)
        self._reflows, self._drawn = reflows(environ), (Screen(), 0)
        self.signs = signs_for(output.encoding())
        self._listener: Listener | None = None
        self._running: Deferred[None] | None = None
        self._live, self._line = Live((), ()), TypedLine(now)
        self._wakeup_fd = -1
        self._application: Application[None] = Application(
            layout=self._layout(),
            key_bindings=self._keys(),
            style=STYLE,
            color_depth=output.get_default_color_depth(),
            erase_when_done=True,
            terminal_size_polling_interval=RESIZE_SECONDS,
            before_render=lambda _: self._follow_reflow(),
            after_render=lambda _: self._rendered(),
            input=source,
            output=output,
        )

    def width(self) -> int:
        """:returns: columns, less one for terminals that wrap too early."""
        return max(self._output.get_size().columns - 1, 20)

    def open(self, listener: Listener, reads: bool) -> None:
        """Take over the terminal. Lines are always read, whatever ``reads`` says."""
        self._listener = listener
        self._title.begin()
        self._wakeup_fd = signal.set_wakeup_fd(-1)
        self._keep_wakeup_fd()
        drawing = self._application.run_async(handle_sigint=False, set_exception_handler=False)
        self._running = from_asyncio(drawing)
        self._running.addErrback(self._failed)

    def print(self, lines: Sequence[Line], answer: bool = False) -> None:
        """Print above the live part."""
        fragments = [fragment for line in lines for fragment in (*self._fragments(line), ("", "\n"))]
        self._follow_reflow()
        self._application.renderer.erase()
        print_formatted_text(self._output, fragments, STYLE, color_depth=self._output.get_default_color_depth())
        self._application.invalidate()

    def show(self, live: Live) -> None:
        """Draw the live part if it changed."""
        if live != self._live:
            self._live = live
            self._application.invalidate()

    def bell(self, text: str) -> None:
        """Ring the bell, and show ``text`` in the title."""
        self._output.bell()
        self._title.show(f": {text}")
        self._output.flush()

    def calm(self) -> None:
        """Restore the title."""
        self._title.show()
        self._output.flush()

    def put_back(self, text: str) -> None:
        """Insert text at the beginning of the input line, and move the cursor to the end."""
        self._line.put_back(text)

    async def close(self) -> None:
        """Erase the live part, and restore the terminal."""
        self._listener = None
        if self._running is not None:
            running, self._running = self._running, None
            running.cancel()
            await running
            self._keep_wakeup_fd()
            with suppress(OSError):  # the terminal may have disconnected
                self._title.end()
                self._output.flush()

    def _failed(self, failure: Failure) -> None:
        if self._listener is None:
            return
        if failure.check(EOFError, OSError) is None:
            self.log.failure("the terminal could not be drawn", failure)
        self._listener.lost("the terminal is gone")

    def _rendered(self) -> None:
        self._drawn = (self._application.renderer.last_rendered_screen or Screen(), self._output.get_size().columns)
        self._keep_wakeup_fd()

    def _follow_reflow(self) -> None:
        """
        Move the cursor up by the rows that a narrower terminal has made of the live part, of which prompt_toolkit does
        not know, so that all of it is erased.
        """
        screen, before = self._drawn
        columns = self._output.get_size().columns
        if not self._reflows or columns >= before:
            return
        self._drawn = (Screen(), 0)
        cursor = screen.get_cursor_position(self._application.layout.current_window)
        added = cursor.x // columns
        for y in range(cursor.y):
            row = screen.data_buffer[y]
            end = max((x + 1 for x, cell in row.items() if cell.char.strip()), default=0)
            added += rows_of((row[x].width for x in range(end) if row[x].char), columns) - 1
        self._output.cursor_up(added)

    def _keep_wakeup_fd(self) -> None:
        """
        Restore the reactor's signal wake-up descriptor.

        prompt_toolkit watches SIGWINCH through asyncio, which replaces the only descriptor to which Python writes
        signals. Without it, the reactor would not notice that child processes exit.
        """
        signal.set_wakeup_fd(self._wakeup_fd)

    def _layout(self) -> Layout:
        tail = Window(FormattedTextControl(lambda: self._fit("\n".join(self._live.tail))), dont_extend_height=True)
        status = Window(FormattedTextControl(lambda: self._fragments(self._live.status)), height=1)
        control = BufferControl(self._line, input_processors=[BeforeInput(PROMPT, style="class:key")])
        line = Window(control, height=Dimension(min=1, max=INPUT_LINES), wrap_lines=True, dont_extend_height=True)
        has_tail = Condition(lambda: bool(self._live.tail))
        return Layout(HSplit([Window(height=1), ConditionalContainer(tail, has_tail), status, line]), line)

    def _fragments(self, line: Line) -> StyleAndTextTuples:
        return [(f"class:{span.style}" if span.style else "", self._fit(span.text)) for span in line]

    def _fit(self, text: str) -> str:
        return representable(text, self._output.encoding())

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        keys.add("enter")(lambda event: self._entered())
        keys.add("escape", "enter")(lambda event: self._line.insert_text("\n"))
        keys.add(Keys.BracketedPaste)(lambda event: self._line.paste(event.data))
        keys.add("c-c")(lambda event: self._interrupted())
        keys.add("<sigint>")(lambda event: self._interrupted())
        keys.add("c-d", filter=Condition(lambda: not self._line.text))(lambda event: self._ended())
        return keys

    def _entered(self) -> None:
        line = self._line.enter()
        if self._listener is not None:
            self._listener.typed(*line)

    def _interrupted(self) -> None:
        if self._line.text:
            self._line.clear()
        elif self._listener is not None:
            self._listener.interrupt()

    def _ended(self) -> None:
        if self._listener is not None:
            self._listener.input_ended()


def prompt_surface(
    stdin: TextIO, stderr: TextIO, environ: Mapping[str, str], now: Callable[[], float]
) -> PromptSurface:
    """
    :returns: the terminal behind the standard streams, with its sixteen colours, or without if ``NO_COLOR`` is set. Its
        cursor position is never queried: the answer could arrive after the exit and be read by the person's shell.
    """
    depth = ColorDepth.DEPTH_1_BIT if environ.get("NO_COLOR") else ColorDepth.DEPTH_4_BIT
    output = Vt100_Output.from_pty(stderr, term=environ.get("TERM"), default_color_depth=depth)
    output.enable_cpr = False
    return PromptSurface(create_input(stdin), output, now, environ)
