"""
What a shell says about itself within its output: where prompts and commands begin and end, where it is, and which
instructions were typed.

Marks are operating system commands (OSC) of the terminal: number 133 as other terminals know it (FinalTerm's, with the
``aid`` of kitty and iTerm2), and a number of our own for the directory and for instructions. Each carries a nonce that
only the shell was told, so that a file that is shown cannot say anything in its name.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as Base64Error
from dataclasses import dataclass

PRIVATE = 6973
"""The number of our own commands; no terminal uses it."""

CAP = 16 * 1024
"""How many bytes a mark may take; what is longer is output."""


@dataclass(frozen=True, slots=True)
class PromptBegan:
    """The shell begins to draw its prompt."""


@dataclass(frozen=True, slots=True)
class PromptEnded:
    """The prompt is there, and what is typed goes to the line editor. Comes again when the prompt is drawn again."""


@dataclass(frozen=True, slots=True)
class CommandBegan:
    """Output of a command follows."""


@dataclass(frozen=True, slots=True)
class CommandEnded:
    """:param status: of the command."""

    status: int


@dataclass(frozen=True, slots=True)
class DirectoryChanged:
    """:param path: where the shell is; comes with each prompt."""

    path: str


@dataclass(frozen=True, slots=True)
class InstructionTyped:
    """
    Enter was pressed on a line, or on several, of which each begins with ``#``. Comes before the next prompt.

    :param text: the lines without that.
    """

    text: str


Mark = PromptBegan | PromptEnded | CommandBegan | CommandEnded | DirectoryChanged | InstructionTyped

_SIMPLE: dict[bytes, Mark] = {b"A": PromptBegan(), b"B": PromptEnded(), b"C": CommandBegan()}

_BEGINNING = re.compile(rb"\x1b\](?:1(?:3(?:3(?:;[ -~]*\x1b?)?)?)?|6(?:9(?:7(?:3(?:;[ -~]*\x1b?)?)?)?)?)?")
"""What may be the first part of a mark."""

_PASTE = re.compile(rb"\x1b\[\?2004([hl])")
_PASTE_LENGTH = len(b"\x1b[?2004h")


class MarkReader:
    """
    Takes marks out of the output of a shell.

    :param nonce: letters and digits; marks without it are output.
    :ivar bracketed_paste: whether the line editor has asked for brackets round what is pasted.
    """

    def __init__(self, nonce: str) -> None:
        self._mark = re.compile(
            rb"\x1b\](?:133;(?:([ABC])|D;(\d{1,3}));aid=%b|%d;%b;(cwd|instruction);([A-Za-z0-9+/=]*))(?:\x07|\x1b\\)"
            % (nonce.encode(), PRIVATE, nonce.encode())
        )
        self._held = b""
        self._tail = b""
        self.bracketed_paste = False

    def feed(self, data: bytes) -> list[bytes | Mark]:
        """
        Take output as it comes, in any slicing.

        :returns: the output without its marks, and these, in order; the first part of what may be a mark is held back.
        """
        data, self._held = self._held + data, b""
        pieces: list[bytes | Mark] = []
        done, at = 0, data.find(b"\x1b]")
        while at >= 0:
            found = self._mark.match(data, at)
            if found and found.end() - at <= CAP and (mark := _read(found)) is not None:
                self._pass(pieces, data[done:at])
                pieces.append(mark)
                done = at = found.end()
            elif len(data) - at <= CAP and _BEGINNING.fullmatch(data, at):
                return self._hold(pieces, data, done, at)
            else:
                at += 2
            at = data.find(b"\x1b]", at)
        return self._hold(pieces, data, done, len(data) - data.endswith(b"\x1b", done))

    def _hold(self, pieces: list[bytes | Mark], data: bytes, done: int, at: int) -> list[bytes | Mark]:
        self._pass(pieces, data[done:at])
        self._held = data[at:]
        return pieces

    def _pass(self, pieces: list[bytes | Mark], data: bytes) -> None:
        if not data:
            return
        pieces.append(data)
        seen = self._tail + data
        at = max(seen.rfind(b"\x1b[?2004h"), seen.rfind(b"\x1b[?2004l"))
        if found := _PASTE.match(seen, at) if at >= 0 else None:
            self.bracketed_paste = found[1] == b"h"
        self._tail = seen[1 - _PASTE_LENGTH :]


def _read(found: re.Match[bytes]) -> Mark | None:
    letter, status, kind, encoded = found.groups()
    if status is not None:
        return CommandEnded(int(status))
    if letter is not None:
        return _SIMPLE[letter]
    try:
        content = b64decode(encoded, validate=True)
    except Base64Error:
        return None
    if kind == b"cwd":
        return DirectoryChanged(content.decode(errors="surrogateescape"))
    return InstructionTyped(without_signs(content.decode(errors="replace")))


def without_signs(typed: str) -> str:
    """
    :param typed: lines that begin with ``#``, or are blank.
    :returns: what they say.
    """
    return "\n".join(line.strip().lstrip("#").strip() for line in typed.splitlines()).strip()
