"""
Read the token counts from a provider's response while it is forwarded.

Counts are read at known places of the JSON only, so that the model's text cannot imitate them. Only an incomplete line
is buffered, or the complete response if it is not a stream of events.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import msgspec

from ironcurtain.llm.model import TokenUsage
from ironcurtain.providers.provider import Count

HELD_LIMIT: Final = 4 * 1024 * 1024
"""Maximum size in bytes of a line, or of a response that is not a stream: 4 MiB (the longest response is below 1)."""

BYTES_A_TOKEN: Final = 16
"""Bytes of a stream per output token, a low estimate: most of an event is framing."""

PROMPT_BYTES_A_TOKEN: Final = 4
"""Bytes of a request per prompt token (the usual estimate for English)."""

_NOTHING: Final = TokenUsage()
_texts = msgspec.json.Decoder(list[msgspec.Raw])
_MARK: Final = b'"usage'


class UsageReader:
    """
    Reads one response's body, in any slicing: JSON, or a stream of events with one line of data each.

    :param count: the provider's function, see :class:`~ironcurtain.providers.provider.ModelProvider`.
    :ivar model: the model that answered, as the provider names it; empty while unknown.
    :ivar cut: whether it stopped at the limit of output tokens.
    """

    __slots__ = (
        "_complete",
        "_count",
        "_held",
        "_held_size",
        "_is_json",
        "_passing",
        "_size",
        "_usage",
        "cut",
        "model",
    )

    def __init__(self, count: Count) -> None:
        self._count, self.model, self.cut = count, "", False
        self._usage: TokenUsage | None = None
        self._complete = False
        self._is_json: bool | None = None
        self._held: list[bytes] = []
        self._held_size = self._size = 0
        self._passing = False

    @property
    def usage(self) -> TokenUsage | None:
        """The provider's counts so far; ``None`` if there are none."""
        if self._is_json and self._held:
            self._read_whole()
        return self._usage

    def estimate(self, request_size: int) -> TokenUsage:
        """
        Estimate the usage of a response that may be incomplete, since most providers report counts at the end.

        :param request_size: size of the request's body in bytes.
        :returns: the provider's counts if they cover the complete response, else an estimate.
        """
        counted = self.usage
        if counted is not None and self._complete:
            return counted
        counted = counted or TokenUsage(input_tokens=request_size // PROMPT_BYTES_A_TOKEN)
        return msgspec.structs.replace(counted, output_tokens=max(counted.output_tokens, self._size // BYTES_A_TOKEN))

    def feed(self, data: bytes) -> None:
        """Process the next bytes of the body, which must not be compressed."""
        self._size += len(data)
        if self._is_json is None:
            data = data.lstrip()
            if not data:
                return
            self._is_json = data[:1] in (b"{", b"[")
        if self._is_json:
            self._hold(data)
        else:
            self._take_lines(data)

    def _take_lines(self, data: bytes) -> None:
        start = 0
        if self._held or self._passing:
            start = data.find(b"\n") + 1
            self._hold(data[: start or len(data)])
            if not start:
                return
            self._take_line(b"".join(self._held))
            self._held.clear()
            self._held_size, self._passing = 0, False
        end = max(start, data.rfind(b"\n") + 1)
        if data.find(_MARK, start, end) >= 0:
            for line in data[start:end].split(b"\n"):
                self._take_line(line)
        if end < len(data):
            self._hold(data[end:])

    def _hold(self, data: bytes) -> None:
        self._held_size += len(data)
        if self._held_size > HELD_LIMIT:
            self._held.clear()
            self._passing = True
        elif not self._passing:
            self._held.append(data)

    def _take_line(self, line: bytes) -> None:
        if _MARK in line and line.startswith(b"data:"):
            with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # the agent will detect the error
                self._take(line[5:])

    def _read_whole(self) -> None:
        whole = b"".join(self._held)
        try:
            for text in _texts.decode(whole) if whole.startswith(b"[") else [whole]:
                self._take(memoryview(text))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return  # more bytes follow, or it is not a response
        self._held.clear()

    def _take(self, text: bytes | memoryview) -> None:
        counted = self._count(text, self._usage or _NOTHING)
        self.model = counted.model or self.model
        self.cut = counted.cut or self.cut
        if counted.usage is not None:
            self._usage, self._complete = counted.usage, counted.complete
