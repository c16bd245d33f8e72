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

import msgspec

PRIVATE = 6973
"""The number of our own commands; no terminal uses it."""

CAP = 16 * 1024
"""How many bytes a mark may take; what is longer is output."""


class PromptBegan(msgspec.Struct, frozen=True):
    """The shell begins to draw its prompt."""


class PromptEnded(msgspec.Struct, frozen=True):
    """The prompt is there, and what is typed goes to the line editor. Comes again when the prompt is drawn again."""


class CommandBegan(msgspec.Struct, frozen=True):
    """Output of a command follows."""


class CommandEnded(msgspec.Struct, frozen=True):
    """:param status: of the command."""

    status: int


class DirectoryChanged(msgspec.Struct, frozen=True):
    """:param path: where the shell is; comes with each prompt."""

    path: str


class InstructionTyped(msgspec.Struct, frozen=True):
    """
    Enter was pressed on a line, or on several, of which each begins with ``#``. Comes before the next prompt.

    :param text: the lines without that.
    """

    text: str


class VariableReported(msgspec.Struct, frozen=True):
    """
    A variable of the environment when an instruction was typed. Comes after the instruction.

    :param value: ``None``: it is not set, or not exported.
    """

    name: str
    value: str | None


Mark = PromptBegan | PromptEnded | CommandBegan | CommandEnded | DirectoryChanged | InstructionTyped | VariableReported

_SIMPLE: dict[bytes, Mark] = {b"A": PromptBegan(), b"B": PromptEnded(), b"C": CommandBegan()}

_BEGINNING = re.compile(rb"\x1b\](?:1(?:3(?:3(?:;[ -~]*\x1b?)?)?)?|6(?:9(?:7(?:3(?:;[ -~]*\x1b?)?)?)?)?)?")
"""What may be the first part of a mark."""

_CLEARED = re.compile(rb"\r(?:\r|\x1b(?:\[[AK]|M))*(?:\x1b\[?)?\Z")
"""How a line editor clears the rows of a line, or the first part of that."""

_ENDED = re.compile(rb"(?:\x1b(?:\[A|M))*(?:(?:\x1b\[C)+\x1b\[K[^\x1b\r\n]*)?\r?\n\Z")
"""
How a line editor goes to the next line when it is done: up first, if the last row of what was edited is empty, and to
its last character, if that fills a row.
"""

_PASTE_ON, _PASTE_OFF = b"\x1b[?2004h", b"\x1b[?2004l"

_ALTERNATE = re.compile(rb"\x1b\[\?(?:1049|1047|47)([hl])")
"""How a program that draws the whole screen begins and ends; none is longer than what begins pastes."""


class MarkReader:
    """
    Takes marks out of the output of a shell.

    bash clears the line that is edited and draws it again when Enter calls the hook that looks at it. What a command
    wrote in front of the prompt would be lost; hence this drawing is left out, too.

    :param nonce: letters and digits; marks without it are output.
    :ivar bracketed_paste: whether the line editor has asked for brackets round what is pasted.
    :ivar alternate: whether a program draws on the alternate screen, as editors do.
    """

    def __init__(self, nonce: str) -> None:
        self._nonce = nonce
        self._mark = _pattern(nonce, nonce)
        self._held = b""
        self._tail = b""
        self._pieces: list[bytes | Mark] = []
        self._at_prompt = False
        self._redrawing = False
        self.bracketed_paste = self.alternate = False

    def also(self, nonce: str) -> None:
        """:param nonce: letters and digits; from now on commands can begin and end with it, and with no earlier one."""
        self._mark = _pattern(f"(?:{self._nonce}|{nonce})", self._nonce)

    def feed(self, data: bytes) -> list[bytes | Mark]:
        """
        Take output as it comes, in any slicing.

        :returns: the output without its marks, and these, in order; the first part of what may be a mark is held back.
        """
        data, self._held, self._pieces = self._held + data, b"", []
        while data:
            data = self._redrawn(data) if self._redrawing else self._piece(data)
        return self._pieces

    def _piece(self, data: bytes) -> bytes:
        """:returns: what is to be read next; nothing if the rest is held back."""
        at = data.find(b"\x1b]")
        while at >= 0:
            found = self._mark.match(data, at)
            if found and found.end() - at <= CAP and self._marked(found, data[:at]):
                return data[found.end() :]
            if len(data) - at <= CAP and _BEGINNING.fullmatch(data, at):
                break
            at = data.find(b"\x1b]", at + 2)
        end = at if at >= 0 else len(data) - data.endswith(b"\x1b")
        if self._at_prompt and (cleared := _CLEARED.search(data, 0, end)):
            end = cleared.start()
        self._pass(data[:end])
        self._held = data[end:]
        return b""

    def _marked(self, found: re.Match[bytes], before: bytes) -> bool:
        """:returns: whether it is a mark."""
        if found[3]:
            cleared = _CLEARED.search(before)
            self._pass(before[: cleared.start()] if cleared and self.bracketed_paste else before)
            self._redrawing = cleared is not None and self.bracketed_paste
            return True
        if (mark := _read(found)) is None:
            return False
        self._pass(before)
        self._pieces.append(mark)
        self._at_prompt = isinstance(mark, PromptEnded)
        return True

    def _redrawn(self, data: bytes) -> bytes:
        """Leave out what the line editor draws until it is done with the line."""
        end = data.find(_PASTE_OFF, 0, CAP)
        if end < 0 and len(data) < CAP:
            self._held = data
            return b""
        self._redrawing = False
        if ended := _ENDED.search(data, 0, end) if end >= 0 else None:
            self._pass(ended[0])
        return data[max(end, 0) :]

    def _pass(self, data: bytes) -> None:
        if not data:
            return
        self._pieces.append(data)
        seen = self._tail + data
        on, off = seen.rfind(_PASTE_ON), seen.rfind(_PASTE_OFF)
        if on != off:
            self.bracketed_paste = on > off
        if b"\x1b[?" in seen and (switches := _ALTERNATE.findall(seen)):
            self.alternate = switches[-1] == b"h"
        self._tail = seen[1 - len(_PASTE_ON) :]


def _pattern(aid: str, nonce: str) -> re.Pattern[bytes]:
    return re.compile(
        rb"\x1b\](?:133;(?:([ABC])|D;(\d{1,3}));aid=%b|%d;%b;(?:(entered)|(cwd|instruction|variable);([A-Za-z0-9+/=]*)))"
        rb"(?:\x07|\x1b\\)" % (aid.encode(), PRIVATE, nonce.encode())
    )


def _read(found: re.Match[bytes]) -> Mark | None:
    letter, status, _, kind, encoded = found.groups()
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
    if kind == b"variable":
        variable, equals, value = content.decode(errors="replace").partition("=")
        return VariableReported(variable, value if equals else None)
    return InstructionTyped(without_signs(content.decode(errors="replace")))


def without_signs(typed: str) -> str:
    """
    :param typed: lines that begin with ``#``, or are blank.
    :returns: what they say.
    """
    return "\n".join(line.strip().lstrip("#").strip() for line in typed.splitlines()).strip()
