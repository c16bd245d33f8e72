"""
What the stub is to answer: values that a test writes, or that a JSON file holds; the same for every API.

A file is ``{"replies": [...]}``; an entry with ``status`` is a :class:`Refusal`, one with ``drop`` a :class:`Dropped`,
any other an :class:`Answer`. ``times`` in an entry stands for as many equal entries::

    {"replies": [
        {"status": 429, "headers": {"retry-after": "1"}, "times": 2},
        {"drop": true},
        {"content": [{"type": "mcp_call", "name": "files__read_file", "arguments": {"path": "note.txt"}}]},
        {"content": [{"type": "text", "chunks": ["Hel", "lo"]}], "pause": 0.05}
    ]}

Wherever text goes out, ``{{key}}`` stands for the key that came with the request, ``{{key:base64}}`` for its base64,
and ``{{key:escaped}}`` for its JSON escapes. In a call's arguments such a mark needs ``"pieces": 1``, or it is cut.
``{{now}}`` stands for the seconds of the machine's monotonic clock when a stream sends it.
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
    """
    A call of a tool by the name that the client declared; its input is sent as JSON in ``pieces`` pieces.

    :ivar namespace: of the tool, in the one API that has them (OpenAI's).
    """

    name: str
    input: dict[str, Any]
    id: str = ""
    pieces: int = 3
    namespace: str = ""


class CustomTool(msgspec.Struct, frozen=True, tag="custom_tool"):
    """A call of a tool that takes any text, such as Codex's ``exec`` (OpenAI's API only)."""

    name: str
    input: str
    pieces: int = 3


class McpCall(msgspec.Struct, frozen=True, tag="mcp_call"):
    """
    A call of an MCP server's tool, made in the way in which the agent that asks names such tools.

    :ivar name: as the server has it.
    :ivar server: as the agent's configuration has it.
    """

    name: str
    arguments: dict[str, Any]
    server: str = "ironcurtain"
    pieces: int = 3


class Raw(msgspec.Struct, frozen=True, tag="raw"):
    """A block of any kind (Anthropic), an output item (OpenAI) or a part (Google), whole at its start."""

    block: dict[str, Any]


Content = Text | Thinking | Tool | Raw
"""What every API has."""

Block = Content | CustomTool | McpCall
"""What an answer may be made of."""


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """
    A 200 response.

    :ivar stop_reason: in Anthropic's words, and turned into the other APIs'; empty for ``tool_use`` if there is such a
        block, else ``end_turn``.
    :ivar usage: of the whole answer, in Anthropic's words (input without what comes from a cache); the other APIs'
        counts are made from it.
    :ivar pings: ping events after message_start (Anthropic's API only).
    :ivar end: how it ends: complete; or ``after`` so many events with an error event, with silence for ever, with a cut
        connection, or properly but too short.
    :ivar error: type and message of the error event.
    :ivar held: send each event only when the test calls ``ModelStub.release()``.
    :ivar pause: seconds between two writes.
    :ivar slice: most bytes of one write, 0 for one event a write.
    """

    content: tuple[Block, ...] = ()
    stop_reason: str = ""
    usage: dict[str, int] = msgspec.field(default_factory=lambda: {"input_tokens": 10, "output_tokens": 5})
    headers: dict[str, str] = msgspec.field(default_factory=dict)
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


class Dropped(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Close the connection without a byte of response."""

    drop: Literal[True] = True


Reply = Answer | Refusal | Dropped


def parse_replies(text: str | bytes) -> list[Reply]:
    """
    Read a file's text.

    :raises msgspec.ValidationError: an entry is wrong.
    """
    entries = msgspec.json.decode(text, type=dict[Literal["replies"], list[dict[str, Any]]])["replies"]
    return [reply for entry in entries for reply in _repeated(entry)]


def _repeated(entry: dict[str, Any]) -> list[Reply]:
    times = msgspec.convert(entry.pop("times", 1), int)
    return [_entry(entry)] * times


def _entry(entry: dict[str, Any]) -> Reply:
    kinds: tuple[tuple[str, type[Reply]], ...] = (("status", Refusal), ("drop", Dropped))
    kind = next((kind for name, kind in kinds if name in entry), Answer)
    return msgspec.convert(entry, kind)
