"""Find the promise and events in a program's output."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ironcurtain.terminal.echo import REACH, Echo, LoopEvent, Promise, events_in
from ironcurtain.terminal.emulator_wire import EVENT_LIMIT, EVENTS_LIMIT, KEPT
from ironcurtain.terminal.ghostty import Emulator
from ironcurtain.terminal.model import sane_size
from ironcurtain.terminal.sequences import SEQUENCE, plain, unfinished

SLICE = 512
"""Bytes passed to the emulator at once. Even if each of them ends a line, it still has all of them afterwards."""

HISTORY_ROWS = 100
"""Number of scrollback lines after which they are taken from the emulator: more make each access slower."""

LINE_LIMIT = 64 * 1024
"""Maximum length in bytes of a line without a terminal; longer lines are split."""

SHOWN_LIMIT = 1000
"""Maximum number of screen lines remembered as containing the promise."""

OPEN, CLOSE = "<event", "</event"

_CHANGES = re.compile(
    rb"\r(?!\n)|[\b\n]|\x1b(?:[78Mc]|\[(?:[\d;]*[@ADF-HJ-MPSTX`dfu]|(?P<top>\d*)[\d;]*r"
    rb"|\?(?:[\d;]*[JK]|(?:[\d;]*;)?(?:47|1047|1049)(?:;[\d;]*)?(?P<to>[hl]))))"
)
"""Sequences after which text can be lost: they move the cursor back, erase, scroll or overwrite."""


class Way(NamedTuple):
    """
    One way to read the known text.

    :param new: where text begins that was not searched when it scrolled off.
    :param certain: where the scrollback ends, which no longer changes.
    """

    text: str
    new: int
    certain: int


class ScreenText:
    """
    The text on a terminal.

    :param sought: the texts to search for.
    """

    def __init__(self, columns: int, rows: int, *sought: str) -> None:
        self.columns = columns
        self._emulator = Emulator(columns, rows)
        self._rare = {_rarest(each) for each in sought}
        self._suspect = re.compile(b"|".join(re.escape(letter.encode()) for letter in self._rare))
        self._suspicious = self._fresh = self._margins = False
        self._rest = b""

    @property
    def alternate(self) -> bool:
        """Whether the alternate screen is active, from which nothing scrolls off."""
        return self._emulator.alternate

    def feed(self, data: bytes) -> Iterator[None]:
        """
        Process output, split anywhere. Stops wherever text must be taken, since the following output can erase it.
        """
        data = self._rest + data
        while piece := _complete(data[:SLICE]) or data[: SLICE if len(data) > SLICE else 0]:
            yield from self._feed_slice(piece)
            data = data[len(piece) :]
        self._rest = data
        if self._emulator.history_rows:
            yield

    def finish(self) -> None:
        """No more output follows."""
        self._write(self._rest)

    def take(self) -> tuple[str, str]:
        """:returns: the lines that have scrolled off since the last call; and the screen."""
        scrolled, shown = self._emulator.history_and_screen()
        if scrolled and self._emulator.between:
            self._emulator.feed(b"\x1b[3J")  # this erases the scrollback
        elif scrolled:
            scrolled, shown = "", scrolled + shown
        self._fresh, self._suspicious = False, any(letter in shown for letter in self._rare)
        return scrolled, shown

    def resize(self, columns: int, rows: int) -> None:
        """Set the terminal's size."""
        self.columns = columns
        self._emulator.resize(columns, rows)

    def _feed_slice(self, data: bytes) -> Iterator[None]:
        at, lines_get_lost = 0, self._margins or self.alternate
        for change in _CHANGES.finditer(data):
            if change[0] == b"\n" and not lines_get_lost:
                continue
            self._write(data[at : change.start()])
            at = change.start()
            history = change[0].endswith((b"J", b"c", b"h")) and self._emulator.history_rows > 0
            if history or (self._fresh and self._suspicious):
                yield
            if change["top"] is not None:
                self._margins = change["top"] not in (b"", b"0", b"1")
            lines_get_lost = lines_get_lost or self._margins or change["to"] == b"h"
        self._write(data[at:])
        if self._emulator.history_rows > HISTORY_ROWS:
            yield

    def _write(self, data: bytes) -> None:
        self._emulator.feed(data)
        self._suspicious = self._suspicious or self._suspect.search(data) is not None
        self._fresh = self._fresh or bool(SEQUENCE.sub(b"", data).strip())


class LineText:
    """The text of a program without a terminal: complete lines do not change."""

    columns = 0
    alternate = False

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[None]:
        """Process output, split anywhere. Stops where text must be taken."""
        self._rest += data
        if b"\n" in data or len(self._rest) > LINE_LIMIT:
            yield

    def finish(self) -> None:
        """No more output follows."""

    def take(self) -> tuple[str, str]:
        """:returns: the lines completed since the last call; and the incomplete one."""
        end = self._rest.rfind(b"\n") + 1
        if not end and len(self._rest) > LINE_LIMIT:
            end = len(self._rest) - len(unfinished(self._rest))
        ended, self._rest = self._rest[:end], self._rest[end:]
        return plain(ended), plain(self._rest)

    def resize(self, columns: int, rows: int) -> None:
        """Ignored: there is no terminal."""


class Scanner:
    """
    Scans the output of one iteration.

    It searches text just before it can be lost, and at the end. Incomplete words do not count.

    :param prompt: the agent's prompt: repetitions of it do not count.
    :param size: columns and rows of its terminal; ``None``: it has none.
    :param on_event: called once with each event.
    """

    def __init__(
        self,
        promise: Promise,
        prompt: str,
        size: tuple[int, int] | None,
        on_event: Callable[[LoopEvent], None] = lambda event: None,
    ) -> None:
        self._promise, self._on_event = promise, on_event
        self._echo, self._typed_echo = Echo(promise), Echo(promise)
        self._echo.add(prompt)
        self._output = LineText() if size is None else ScreenText(*sane_size(*size), promise.hint, OPEN, CLOSE)
        self._kept = self._before = self._last = ""
        self._typed = b""
        self._promised = False
        self._shown: set[str] = set()
        self._known: set[tuple[str, str]] = set()
        self.events: list[LoopEvent] = []

    def feed(self, data: bytes) -> None:
        """Process output, split anywhere."""
        for _ in self._output.feed(data):
            self._look()

    def typed(self, data: bytes) -> None:
        """Process a person's input: its echo does not count, as with the prompt."""
        self._typed = (self._typed + data)[-EVENT_LIMIT:]
        self._typed_echo = Echo(self._promise)
        for line in plain(self._typed).split("\n") if self._promise.hint.encode() in self._typed else ():
            self._typed_echo.add(line)

    def resize(self, columns: int, rows: int) -> None:
        """Set the terminal's size."""
        self._look()
        self._output.resize(*sane_size(columns, rows))

    def end(self) -> bool:
        """
        The output ended.

        :returns: whether the promise was made.
        """
        self._output.finish()
        self._look()
        return self._promised or bool(self._shown)

    def text(self) -> str:
        """:returns: the end of the output as plain text."""
        return (self._kept + self._last).rstrip()[-KEPT:]

    def _look(self) -> None:
        scrolled, self._last = self._output.take()
        before = "" if self._output.alternate else self._before
        ways = _ways(before, scrolled, self._last, self._output.columns)
        self._find_promise(ways)
        self._find_events(ways)
        if scrolled:
            self._kept = (self._kept + scrolled)[-KEPT:]
            begun = self._kept.rfind(OPEN, max(0, len(self._kept) - 2 * EVENT_LIMIT))
            goes_on = begun >= 0 and CLOSE not in self._kept[begun:]
            needed = begun if goes_on else max(0, len(self._kept) - REACH)
            self._before = self._kept[self._kept.rfind("\n", 0, needed) + 1 :]

    def _find_promise(self, ways: list[Way]) -> None:
        made: set[str] = set()
        repeated: set[str] = set()
        for text, new, certain in ways:
            for start, end in self._promise.alone(text):
                line = text[text.rfind("\n", 0, start) + 1 : end].lstrip()
                if end <= new:
                    continue
                if any(echo.repeats(text, start, end) for echo in (self._echo, self._typed_echo)):
                    repeated.add(line)
                elif end <= certain:
                    self._promised = True
                else:
                    made.add(line)
        self._shown -= repeated
        if self._shown:  # what looked like the promise may have been continued on the same line
            lines = [line.lstrip() for text, new, _ in ways for line in text[new:].split("\n")]
            self._shown -= {shown for shown in self._shown - made if any(line.startswith(shown) for line in lines)}
        if len(self._shown) < SHOWN_LIMIT:
            self._shown |= made

    def _find_events(self, ways: list[Way]) -> None:
        gists: set[tuple[str, str]] = set()
        for way in ways:
            events = events_in(way.text, cut_topics=way is ways[-1])
            for event in events:
                if event.gist in gists:  # one that was found in the other way
                    self._known.add(event.spaced)
                else:
                    self._find_event(event)
            gists = {event.gist for event in events}

    def _find_event(self, event: LoopEvent) -> None:
        fits = len(event.topic) + len(event.payload) <= EVENT_LIMIT
        known = event.spaced in self._known or len(self.events) >= EVENTS_LIMIT
        if fits and not known and not self._echo.repeats_event(event):
            self.events.append(event)
            self._known.add(event.spaced)
            self._on_event(event)


def _complete(data: bytes) -> bytes:
    """:returns: the data without an incomplete sequence at its end."""
    return data[: len(data) - len(unfinished(data))]


def _ways(before: str, scrolled: str, shown: str, columns: int) -> list[Way]:
    """:returns: the text, and also with joined lines if that differs."""
    parts = before, before + scrolled, before + scrolled + shown
    glued = [_glued(part, columns) for part in parts]
    texts = [parts] if glued[-1] == parts[-1] else [parts, glued]
    return [Way(text, len(new), len(certain)) for new, certain, text in texts]


def _glued(text: str, columns: int) -> str:
    """
    :returns: the text with lines that reach the margin joined with the next, since programs wrap lines themselves, too.
    """
    if not columns:
        return text
    lines = text.split("\n")
    ends = ["" if line and len(line) % columns == 0 else "\n" for line in lines[:-1]]
    return "".join(line + end for line, end in zip(lines, [*ends, ""], strict=True))


def _rarest(sought: str) -> str:
    """:returns: the letter that excludes most texts."""
    return max(sought, key=lambda letter: (not letter.isalnum() and letter != "_", letter.isupper()))
