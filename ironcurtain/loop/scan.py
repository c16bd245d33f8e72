"""Find in a program's output what ends a loop, and what the next iteration should know. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from ironcurtain.loop.echo import Echo, Event, Promise, events_in
from ironcurtain.loop.page import Page
from ironcurtain.loop.reader import OutputReader, only_lines
from ironcurtain.loop.rows import Line
from ironcurtain.terminal.sequences import plain

KEPT = 256 * 1024
"""Most characters of output that are kept as text (our choice: a long conversation)."""

EVENT_LIMIT = 64 * 1024
"""Most characters of an event (our choice)."""

EVENTS_LIMIT = 1000
"""Most events of one iteration; later ones are left out (our choice)."""

SEEN_LIMIT = 1000
"""Most places at which the promise is remembered to have been (our choice)."""

BATCH = 64 * 1024
"""How many bytes are worth being read at once: many lines together are read much faster than one by one."""

SLICE = 4 * 1024
"""How many bytes are read at once if they are more than lines: a screen of text, which takes some milliseconds."""

OPEN, CLOSE = "<event", "</event"

CONTEXT_LINES = 12
"""How many lines that have scrolled off are looked at with those that follow."""

PAGE_WIDTH, PAGE_HEIGHT = 1000, 24
"""Of output that goes to no terminal: nothing wraps it, and what does not fit into a row goes on in the next."""


class Scanner:
    """
    Reads the output of one iteration.

    It looks at text right before it vanishes, and at the end: then it is complete, so that a word that is still being
    written counts for nothing.

    :param prompt: what the agent was told: what it only repeats does not count.
    :param size: columns and rows of its terminal; ``None``: it has none.
    :param on_event: gets each event once.
    :ivar unread: how many bytes were fed and not read.
    """

    def __init__(
        self,
        promise: Promise,
        prompt: str,
        size: tuple[int, int] | None,
        on_event: Callable[[Event], None] = lambda event: None,
    ) -> None:
        self._promise, self._echo, self._on_event = promise, Echo(promise), on_event
        self._echo.add(prompt)
        self._terminal = size is not None
        columns, rows = size or (PAGE_WIDTH, PAGE_HEIGHT)
        self._sought = promise.hint, OPEN, CLOSE
        self._page = Page(columns, rows, self._sought, self._gone, self._look)
        self._reader = OutputReader(self._page)
        self._unread: deque[bytes] = deque()
        self.unread = 0
        self._kept: deque[Line] = deque()
        self._kept_size = 0
        self._begun: deque[Line] = deque()
        self._begun_size = 0
        self._seen: dict[tuple[int, str], bool] = {}
        self._typed, self._typed_new = b"", False
        self.events: list[Event] = []
        self._known: set[tuple[str, str]] = set()

    def feed(self, data: bytes) -> None:
        """Take output, cut anywhere; it is read later."""
        self._unread.append(data)
        self.unread += len(data)

    def read_on(self) -> bool:
        """
        Read some of what was fed: as much as takes a few milliseconds.

        :returns: whether more waits.
        """
        data = self._take()
        if len(data) > SLICE and not only_lines(data):
            self._unread.appendleft(data[SLICE:])
            self.unread += len(data) - SLICE
            data = data[:SLICE]
        if not self._terminal:
            data = data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
        self._reader.feed(data)
        return bool(self._unread)

    def _take(self) -> bytes:
        taken: list[bytes] = []
        size = 0
        while self._unread and size < BATCH:
            taken.append(self._unread.popleft())
            size += len(taken[-1])
        self.unread -= size
        return b"".join(taken)

    def typed(self, data: bytes) -> None:
        """What a person typed: its echo counts as little as that of the prompt."""
        self._typed, self._typed_new = (self._typed + data)[-EVENT_LIMIT:], True

    def resize(self, columns: int, rows: int) -> None:
        """The terminal has another size."""
        if self._terminal:
            self.catch_up()
            self._page.resize(columns, rows)

    def catch_up(self) -> None:
        """Read all that was fed."""
        while self.read_on():
            pass

    def end(self) -> bool:
        """
        No more comes.

        :returns: whether the promise was made.
        """
        self.catch_up()
        self._look()
        return any(self._seen.values())

    def text(self) -> str:
        """:returns: the last of the output as plain text."""
        lines = [line.text for line in (*self._kept, *self._page.lines())]
        return "\n".join(lines).rstrip()[-KEPT:]

    def _gone(self, lines: Sequence[Line]) -> None:
        around = [*self._tail(), *lines]
        texts = ["\n".join(line.text for line in lines)]
        if True in _ways(around):
            texts.append(_joined(around, True)[0])
        self._kept.extend(lines)
        self._kept_size += sum(len(line.text) + 1 for line in lines)
        if self._begun or _any_in(texts, OPEN):
            self._go_on(lines if self._begun else around)
        if _any_in(texts, self._promise.hint, CLOSE):
            self._look(len(lines))
        if self._begun and _any_in(texts, CLOSE) and _closed(self._begun):
            self._begun.clear()
            self._begun_size = 0
        while self._begun_size > 2 * EVENT_LIMIT:
            self._begun_size -= len(self._begun.popleft().text) + 1
        while self._kept and self._kept_size > KEPT:
            self._kept_size -= len(self._kept.popleft().text) + 1

    def _go_on(self, lines: Sequence[Line]) -> None:
        """An event has begun in these lines, or before them."""
        for line in lines:
            self._begun.append(line._replace(text=line.text[-EVENT_LIMIT:]))
            self._begun_size += len(self._begun[-1].text) + 1

    def _look(self, new: int = 0) -> None:
        """:param new: how many lines have scrolled off that were never looked at."""
        new = new or int(self._across())
        if not (new or self._seen or self._page.promising):
            return
        shown = self._page.lines()
        lines = [*self._before(new), *shown]
        for glue in _ways(lines):
            if new or self._seen or self._promise.hint in _joined(shown, glue)[0]:
                self._find_promise(*_joined(lines, glue))
        self._find_events([*(self._begun or self._tail()), *shown])

    def _tail(self) -> list[Line]:
        """:returns: the last lines that scrolled off, as far as what follows may go on with them."""
        tail: list[Line] = []
        for line in () if self._page.alternates else reversed(self._kept):
            if not line.full or len(tail) == CONTEXT_LINES:
                break
            tail.append(line)
        return tail[::-1]

    def _across(self) -> bool:
        """Whether something that is sought may begin in a line that scrolled off, and go on in one that is shown."""
        tail = self._tail()
        return bool(tail) and _any_in([_joined([*tail, *self._page.lines()], True)[0]], *self._sought)

    def _before(self, new: int) -> list[Line]:
        """:returns: the lines above the page: what was never looked at, and a few before."""
        count = 0 if self._page.alternates else min(new + CONTEXT_LINES, len(self._kept))
        return [self._kept[-number] for number in range(count, 0, -1)]

    def _find_events(self, lines: Sequence[Line]) -> None:
        ways = _ways(lines)
        gists: set[tuple[str, str]] = set()
        for glue in ways:
            events = events_in(_joined(lines, glue)[0], cut_topics=glue is ways[-1])
            for event in events:
                if event.gist in gists:  # one of those that were found in the other way
                    self._known.add(event.spaced)
                else:
                    self._find_event(event)
            gists = {event.gist for event in events}

    def _find_event(self, event: Event) -> None:
        fits = len(event.topic) + len(event.payload) <= EVENT_LIMIT
        known = event.spaced in self._known or len(self.events) >= EVENTS_LIMIT
        if fits and not known and not self._echo.repeats_event(event):
            self.events.append(event)
            self._known.add(event.spaced)
            self._on_event(event)

    def _find_promise(self, text: str, starts: list[tuple[int, int]]) -> None:
        """:param starts: where lines begin in the text, each with its number."""
        self._forget(text, starts)
        found = self._promise.find(text)
        if found and self._typed_new:
            self._typed_new = False
            self._echo.add(plain(self._typed), typed=True)
        for start, end in found:
            at, index = next(pair for pair in reversed(starts) if pair[0] <= start)
            key = (index, text[at:start].strip())
            if key in self._seen or len(self._seen) < SEEN_LIMIT:
                self._seen[key] = not self._echo.repeats(text, start, end, cut=self._page.alternates)

    def _forget(self, text: str, starts: list[tuple[int, int]]) -> None:
        """What looked like the promise may have been the beginning of a longer word that has been written since."""
        numbers = {index for index, _ in self._seen}
        lines = {index: text[at:].partition("\n")[0] for at, index in starts if index in numbers}
        for index, before in self._seen:
            line = lines.get(index, "").lstrip()
            if line.startswith(before) and line[len(before) :].lstrip().startswith(self._promise.hint):
                self._seen[index, before] = False


def _any_in(texts: Sequence[str], *sought: str) -> bool:
    return any(each in text for text in texts for each in sought)


def _closed(lines: Sequence[Line]) -> bool:
    """:returns: whether no event that has begun in these lines goes on after them."""
    text = _joined(lines, True)[0]
    return text.rfind(CLOSE) > text.rfind(OPEN)


def _ways(lines: Sequence[Line]) -> tuple[bool, ...]:
    """:returns: how lines are to be joined: as they are, and glued where that makes a difference."""
    return (False, True) if any(line.full for line in lines) else (False,)


def _joined(lines: Sequence[Line], glue: bool) -> tuple[str, list[tuple[int, int]]]:
    """
    :param glue: whether a line that reaches the margin goes on in the next one: programs wrap by themselves, too.
    :returns: the text, and where each line begins in it, with its number.
    """
    parts: list[str] = []
    starts: list[tuple[int, int]] = []
    at = 0
    for line in lines:
        starts.append((at, line.number))
        parts.append(line.text if glue and line.full else f"{line.text}\n")
        at += len(parts[-1])
    return "".join(parts), starts
