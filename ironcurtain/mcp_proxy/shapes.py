"""
The shapes that official clients require of a server's definitions and results.

They are those of all revisions together: each client checks some of them, and refuses a whole list or result for one
wrong member. Members that are not named here are not checked.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

Open = dict[str, Any]
"""An object of any members."""

Role = Literal["user", "assistant"]

Time = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$")]
"""ISO 8601, with a time zone."""


class Icon(msgspec.Struct):
    """An image that stands for a part of a server."""

    src: str
    mimeType: str | UnsetType = UNSET
    sizes: list[str] | UnsetType = UNSET
    theme: Literal["light", "dark"] | UnsetType = UNSET


class Notes(msgspec.Struct):
    """Annotations of a resource or of a part of a result."""

    audience: list[Role] | UnsetType = UNSET
    priority: Annotated[float, Meta(ge=0, le=1)] | UnsetType = UNSET
    lastModified: Time | UnsetType = UNSET


class Hints(msgspec.Struct):
    """Annotations of a tool."""

    title: str | UnsetType = UNSET
    readOnlyHint: bool | UnsetType = UNSET
    destructiveHint: bool | UnsetType = UNSET
    idempotentHint: bool | UnsetType = UNSET
    openWorldHint: bool | UnsetType = UNSET


class Execution(msgspec.Struct):
    """How a tool is run."""

    taskSupport: Literal["forbidden", "optional", "required"] | UnsetType = UNSET


class Argument(msgspec.Struct):
    """An argument of a prompt."""

    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    required: bool | UnsetType = UNSET


_COMMON: dict[str, Any] = {"title": str, "description": str, "icons": list[Icon], "_meta": Open}

TOOL: dict[str, Any] = {**_COMMON, "annotations": Hints, "execution": Execution}
PROMPT: dict[str, Any] = _COMMON
TEMPLATE: dict[str, Any] = {**_COMMON, "annotations": Notes, "mimeType": str}
RESOURCE: dict[str, Any] = {**TEMPLATE, "size": int}
"""The members that may be missing, and their shapes."""


class _Part(msgspec.Struct, tag_field="type", kw_only=True):
    annotations: Notes | UnsetType = UNSET
    meta: Open | UnsetType = msgspec.field(default=UNSET, name="_meta")


class Text(_Part, tag="text"):
    """A part of a result."""

    text: str


class Image(_Part, tag="image"):
    """A part of a result."""

    data: str
    mimeType: str


class Audio(_Part, tag="audio"):
    """A part of a result."""

    data: str
    mimeType: str


class Link(_Part, tag="resource_link"):
    """A part of a result."""

    uri: str
    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    mimeType: str | UnsetType = UNSET
    size: int | UnsetType = UNSET
    icons: list[Icon] | UnsetType = UNSET


class Contents(msgspec.Struct):
    """Contents of a resource: with a text, or with base64 in ``blob``."""

    uri: str
    text: str | UnsetType = UNSET
    blob: str | UnsetType = UNSET
    mimeType: str | UnsetType = UNSET
    meta: Open | UnsetType = msgspec.field(default=UNSET, name="_meta")

    def __post_init__(self) -> None:
        if self.text is UNSET and self.blob is UNSET:
            raise ValueError("has neither text nor blob")


class Embedded(_Part, tag="resource"):
    """A part of a result."""

    resource: Contents


Block = Text | Image | Audio | Link | Embedded


class Message(msgspec.Struct):
    """A message of a prompt."""

    role: Role
    content: Block


class _Result(msgspec.Struct, kw_only=True):
    meta: dict[str, msgspec.Raw] | UnsetType = msgspec.field(default=UNSET, name="_meta")


class CallToolResult(_Result):
    """The result of ``tools/call``."""

    content: list[Block]
    structuredContent: dict[str, msgspec.Raw] | UnsetType = UNSET
    isError: bool | UnsetType = UNSET


class ReadResourceResult(_Result):
    """The result of ``resources/read``."""

    contents: list[Contents]


class GetPromptResult(_Result):
    """The result of ``prompts/get``."""

    messages: list[Message]
    description: str | UnsetType = UNSET


class Completion(msgspec.Struct):
    """Values that complete an argument."""

    values: Annotated[list[str], Meta(max_length=100)]
    total: int | UnsetType = UNSET
    hasMore: bool | UnsetType = UNSET


class CompleteResult(_Result):
    """The result of ``completion/complete``."""

    completion: Completion


def wrong(value: Any, shape: Any) -> str:
    """:returns: why a JSON value does not have a shape; empty if it has."""
    try:
        msgspec.convert(value, shape)
    except msgspec.ValidationError as e:
        return str(e)
    return ""
