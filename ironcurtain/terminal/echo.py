"""
Find the promise that ends a loop, and events, in text; and recognise repetitions of the prompt.

A prompt usually contains the promise, and agents' screens show the prompt. A repetition has the words of the prompt
around the promise. The comparison uses words, so that the screen's wrapping, quoting and framing do not matter.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

AROUND = 3
"""Number of words compared on each side."""

REACH = 2000
"""Maximum distance in characters of these words: frames and margins of a screen can be between."""

ALIKE = 2
"""Number of equal words next to the promise that make it a repetition: one can be a coincidence."""

_WORD = re.compile(r"\w+")
_MARKS = r"[^\w\n]*"
"""What may be beside the promise on its line: bullets, quotes, Markdown, frames."""

_TAG = re.compile(r"<promise\s*>(.*)</promise\s*>", re.IGNORECASE | re.DOTALL)
_TAGS = re.compile(r"</?promise\s*>", re.IGNORECASE)
"""They are no words of a prompt: a promise is recognised with and without them."""

_EVENT = re.compile(
    r"<event\s+(?:[\w-]+\s*=\s*(?:\"[^\"<>]*\"|'[^'<>]*')\s+)*?topic\s*=\s*(?P<quote>[\"'])(?P<topic>[^\"'<>]*?)(?P=quote)"
    r"[^<>]*>(?P<payload>(?:(?!<event[\s>]).)*?)</event\s*>",
    re.DOTALL,
)
_WRAPPING = re.compile(r"[\s│┃|║▌▏▐]+")
_FRAME = re.compile(r"^[\s│┃|║▌▏]*|[\s│┃|║▐]*$", re.MULTILINE)


class LoopEvent(msgspec.Struct, frozen=True):
    """
    A message of the agent for the next iteration: ``<event topic="...">...</event>``.

    :param payload: without the frames of the screen.
    """

    topic: str
    payload: str

    @property
    def words(self) -> tuple[str, ...]:
        """Its text, with normalised wrapping."""
        return tuple(_WORD.findall(self.payload))

    @property
    def spaced(self) -> tuple[str, str]:
        """Its text without differences in blanks and line ends."""
        return self.topic, " ".join(self.payload.split())

    @property
    def gist(self) -> tuple[str, str]:
        """Its text without differences in wrapping, even within a word, and in framing."""
        return self.topic, _WRAPPING.sub("", self.payload)


class Promise:
    """
    The text that ends a loop if it is alone on a line, as it is or in a tag: ``<promise>TEXT</promise>``.

    :param text: not empty; spaces in it match any white space, including line ends. With the tag, it counts only in it.
    :raises ValueError: it has no text.
    """

    def __init__(self, text: str) -> None:
        tagged = _TAG.fullmatch(text.strip())
        words = (tagged[1] if tagged else text).split()
        if not words:
            raise ValueError("the completion promise is empty")
        self.text = f"<promise>{' '.join(words)}</promise>" if tagged else " ".join(words)
        self.hint = words[0]
        """Matches the promise on one line."""
        plain = r"\s+".join(map(re.escape, words))
        anywhere = rf"(?i:<promise\s*>)\s*{plain}\s*(?i:</promise\s*>){'' if tagged else f'|{plain}'}"
        self._anywhere = re.compile(anywhere)
        self._alone = re.compile(rf"^{_MARKS}({anywhere}){_MARKS}$", re.MULTILINE)

    def alone(self, text: str) -> list[tuple[int, int]]:
        """:returns: begin and end of each occurrence that is alone on its line."""
        return [match.span(1) for match in self._alone.finditer(text)] if self.hint in text else []

    def anywhere(self, text: str) -> list[tuple[int, int]]:
        """:returns: begin and end of each occurrence."""
        return [match.span() for match in self._anywhere.finditer(text)]


class Echo:
    """Recognises repetitions of the prompt, or of a person's input."""

    def __init__(self, promise: Promise) -> None:
        self._promise = promise
        self._places: set[tuple[tuple[str, ...], tuple[str, ...]]] = set()
        self._events: set[tuple[str, tuple[str, ...]]] = set()

    def add(self, text: str) -> None:
        """
        :param text: a prompt, or a line that a person typed. If it is only the promise, every occurrence is a
            repetition.
        """
        self._places |= {(_before(text[:start]), _after(text[end:])) for start, end in self._promise.anywhere(text)}
        self._events |= {(event.topic, event.words) for event in events_in(text)}

    def repeats(self, text: str, start: int, end: int) -> bool:
        """
        :param start: position of the promise in a text that was shown, with ``end``.
        :returns: whether it only repeats the prompt.
        """
        before, after = _before(text[:start]), _after(text[end:])
        return any(
            _common(b[::-1], before[::-1]) + _common(a, after) >= min(ALIKE, len(a) + len(b)) for b, a in self._places
        )

    def repeats_event(self, event: LoopEvent) -> bool:
        """:returns: whether an event is in the prompt."""
        return (event.topic, event.words) in self._events


def events_in(text: str, cut_topics: bool = True) -> list[LoopEvent]:
    """
    :param cut_topics: whether topics that continue on the next line count.
    :returns: the events in a text, in order.
    """
    if "</event" not in text:
        return []
    return [
        LoopEvent(" ".join(match["topic"].split()), _FRAME.sub("", match["payload"]).strip())
        for match in _EVENT.finditer(text)
        if cut_topics or "\n" not in match["topic"]
    ]


def _before(text: str) -> tuple[str, ...]:
    return tuple(_words(text[-REACH:])[-AROUND:])


def _after(text: str) -> tuple[str, ...]:
    return tuple(_words(text[:REACH])[:AROUND])


def _words(text: str) -> list[str]:
    return _WORD.findall(_TAGS.sub(" ", text))


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """:returns: the number of equal words at the beginning of both."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
