"""
The promise that ends a loop, and events, in text; and what only repeats the prompt.

A prompt usually names the promise, and screens of agents show the prompt. What repeats it has the words of the prompt
round the promise. They are compared as words: how a screen wraps, quotes and frames them does not matter.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

AROUND = 3
"""How many words on each side are compared."""

REACH = 2000
"""How many characters away they may be: frames and margins of a screen lie between."""

ALIKE = 2
"""How many of them, next to the promise, make it a repetition: one may be there by accident."""

_WORD = re.compile(r"\w+")
_MARKS = r"[^\w\n]*"
"""What may stand beside the promise on its line: bullets, quotes, Markdown, frames."""

_EVENT = re.compile(
    r"<event\s+(?:[\w-]+\s*=\s*(?:\"[^\"<>]*\"|'[^'<>]*')\s+)*?topic\s*=\s*(?P<quote>[\"'])(?P<topic>[^\"'<>]*?)(?P=quote)"
    r"[^<>]*>(?P<payload>(?:(?!<event[\s>]).)*?)</event\s*>",
    re.DOTALL,
)
_WRAPPING = re.compile(r"[\s│┃|║▌▏▐]+")
_FRAME = re.compile(r"^[\s│┃|║▌▏]*|[\s│┃|║▐]*$", re.MULTILINE)


class LoopEvent(msgspec.Struct, frozen=True):
    """
    What an agent says to the next iteration, as ``<event topic="...">...</event>``.

    :param payload: without what frames it on the screen.
    """

    topic: str
    payload: str

    @property
    def words(self) -> tuple[str, ...]:
        """Its text, however it is wrapped."""
        return tuple(_WORD.findall(self.payload))

    @property
    def spaced(self) -> tuple[str, str]:
        """What two of them have in common that differ only in blanks and line ends."""
        return self.topic, " ".join(self.payload.split())

    @property
    def gist(self) -> tuple[str, str]:
        """What two of them have in common that differ only in how they are wrapped, even within a word, or framed."""
        return self.topic, _WRAPPING.sub("", self.payload)


class Promise:
    """
    The text that ends a loop, where it stands alone on a line.

    :param text: not empty; where it has spaces, there may be any, and line ends.
    :raises ValueError: it has no text.
    """

    def __init__(self, text: str) -> None:
        words = text.split()
        if not words:
            raise ValueError("the completion promise is empty")
        self.text = " ".join(words)
        self.hint = words[0]
        """Wherever the promise is, this is on one line."""
        anywhere = r"\s+".join(map(re.escape, words))
        self._anywhere = re.compile(anywhere)
        self._alone = re.compile(rf"^{_MARKS}({anywhere}){_MARKS}$", re.MULTILINE)

    def alone(self, text: str) -> list[tuple[int, int]]:
        """:returns: where it begins and ends, each time that no other word stands on its line."""
        return [match.span(1) for match in self._alone.finditer(text)] if self.hint in text else []

    def anywhere(self, text: str) -> list[tuple[int, int]]:
        """:returns: where it begins and ends, each time."""
        return [match.span() for match in self._anywhere.finditer(text)]


class Echo:
    """What would be a repetition of the prompt, or of what a person typed."""

    def __init__(self, promise: Promise) -> None:
        self._promise = promise
        self._places: set[tuple[tuple[str, ...], tuple[str, ...]]] = set()
        self._events: set[tuple[str, tuple[str, ...]]] = set()

    def add(self, text: str) -> None:
        """:param text: a prompt, or a line that a person typed. If it is the promise alone, every sight repeats it."""
        self._places |= {(_before(text[:start]), _after(text[end:])) for start, end in self._promise.anywhere(text)}
        self._events |= {(event.topic, event.words) for event in events_in(text)}

    def repeats(self, text: str, start: int, end: int) -> bool:
        """
        :param start: where the promise stands in a text that was shown, as does ``end``.
        :returns: whether it is there only because the prompt names it.
        """
        before, after = _before(text[:start]), _after(text[end:])
        return any(
            _common(b[::-1], before[::-1]) + _common(a, after) >= min(ALIKE, len(a) + len(b)) for b, a in self._places
        )

    def repeats_event(self, event: LoopEvent) -> bool:
        """:returns: whether an event stands in the prompt."""
        return (event.topic, event.words) in self._events


def events_in(text: str, cut_topics: bool = True) -> list[LoopEvent]:
    """
    :param cut_topics: whether topics count that go on in the next line.
    :returns: the events in a text, in their order.
    """
    if "</event" not in text:
        return []
    return [
        LoopEvent(" ".join(match["topic"].split()), _FRAME.sub("", match["payload"]).strip())
        for match in _EVENT.finditer(text)
        if cut_topics or "\n" not in match["topic"]
    ]


def _before(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(text[-REACH:])[-AROUND:])


def _after(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(text[:REACH])[:AROUND])


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """:returns: with how many equal words both begin."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
