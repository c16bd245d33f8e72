"""
Tell what an agent says from what it repeats: a prompt usually names the promise that ends the loop. Pure.

Screens show prompts, terminals echo what is typed, and agents think aloud about what they were asked. What repeats the
prompt has the prompt's words round the promise. They are compared as words: how a screen wraps, quotes and frames them
does not matter.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

AROUND = 3
"""How many words on each side are compared (our choice)."""

REACH = 2000
"""How many characters away they may be (our choice: frames and margins of a screen lie between)."""

ALIKE = 2
"""
How many of them, next to the promise, make it a repetition where the promise has a line for itself (our choice: one
may be there by accident). Within a sentence one is enough.
"""

_WORD = re.compile(r"\w+")
_GLUE = r"[-./\\]"
"""What joins words to one: between word characters, as in file names."""

_EVENT = re.compile(
    r"<event\s+(?:[\w-]+\s*=\s*(?:\"[^\"<>]*\"|'[^'<>]*')\s+)*?topic\s*=\s*(?P<quote>[\"'])(?P<topic>[^\"'<>]*?)(?P=quote)"
    r"[^<>]*>(?P<payload>(?:(?!<event[\s>]).)*?)</event\s*>",
    re.DOTALL,
)
_WRAPPING = re.compile(r"[\s│┃|║▌▏▐]+")
_FRAME = re.compile(r"^[\s│┃|║▌▏]*|[\s│┃|║▐]*$", re.MULTILINE)


class Event(msgspec.Struct, frozen=True):
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
    The text that ends a loop.

    :param text: not empty; where it has spaces, there may be any, and line ends.
    :raises ValueError: it has no text.
    """

    def __init__(self, text: str) -> None:
        words = text.split()
        if not words:
            raise ValueError("the completion promise is empty")
        before = rf"(?<!\w)(?<!\w{_GLUE})" if re.match(r"\w", words[0]) else ""
        after = rf"(?!\w)(?!{_GLUE}\w)" if re.search(r"\w\Z", words[-1]) else ""
        self.text = " ".join(words)
        self.hint = words[0]
        """Wherever the promise is, this is on one line."""
        self._pattern = re.compile(before + r"\s+".join(map(re.escape, words)) + after)

    def find(self, text: str) -> list[tuple[int, int]]:
        """:returns: where it begins and ends, each time; never as part of another word."""
        return [match.span() for match in self._pattern.finditer(text)] if self.hint in text else []


class Echo:
    """What would be a repetition of the prompt."""

    def __init__(self, promise: Promise) -> None:
        self._promise = promise
        self._places: set[tuple[tuple[str, ...], tuple[str, ...]]] = set()
        self._events: set[tuple[str, tuple[str, ...]]] = set()

    def add(self, text: str, typed: bool = False) -> None:
        """
        :param text: a prompt, or what a person typed.
        :param typed: the latter: a promise without any words round it is then one that the person makes.
        """
        places = {(_before(text[:start]), _after(text[end:])) for start, end in self._promise.find(text)}
        self._places |= places - {((), ())} if typed else places
        self._events |= {(event.topic, event.words) for event in events_in(text)}

    def repeats(self, text: str, start: int, end: int, cut: bool = False) -> bool:
        """
        :param start: where the promise stands in a text that was shown, as does ``end``.
        :param cut: whether the text may have begun earlier.
        :returns: whether it is there only because the prompt names it.
        """
        before, after = _before(text[:start]), _after(text[end:])
        enough = ALIKE if _alone(text, start, end) else 1
        if cut and not before:
            return any(a == after[: len(a)] for _, a in self._places)
        return any(
            _common(b[::-1], before[::-1]) + _common(a, after) >= min(enough, len(a) + len(b)) for b, a in self._places
        )

    def repeats_event(self, event: Event) -> bool:
        """:returns: whether an event stands in the prompt."""
        return (event.topic, event.words) in self._events


def events_in(text: str, cut_topics: bool = True) -> list[Event]:
    """
    :param cut_topics: whether topics count that go on in the next line.
    :returns: the events in a text, in their order.
    """
    if "</event" not in text:
        return []
    return [
        Event(" ".join(match["topic"].split()), _FRAME.sub("", match["payload"]).strip())
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


def _alone(text: str, start: int, end: int) -> bool:
    """:returns: whether there are no other words on the line."""
    line = text[text.rfind("\n", 0, start) + 1 : start] + (text[end:].partition("\n")[0])
    return _WORD.search(line) is None
