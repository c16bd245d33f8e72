"""What is read from a terminal as keys and pastes. Time is an input: it tells Esc from the begin of a sequence."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ironcurtain.terminal.keys import InputKind, InputPiece, TypedReader, stroke
from ironcurtain.terminal.sequences import PASTE_BEGIN, PASTE_END

ESCAPE_SECONDS = 0.05
"""How long the rest of a sequence may come after its first byte, which alone is the key Esc."""

PASTE_SECONDS = 1.0
"""How long a paste must be silent before Ctrl-C alone ends it: a terminal may have cut off its end."""

LATE_SECONDS = 1.0
"""How long after Esc what looks like the rest of a sequence is taken for that, not for letters."""

_CURSOR = {"A": "up", "B": "down", "C": "right", "D": "left", "F": "end", "H": "home"}
_EDITING = {"1": "home", "3": "delete", "4": "end", "5": "page-up", "6": "page-down", "7": "home", "8": "end"}
_NUMBERED = {"9": "tab", "13": "enter", "27": "escape", "127": "backspace"}
_CURSOR_KEY = re.compile(r"\x1b(?:\[|O)(?:1;\d+)?(?P<key>[ABCDFH])")
_EDITING_KEY = re.compile(r"\x1b\[(?P<key>[1-8])(?:;\d+)?~")
_NUMBERED_KEY = re.compile(r"\x1b\[(?P<key>\d+)(?:;1?(?::1)?)?u")
_KEYS = ((_CURSOR_KEY, _CURSOR), (_EDITING_KEY, _EDITING), (_NUMBERED_KEY, _NUMBERED))
_STRINGS = (b"]", b"P", b"_", b"^", b"X")
"""Second bytes of what terminals answer with a string."""

_STRING_ENDS = (b"\x1b\\", b"\x07", b"\x18")
_CONTROLS = {"\r": "enter", "\n": "enter", "\t": "tab", "\x7f": "backspace", "\b": "backspace"}


@dataclass(frozen=True, slots=True)
class Key:
    """
    A key, or a paste.

    :param name: the character, or such as ``up``, ``ctrl-c``, ``alt-b`` and ``paste``; ``unknown`` for a sequence that
        is no key here; empty for what nobody pressed: the mouse, reports, and keys that are released.
    :param text: what it adds to a text.
    :param alone: whether one read gave nothing else: a person presses one key at a time, and what comes with others may
        be a paste in a terminal that does not mark it.
    :param data: what was read.
    """

    name: str
    text: str = ""
    alone: bool = False
    data: bytes = field(default=b"", compare=False)

    @property
    def parts(self) -> tuple[Key, ...]:
        """Esc and another key, if that is what a key with Alt is meant to be: terminals send the same for both."""
        if not self.name.startswith("alt-"):
            return (self,)
        return Key("escape", data=b"\x1b"), _key(self.data[1:].decode("utf-8", "replace"), self.data[1:])


class KeyReader:
    """
    Finds keys and pastes in what is read. However sequences are cut between reads, the keys are the same: only whether
    one is ``alone`` depends on the reads, and for Esc on the time.
    """

    def __init__(self) -> None:
        self._pieces = TypedReader()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._unread = bytearray()
        self._joining: InputKind | None = None
        self._joined = bytearray()
        self._held_since: float | None = None
        self._escaped_at: float | None = None
        self._fed_at = 0.0

    @property
    def due(self) -> float | None:
        """When :meth:`tick` is to be called at the latest; ``None`` if it need not be."""
        return None if self._held_since is None else self._held_since + ESCAPE_SECONDS

    @property
    def pasting(self) -> bool:
        """Whether a paste has begun and not ended."""
        return self._pieces.in_paste

    @property
    def unread(self) -> bytes:
        """What was read and is no key yet: Esc, or the begin of a sequence, a character or a paste."""
        return bytes(self._unread)

    def feed(self, data: bytes, now: float) -> list[Key]:
        """
        :param data: what one read gave.
        :param now: in seconds of a clock that does not go back.
        """
        keys = self.tick(now)
        silent, self._fed_at = now - self._fed_at, now
        if self.pasting and stroke(data) == ("ctrl-c", False) and silent >= PASTE_SECONDS:
            text = self._joined.removeprefix(PASTE_BEGIN) + self._pieces.end_paste()
            cut = Key("paste", text.decode("utf-8", "replace"), data=PASTE_BEGIN + bytes(text) + PASTE_END)
            self._joining = None
            self._unread.clear()
            return [cut, Key("ctrl-c", alone=True, data=data)]
        if self._held_since is not None and data:
            data, self._held_since = b"\x1b" + data, None
            self._unread.clear()
        elif self._escaped_at is not None and data:
            late = now - self._escaped_at < LATE_SECONDS and data[:1] in (b"[", b"O")
            self._escaped_at = None
            data = b"\x1b" + data if late else data
        self._unread += data
        found = list(self._keys(data))
        if found and found[-1].data == b"\x1b" and not self._unread:
            self._unread += found.pop().data
            self._held_since = now
        pressed = [key for key in found if key.name]
        if len(pressed) == 1 and not (keys or self._unread) and pressed[0].name != "paste":
            found = [replace(key, alone=bool(key.name)) for key in found]
        return [*keys, *found]

    def tick(self, now: float) -> list[Key]:
        """:returns: Esc, if nothing came after it in time."""
        if self.due is None or now < self.due:
            return []
        self._held_since, self._escaped_at = None, now
        self._unread.clear()
        return [Key("escape", alone=True, data=b"\x1b")]

    def _keys(self, data: bytes) -> Iterator[Key]:
        for key in self._found(data):
            del self._unread[: len(key.data)]
            yield key

    def _found(self, data: bytes) -> Iterator[Key]:
        for piece in self._pieces.feed(data):
            yield from self._of(piece)
        if len(self._unread) > len(self._decoder.getstate()[0]):  # a sequence has begun: a half character stays one
            yield from self._characters(b"", final=True)

    def _of(self, piece: InputPiece) -> Iterator[Key]:
        if self._joining is piece.kind and (
            piece.kind is InputKind.PASTED or not piece.data.startswith(b"\x1b") or piece.data == _STRING_ENDS[0]
        ):
            self._joined += piece.data
            yield from self._end_of(piece)
            return
        yield from self._cut_off()
        if piece.data.startswith(b"\x1b"):
            yield from self._characters(b"", final=True)
        if piece.data == PASTE_BEGIN or (piece.kind is InputKind.REPORT and piece.data[1:] in _STRINGS):
            self._joining, self._joined = piece.kind, bytearray(piece.data)
        elif piece.kind is InputKind.TYPED:
            yield from self._typed(piece.data)
        else:
            yield Key("paste" if piece.kind is InputKind.PASTED else "", data=piece.data)

    def _end_of(self, piece: InputPiece) -> Iterator[Key]:
        """The pieces of a paste, or of a string that a terminal answers, are one."""
        if piece.kind is InputKind.PASTED:
            if piece.data == PASTE_END:
                data, self._joining = bytes(self._joined), None
                yield Key("paste", data[len(PASTE_BEGIN) : -len(PASTE_END)].decode("utf-8", "replace"), data=data)
        elif piece.data.endswith(_STRING_ENDS):
            self._joining = None
            yield Key("", data=bytes(self._joined))

    def _cut_off(self) -> Iterator[Key]:
        """Something else comes: a string that has not ended is no answer of a terminal."""
        if self._joining is not None:
            self._joining = None
            yield Key("unknown", data=bytes(self._joined))

    def _typed(self, data: bytes) -> Iterator[Key]:
        if not data.startswith(b"\x1b"):
            for byte in data:
                yield from self._characters(bytes((byte,)))
        elif data == b"\x1b":
            yield Key("escape", data=data)
        elif data[1:2] in (b"[", b"O"):
            yield Key(_name(data), data=data)
        else:
            key = _key(data[1:].decode("utf-8", "replace"), data[1:])
            yield Key(f"alt-{key.name}", data=data)

    def _characters(self, byte: bytes, final: bool = False) -> Iterator[Key]:
        before = self._decoder.getstate()[0]
        found = self._decoder.decode(byte, final)
        data = (before + byte)[: len(before + byte) - len(self._decoder.getstate()[0])]
        for number, character in enumerate(found):
            own = data if number == len(found) - 1 else data[:-1]  # the last byte made clear that those before are none
            data = data[len(own) :]
            yield _key(character, own)


def _name(sequence: bytes) -> str:
    name, released = stroke(sequence)
    if released:
        return ""
    text = sequence.decode("latin-1")
    for pattern, names in _KEYS:
        if match := pattern.fullmatch(text):
            return names.get(match["key"], "unknown")
    return name if name.startswith("ctrl-") else "unknown"


def _key(character: str, data: bytes) -> Key:
    if name := _CONTROLS.get(character):
        return Key(name, data=data)
    if character < " ":
        return Key(f"ctrl-{chr(ord(character) | 0x40).lower()}", data=data)
    return Key(character, character, data=data)
