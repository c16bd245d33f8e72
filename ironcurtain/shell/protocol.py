"""The messages of :mod:`ironcurtain.shell.messages` as lines of JSON, and instructions as lines of text."""

from __future__ import annotations

import msgspec

from ironcurtain.errors import UsageError
from ironcurtain.shell.messages import Action, Instruct, Message

LINE_LIMIT = 1024 * 1024
"""Most bytes of a line of input."""

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Action)


def encode(message: Message) -> bytes:
    """:returns: a message as one line."""
    return _encoder.encode(message) + b"\n"


def decode_action(line: bytes) -> Action | None:
    """
    Read a line: an action as JSON, or an instruction after ``#``.

    :returns: ``None`` for a blank line.
    :raises UsageError: it is neither.
    """
    line = line.strip()
    if not line:
        return None
    if line.startswith(b"#"):
        return Instruct(text=line.lstrip(b"#").strip().decode("utf-8", "replace"))
    try:
        action: Action = _decoder.decode(line)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError, RecursionError) as e:
        raise UsageError(f"a line is neither JSON of the protocol nor an instruction that begins with #: {e}") from None
    return action


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
