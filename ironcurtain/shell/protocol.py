"""The messages of :mod:`ironcurtain.shell.messages` as lines of JSON, and instructions as lines of text."""

from __future__ import annotations

import msgspec

from ironcurtain.errors import UsageError
from ironcurtain.shell.messages import Action, Instruct, Message

LINE_LIMIT = 1024 * 1024
"""Most bytes of a line of input."""

INSTRUCTION_LIMIT = 128 * 1024
"""Most bytes of an instruction."""

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Action)


def encode(message: Message) -> bytes:
    """:returns: a message as one line."""
    return _encoder.encode(message) + b"\n"


class InputLines:
    """Cuts input into lines, of which the last need not end. Of a line that is too long, nothing is kept."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._too_long = False

    def feed(self, data: bytes) -> list[bytes | None]:
        """
        :param data: bytes in any slicing.
        :returns: the lines that are whole, ``None`` for each over :data:`LINE_LIMIT`.
        """
        found: list[bytes | None] = []
        *whole, rest = data.split(b"\n")
        for part in whole:
            self._add(part)
            found.append(None if self._too_long else bytes(self._line))
            self._line.clear()
            self._too_long = False
        self._add(rest)
        return found

    def end(self) -> list[bytes | None]:
        """:returns: the last line, if it has no end."""
        return self.feed(b"\n") if self._line or self._too_long else []

    def _add(self, part: bytes) -> None:
        if self._too_long or len(self._line) + len(part) > LINE_LIMIT:
            self._too_long = True
            self._line.clear()
        else:
            self._line += part


def checked_instruction(text: str) -> str:
    """
    :returns: an instruction, without blanks around it.
    :raises UsageError: it is empty or too long.
    """
    text = text.strip()
    if not text.strip("#").strip():
        raise UsageError("the instruction is empty: say what is to be done after #")
    if (size := len(text.encode("utf-8", "replace"))) > INSTRUCTION_LIMIT:
        why = f"the instruction has {size} bytes, over the limit of {INSTRUCTION_LIMIT}"
        raise UsageError(f"{why}: put data into a file, and name that in the instruction")
    return text


def decode_action(line: bytes | None) -> Action | None:
    """
    Read a line: an action as JSON, or an instruction after ``#``.

    :param line: ``None``: one that is too long.
    :returns: ``None`` for a blank line.
    :raises UsageError: it is neither, an empty instruction, or too long.
    """
    if line is None:
        raise UsageError(f"a line has over {LINE_LIMIT} bytes, and was left out")
    line = line.strip()
    if not line:
        return None
    if line.startswith(b"#"):
        try:
            return Instruct(text=checked_instruction(line.lstrip(b"#").decode()))
        except UnicodeDecodeError:
            raise UsageError("an instruction is no UTF-8 text, and was left out") from None
    try:
        action: Action = _decoder.decode(line)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError, RecursionError) as e:
        raise UsageError(f"a line is neither JSON of the protocol nor an instruction that begins with #: {e}") from None
    return Instruct(text=checked_instruction(action.text)) if isinstance(action, Instruct) else action


def instruction_lines(text: str) -> list[str]:
    """
    Read a file of instructions.

    :returns: the lines that begin with ``#``, without it; those that follow each other are one instruction. ``#!`` in
        the first line is for the kernel.
    """
    found: list[list[str]] = [[]]
    for number, line in enumerate(text.splitlines()):
        if line.startswith("#") and not (number == 0 and line.startswith("#!")):
            found[-1].append(line.lstrip("#").strip())
        elif found[-1]:
            found.append([])
    return ["\n".join(lines) for lines in found if any(lines)]


def schema() -> dict[str, object]:
    """:returns: the JSON schema of both directions."""
    (messages, actions), definitions = msgspec.json.schema_components((Message, Action), ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "ironcurtain shell --json",
        "description": "Lines of standard output are messages; lines of standard input are actions.",
        "properties": {"message": messages, "action": actions},
        "$defs": definitions,
    }
