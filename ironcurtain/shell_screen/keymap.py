"""What is read from a terminal as keys and pastes. Time is an input: it tells Esc from the begin of a sequence."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ironcurtain.terminal.keys import InputKind, TypedReader, stroke
from ironcurtain.terminal.sequences import PASTE_BEGIN, PASTE_END

ESCAPE_SECONDS = 0.05
"""How long the rest of a sequence may come after its first byte, which alone is the key Esc."""

LATE_SECONDS = 1.0
"""How long after Esc what looks like the rest of a sequence is taken for that, not for letters."""

_CURSOR = {"A": "up", "B": "down", "C": "right", "D": "left", "F": "end", "H": "home"}
_EDITING = {"1": "home", "3": "delete", "4": "end", "5": "page-up", "6": "page-down", "7": "home", "8": "end"}
_NUMBERED = {"9": "tab", "13": "enter", "27": "escape", "127": "backspace"}
_CURSOR_KEY = re.compile(r"\x1b(?:\[|O)(?:1;\d+)?(?P<key>[ABCDFH])")
_EDITING_KEY = re.compile(r"\x1b\[(?P<key>[1-8])(?:;\d+)?~")
_NUMBERED_KEY = re.compile(r"\x1b\[(?P<key>\d+)(?:;1?(?::1)?)?u")
_KEYS = ((_CURSOR_KEY, _CURSOR), (_EDITING_KEY, _EDITING), (_NUMBERED_KEY, _NUMBERED))
_CONTROLS = {"\r": "enter", "\n": "enter", "\t": "tab", "\x7f": "backspace", "\b": "backspace"}


@dataclass(frozen=True, slots=True)
class Key:
    """
    A key, or a paste.

    :param name: the character, or such as ``up``, ``ctrl-c`` and ``paste``; empty for one that has no meaning here.
    :param text: what it adds to a text.
    :param alone: whether one read gave nothing else: a person presses one key at a time, and what comes with others may
        be a paste in a terminal that does not mark it.
    """

    name: str
    text: str = ""
    alone: bool = False


_ESCAPE = Key("escape", alone=True)


class KeyReader:
    """Finds keys and pastes in what is read; mouse and reports are none. Sequences may be cut between reads."""

    def __init__(self) -> None:
        self._pieces = TypedReader()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._paste: list[bytes] = []
        self._held_since: float | None = None
        self._escaped_at: float | None = None

    @property
    def due(self) -> float | None:
        """When :meth:`tick` is to be called at the latest; ``None`` if it need not be."""
        return None if self._held_since is None else self._held_since + ESCAPE_SECONDS

    def feed(self, data: bytes, now: float) -> list[Key]:
        """
        :param data: what one read gave.
        :param now: in seconds of a clock that does not go back.
        """
        keys = self.tick(now)
        if self._held_since is not None and data:
            data, self._held_since = b"\x1b" + data, None
        elif self._escaped_at is not None and data:
            late = now - self._escaped_at < LATE_SECONDS and data[:1] in (b"[", b"O")
            self._escaped_at = None
            data = b"\x1b" + data if late else data
        found = list(self._keys(data))
        if found and found[-1] is _ESCAPE:
            found.pop()
            self._held_since = now
        if len(found) == 1 and not keys and found[0].name != "paste":
            found = [replace(found[0], alone=True)]
        return [*keys, *found]

    def tick(self, now: float) -> list[Key]:
        """:returns: Esc, if nothing came after it in time."""
        if self.due is None or now < self.due:
            return []
        self._held_since, self._escaped_at = None, now
        return [_ESCAPE]

    def forget(self) -> None:
        """Esc is not waited for any more: what was read was for somebody else."""
        self._held_since = self._escaped_at = None

    def _keys(self, data: bytes) -> Iterator[Key]:
        for piece in self._pieces.feed(data):
            if piece.kind is InputKind.PASTED:
                yield from self._pasted(piece.data)
            elif piece.kind is InputKind.TYPED:
                yield from self._typed(piece.data)

    def _pasted(self, data: bytes) -> Iterator[Key]:
        if data == PASTE_BEGIN:
            self._paste = []
        elif data == PASTE_END:
            yield Key("paste", b"".join(self._paste).decode("utf-8", "replace"))
            self._paste = []
        else:
            self._paste.append(data)

    def _typed(self, data: bytes) -> Iterator[Key]:
        if data in (b"\x1b", b"\x1b\x1b"):
            yield _ESCAPE if data == b"\x1b" else Key("escape")
        elif data.startswith(b"\x1b"):
            yield Key(_name(data))
        else:
            for character in self._decoder.decode(data):
                yield _key(character)


def _name(sequence: bytes) -> str:
    name, released = stroke(sequence)
    if released:
        return ""
    text = sequence.decode("latin-1")
    for pattern, names in _KEYS:
        if match := pattern.fullmatch(text):
            return names.get(match["key"], "")
    return name if name.startswith("ctrl-") else ""


def _key(character: str) -> Key:
    if name := _CONTROLS.get(character):
        return Key(name)
    if character < " ":
        return Key(f"ctrl-{chr(ord(character) | 0x40).lower()}")
    return Key(character, character)
