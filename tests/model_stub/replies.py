"""
What the stub is to answer: values that a test writes, or that a JSON file holds. Pure.

A file is ``{"replies": [...]}``; an entry with ``status`` is a :class:`Refusal`, any other a :class:`Answer`::

    {"replies": [
        {"status": 429, "headers": {"retry-after": "1"}},
        {"content": [{"type": "text", "chunks": ["Hel", "lo"]}]},
        {"content": [{"type": "tool_use", "name": "execute_code", "input": {"code": "1"}}], "pause": 0.05}
    ]}
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec


class Text(msgspec.Struct, frozen=True, tag="text"):
    """A text block, sent in these chunks."""

    chunks: tuple[str, ...]


class Thinking(msgspec.Struct, frozen=True, tag="thinking"):
    """A block of reasoning with its signature."""

    chunks: tuple[str, ...] = ("Let me think.",)
    signature: str = "c2lnbmF0dXJl"


class Tool(msgspec.Struct, frozen=True, tag="tool_use"):
    """A tool_use block; its input is sent as JSON in ``pieces`` pieces."""

    name: str
    input: dict[str, Any]
    id: str = ""
    pieces: int = 3


class Raw(msgspec.Struct, frozen=True, tag="raw"):
    """A block of any kind, whole at its start."""

    block: dict[str, Any]


Content = Text | Thinking | Tool | Raw


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """
    A 200 response.

    :ivar stop_reason: empty for ``tool_use`` if there is such a block, else ``end_turn``.
    :ivar usage: of the whole answer; goes into message_start (input) and message_delta (output).
    :ivar pings: ping events after message_start.
    :ivar end: how it ends: complete; or ``after`` so many events with an error event, with silence for ever, with a cut
        connection, or properly but too short.
    :ivar error: type and message of the error event.
    :ivar held: send each event only when the test calls ``ModelStub.release()``.
    :ivar pause: seconds between two writes.
    :ivar slice: most bytes of one write, 0 for one event a write.
    """

    content: tuple[Content, ...] = ()
    stop_reason: str = ""
    usage: dict[str, int] = msgspec.field(default_factory=lambda: {"input_tokens": 10, "output_tokens": 5})
    pings: int = 1
    end: Literal["complete", "error", "stall", "cut", "short"] = "complete"
    after: int = 0
    error: tuple[str, str] = ("overloaded_error", "Overloaded")
    held: bool = False
    pause: float = 0.0
    slice: int = 0


class Refusal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """
    A response with another status.

    :ivar type: and ``message``: of the error object; made from the status if empty.
    :ivar body: sent as it is in place of the error object.
    """

    status: int
    type: str = ""
    message: str = ""
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    body: str = ""


class Dropped(msgspec.Struct, frozen=True):
    """Close the connection without a byte of response. Only for tests in the same process."""


Reply = Answer | Refusal | Dropped


def parse_replies(text: str) -> list[Reply]:
    """
    Read a file's text.

    :raises msgspec.ValidationError: an entry is wrong.
    """
    entries = msgspec.json.decode(text, type=dict[Literal["replies"], list[dict[str, Any]]])["replies"]
    return [_entry(entry) for entry in entries]


def _entry(entry: dict[str, Any]) -> Reply:
    return msgspec.convert(entry, Refusal) if "status" in entry else msgspec.convert(entry, Answer)
