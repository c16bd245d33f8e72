"""
Pictures for models: which are taken, how many tokens they have, and which are kept in a conversation.

Only the first bytes of a picture are looked at here, for its kind and its size: nothing is unpacked.
"""

from __future__ import annotations

import base64
import hashlib
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from ironcurtain.errors import UsageError
from ironcurtain.llm.model import Block, ChatMessage, ImageBlock, ToolResult

SIZE_LIMIT: Final = 3_750_000
"""Maximum size in bytes: 5 MB in base64, which is what Anthropic takes; the others take more."""

SIDE_LIMIT: Final = 2000
"""Maximum width and height in pixels: what Anthropic takes where a request has more than twenty pictures."""

KEPT: Final = 20
"""
Most pictures of a conversation. When there are more, the newest half of them stays, so that this is rare: a provider
reads nothing from its cache after a picture that is gone.
"""

FROM_TOOLS: Final = "[Pictures that the tools above returned:]"
"""Stands before pictures that an API does not take in the results of tools themselves."""

LEFT_OUT: Final = "[IronCurtain: {count} of the pictures shown here were left out later.]"


def image_block(data: bytes) -> ImageBlock:
    """
    :param data: a file of anybody.
    :returns: a picture, of the kind that its first bytes say.
    :raises UsageError: it is of another kind, or too large.
    """
    if len(data) > SIZE_LIMIT:
        raise UsageError(f"the picture has {len(data)} bytes; at most {SIZE_LIMIT} can be shown")
    media_type, (width, height) = _kind_and_size(data)
    if not (0 < width <= SIDE_LIMIT and 0 < height <= SIDE_LIMIT):
        raise UsageError(f"the picture has {width}x{height} pixels; at most {SIDE_LIMIT}x{SIDE_LIMIT} can be shown")
    return ImageBlock(media_type, data, width, height)


def _kind_and_size(data: bytes) -> tuple[str, tuple[int, int]]:
    for media_type, size_of in _KINDS.items():
        with suppress(struct.error):  # it ends before its size
            if (size := size_of(data)) is not None:
                return media_type, size
    raise UsageError("this is no picture that can be shown: only PNG, JPEG, GIF and WebP are")


def description(image: ImageBlock) -> str:
    """:returns: what stands for a picture in records: its kind, its sizes and its digest."""
    digest = hashlib.sha256(image.data).hexdigest()[:16]
    return f"{image.media_type} {image.width}x{image.height}, {len(image.data)} bytes, sha256 {digest}"


def base64_of(image: ImageBlock) -> str:
    """:returns: the data in base64."""
    return base64.b64encode(image.data).decode()


def data_url(image: ImageBlock) -> str:
    """:returns: the picture as a URL (RFC 2397)."""
    return f"data:{image.media_type};base64,{base64_of(image)}"


def _png(data: bytes) -> tuple[int, int] | None:
    return struct.unpack_from("!2I", data, 16) if data.startswith(b"\x89PNG\r\n\x1a\n") else None


def _gif(data: bytes) -> tuple[int, int] | None:
    return struct.unpack_from("<2H", data, 6) if data[:6] in (b"GIF87a", b"GIF89a") else None


def _webp(data: bytes) -> tuple[int, int] | None:
    if data[:4] != b"RIFF" or data[8:12] != b"WEBP":
        return None
    kind = data[12:16]
    if kind == b"VP8X":
        low = struct.unpack_from("<6B", data, 24)
        return 1 + low[0] + (low[1] << 8) + (low[2] << 16), 1 + low[3] + (low[4] << 8) + (low[5] << 16)
    if kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    width, height = struct.unpack_from("<2H", data, 26)
    return width & 0x3FFF, height & 0x3FFF


_FRAMES: Final = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
"""Markers of a JPEG file that are followed by its size."""


def _jpeg(data: bytes) -> tuple[int, int] | None:
    if not data.startswith(b"\xff\xd8\xff"):
        return None
    place = 2
    while True:
        start, marker, length = struct.unpack_from("!BBH", data, place)
        if start != 0xFF or length < 2:
            return None
        if marker in _FRAMES:
            height, width = struct.unpack_from("!2H", data, place + 5)
            return width, height
        place += 2 + length


_KINDS: Final[Mapping[str, Callable[[bytes], tuple[int, int] | None]]] = {
    "image/png": _png,
    "image/jpeg": _jpeg,
    "image/gif": _gif,
    "image/webp": _webp,
}

MEDIA_TYPES: Final = tuple(_KINDS)
"""The kinds of pictures that every provider takes."""


def image_tokens(image: ImageBlock, model: str) -> int:
    """
    :param model: its name tells the provider's formula; others count as those whose patches have 28 pixels.
    :returns: about how many tokens a picture has.
    """
    width, height = image.width, image.height
    if model.startswith("claude"):
        shrunk = min(1.0, 1568 / max(width, height))
        return math.ceil(width * shrunk * height * shrunk / 750)
    if model.startswith("gemini-3"):
        return 1120
    if model.startswith(("gemini", "gemma")):
        return 258 if max(width, height) <= 384 else 258 * math.ceil(width / 768) * math.ceil(height / 768)
    if model.startswith(("gpt-4", "chatgpt", "o1", "o3")):
        return _tiled(width, height)
    if model.startswith(("gpt", "codex", "o4")):
        return min(1536, math.ceil(width / 32) * math.ceil(height / 32))
    return math.ceil(width / 28) * math.ceil(height / 28)


def _tiled(width: int, height: int) -> int:
    shrunk = min(1.0, 2048 / max(width, height))
    shrunk *= min(1.0, 768 / (min(width, height) * shrunk))
    return 85 + 170 * math.ceil(width * shrunk / 512) * math.ceil(height * shrunk / 512)


def images_of(messages: Sequence[ChatMessage]) -> tuple[ImageBlock, ...]:
    """:returns: the pictures in the results of tools, the oldest first."""
    results = (block for message in messages for block in message.content if isinstance(block, ToolResult))
    return tuple(image for result in results for image in result.images)


def keep_images(messages: Sequence[ChatMessage], most: int) -> tuple[ChatMessage, ...]:
    """:returns: messages with at most so many pictures: the newest ones."""
    kept: list[ChatMessage] = []
    for message in reversed(messages):
        blocks: list[Block] = []
        for block in reversed(message.content):
            if isinstance(block, ToolResult) and block.images:
                blocks.append(_with_newest(block, most))
                most = max(0, most - len(block.images))
            else:
                blocks.append(block)
        kept.append(ChatMessage(message.role, tuple(reversed(blocks))))
    return tuple(reversed(kept))


def _with_newest(result: ToolResult, most: int) -> ToolResult:
    gone = len(result.images) - most
    if gone <= 0:
        return result
    note = LEFT_OUT.format(count=gone)
    return replace(result, content=f"{result.content}\n{note}", images=result.images[gone:])
