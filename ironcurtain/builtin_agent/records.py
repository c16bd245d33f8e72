"""The records of a conversation, one JSON object a line: what was said and done, in the order in which it happened."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from ironcurtain.errors import ConfigurationError
from ironcurtain.llm.model import Block, ProviderBlock, TextBlock, TokenUsage, ToolResult, ToolUse
from ironcurtain.secrets.redaction import Redactor

FORMAT_VERSION = 1
"""Format version of the file, in each :class:`Started`; newer ones are refused."""

TEXT_LIMIT = 1000
"""Maximum length in characters of a text in a call's arguments; the program that makes the call has all of it."""


class Record(msgspec.Struct, frozen=True, tag_field="type", kw_only=True):
    """Base of all records."""


class Started(Record, frozen=True, tag="start"):
    """A process began to work on the conversation, with a new interpreter. ``time``: UTC in ISO 8601."""

    version: int = FORMAT_VERSION
    time: str = ""


class Said(Record, frozen=True, tag="message"):
    """The person's message."""

    text: str
    time: str = ""


class TextPart(Record, frozen=True, tag="text"):
    """Text of the model."""

    text: str


class UsePart(Record, frozen=True, tag="tool_use"):
    """A tool use of the model."""

    id: str
    name: str
    input: dict[str, Any]


class ProviderPart(Record, frozen=True, tag="provider"):
    """A block that only the model's provider understands."""

    provider: str
    data: dict[str, Any]


class Replied(Record, frozen=True, tag="reply"):
    """An answer of the model, with the tokens of its request."""

    content: tuple[TextPart | UsePart | ProviderPart, ...]
    usage: TokenUsage = TokenUsage()


class Called(Record, frozen=True, tag="call"):
    """
    A program is about to make a call.

    :ivar number: of the call in this process, from 1.
    :ivar audit: number of the last record of the audit log before it.
    """

    number: int
    server: str
    tool: str
    arguments: dict[str, Any]
    audit: int


class CallEnded(Record, frozen=True, tag="call_end"):
    """:ivar outcome: ``success``, ``denied``, ``failed`` or ``withdrawn``."""

    number: int
    outcome: str
    error: str = ""


class ResultPart(msgspec.Struct, frozen=True):
    """
    The result of a tool use, as the model got it.

    :ivar images: descriptions of the pictures in it, which themselves are not kept.
    """

    id: str
    content: str
    is_error: bool
    images: tuple[str, ...] = ()


class Results(Record, frozen=True, tag="results"):
    """The results of the tool uses. ``variables_lost``: the interpreter had to be restarted."""

    results: tuple[ResultPart, ...]
    variables_lost: bool = False


class Ended(Record, frozen=True, tag="end"):
    """The turn ended; ``error`` says why there is no answer; ``left_out``: its message did not fit the context."""

    error: str = ""
    left_out: bool = False


class Resumed(Record, frozen=True, tag="resumed"):
    """The session was resumed; the model is told ``note`` with the next message."""

    note: str


class Shorter(Record, frozen=True, tag="compaction"):
    """
    The conversation was shortened for the model.

    :ivar kept: number of turns, the newest, that it gets.
    :ivar lean: number of these, the oldest, without programs and results.
    :ivar images: number of pictures, the newest, that it gets.
    :ivar summary: of the turns that were left out; may be empty.
    """

    kept: int
    lean: int
    images: int = 0
    summary: str = ""


AnyRecord = Started | Said | Replied | Called | CallEnded | Results | Ended | Resumed | Shorter

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[AnyRecord] = msgspec.json.Decoder(AnyRecord)


def encode(record: AnyRecord) -> bytes:
    """:returns: the record as a line, without its end."""
    try:
        return _encoder.encode(record)
    except UnicodeEncodeError:  # a lone surrogate, which UTF-8 cannot represent
        return json.dumps(msgspec.to_builtins(record), ensure_ascii=False).encode("utf-8", "replace")


def decode(line: bytes) -> AnyRecord | None:
    """
    :returns: the record on a line; ``None`` if a crash left it incomplete.
    :raises ConfigurationError: the file has a newer format.
    """
    try:
        record = _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if isinstance(record, Started) and record.version > FORMAT_VERSION:
        raise ConfigurationError(
            "conversation.jsonl", f"has format version {record.version}: use a newer ironcurtain to resume the session"
        )
    return record


def parts(blocks: Sequence[Block], redactor: Redactor) -> tuple[TextPart | UsePart | ProviderPart, ...]:
    """
    :returns: an answer for a record, without secrets. A provider's block must not be changed, so one with a secret is
        left out.
    """
    found: list[TextPart | UsePart | ProviderPart] = []
    for block in blocks:
        if isinstance(block, TextBlock):
            found.append(TextPart(text=redactor.text(block.text)))
        elif isinstance(block, ToolUse):
            found.append(UsePart(id=block.id, name=block.name, input=redactor.value(block.input)))
        elif isinstance(block, ProviderBlock) and _is_clean(data := dict(block.data), redactor):
            found.append(ProviderPart(provider=block.provider, data=data))
    return tuple(found)


def blocks(parts: Sequence[TextPart | UsePart | ProviderPart]) -> tuple[Block, ...]:
    """:returns: the answer of a record."""
    return tuple(map(_block, parts))


def results(parts: Sequence[ResultPart]) -> tuple[ToolResult, ...]:
    """:returns: the results of a record."""
    return tuple(ToolResult(part.id, _without_images(part), part.is_error) for part in parts)


def _without_images(part: ResultPart) -> str:
    gone = (f"[IronCurtain: a picture shown here was not kept: {each}]" for each in part.images)
    return "\n".join((part.content, *gone))


def _block(part: TextPart | UsePart | ProviderPart) -> Block:
    match part:
        case TextPart(text=text):
            return TextBlock(text)
        case UsePart(id=id, name=name, input=input):
            return ToolUse(id, name, input)
        case ProviderPart(provider=provider, data=data):
            return ProviderBlock(provider, data)


def _is_clean(value: Any, redactor: Redactor) -> bool:
    if isinstance(value, dict):
        return all(_is_clean(member, redactor) for member in value.values())
    if isinstance(value, list):
        return all(_is_clean(member, redactor) for member in value)
    if not isinstance(value, str):
        return True
    # Signatures and encrypted reasoning have no blanks, and can look like credentials.
    return (redactor.text if any(map(str.isspace, value)) else redactor.live)(value) == value
