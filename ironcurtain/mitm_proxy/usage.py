"""
Read how many tokens a provider counted, out of its answer on the way past.

The counts stand at known places of the JSON; the same words in what the model wrote mean nothing. Of an answer, only an
unfinished line is held, or all of one that is no stream of events, until it is read.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Final

import msgspec

from ironcurtain.llm.model import Usage
from ironcurtain.mitm_proxy.refusals import Dialect

HELD_LIMIT: Final = 4 * 1024 * 1024
"""Most bytes of a line, or of an answer that is no stream: 4 MiB (the longest answer is below 1)."""

BYTES_A_TOKEN: Final = 16
"""Bytes of a stream for each token of an answer, rather fewer than seen: most of an event is its frame."""

PROMPT_BYTES_A_TOKEN: Final = 4
"""Bytes of a request for each token of a prompt (the usual rule of thumb for English)."""

_Count = Annotated[int, msgspec.Meta(ge=0)]


class _Cached(msgspec.Struct):
    cached_tokens: _Count | None = None


class _Usage(msgspec.Struct):
    # Anthropic, and OpenAI's Responses, whose input holds the cached tokens too
    input_tokens: _Count | None = None
    output_tokens: _Count | None = None
    cache_read_input_tokens: _Count | None = None
    cache_creation_input_tokens: _Count | None = None
    input_tokens_details: _Cached | None = None
    # OpenAI's Chat Completions
    prompt_tokens: _Count | None = None
    completion_tokens: _Count | None = None
    prompt_tokens_details: _Cached | None = None


class _GoogleUsage(msgspec.Struct, rename="camel"):
    prompt_token_count: _Count = 0
    cached_content_token_count: _Count = 0
    tool_use_prompt_token_count: _Count = 0
    candidates_token_count: _Count = 0
    thoughts_token_count: _Count = 0


class _Inner(msgspec.Struct):
    model: str | None = None
    usage: _Usage | None = None


class _Answer(msgspec.Struct):
    """An answer, or one event of its stream, of any of the providers."""

    model: str | None = None
    usage: _Usage | None = None
    message: _Inner | None = None
    response: _Inner | None = None
    usageMetadata: _GoogleUsage | None = None
    modelVersion: str | None = None


_NOTHING: Final = Usage()
_answers = msgspec.json.Decoder(_Answer)
_lists = msgspec.json.Decoder(list[_Answer])
_MARK: Final = b'"usage'


class UsageReader:
    """
    One answer's body, in any slicing: JSON, or a stream of events whose data are one line each.

    :ivar model: which answered, as the provider names it; empty while that is not known.
    """

    __slots__ = ("_complete", "_dialect", "_held", "_held_size", "_is_json", "_passing", "_size", "_usage", "model")

    def __init__(self, dialect: Dialect) -> None:
        self._dialect, self.model = dialect, ""
        self._usage: Usage | None = None
        self._complete = False
        self._is_json: bool | None = None
        self._held: list[bytes] = []
        self._held_size = self._size = 0
        self._passing = False

    @property
    def usage(self) -> Usage | None:
        """What the provider counted so far; ``None`` if it told nothing."""
        if self._is_json and self._held:
            self._read_whole()
        return self._usage

    def estimate(self, request_size: int) -> Usage:
        """
        What an answer cost that may have been broken off, since most providers count only at its end.

        :param request_size: bytes of the request's body.
        :returns: the provider's counts if they are of the whole answer, else roughly what was used.
        """
        told = self.usage
        if told is not None and self._complete:
            return told
        told = told or Usage(input_tokens=request_size // PROMPT_BYTES_A_TOKEN)
        return msgspec.structs.replace(told, output_tokens=max(told.output_tokens, self._size // BYTES_A_TOKEN))

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the body, which must not be compressed."""
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
            with suppress(
                msgspec.DecodeError, UnicodeDecodeError, RecursionError
            ):  # whoever reads the answer will say so
                self._take(_answers.decode(line[5:]))

    def _read_whole(self) -> None:
        whole = b"".join(self._held)
        try:
            for answer in _lists.decode(whole) if whole.startswith(b"[") else [_answers.decode(whole)]:
                self._take(answer)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return  # there is more to come, or it is no answer
        self._held.clear()

    def _take(self, answer: _Answer) -> None:
        # Anthropic counts the prompt at the start, in `message`, and everything at the end.
        if answer.message is not None:
            self._take_part(answer.message, complete=False)
        if answer.response is not None:
            self._take_part(answer.response, complete=True)
        self._take_part(answer, complete=True)
        if (counts := answer.usageMetadata) is not None:
            self.model = answer.modelVersion or self.model
            self._usage, self._complete = _google(counts), True

    def _take_part(self, part: _Inner | _Answer, complete: bool) -> None:
        self.model = part.model or self.model
        if part.usage is not None:
            self._usage, self._complete = self._counted(part.usage, self._usage or _NOTHING), complete

    def _counted(self, counts: _Usage, before: Usage) -> Usage:
        if counts.prompt_tokens is not None:
            return _openai(counts.prompt_tokens, counts.completion_tokens, counts.prompt_tokens_details)
        if self._dialect == "openai" or counts.input_tokens_details is not None:
            return _openai(counts.input_tokens, counts.output_tokens, counts.input_tokens_details)
        return Usage(
            _told(counts.input_tokens, before.input_tokens),
            _told(counts.output_tokens, before.output_tokens),
            _told(counts.cache_read_input_tokens, before.cache_read_tokens),
            _told(counts.cache_creation_input_tokens, before.cache_write_tokens),
        )


def _told(now: int | None, before: int) -> int:
    return before if now is None else now


def _openai(prompt: int | None, output: int | None, details: _Cached | None) -> Usage:
    cached = (details.cached_tokens or 0) if details else 0
    return Usage(max(0, (prompt or 0) - cached), output or 0, cached)


def _google(counts: _GoogleUsage) -> Usage:
    return Usage(
        max(0, counts.prompt_token_count - counts.cached_content_token_count) + counts.tool_use_prompt_token_count,
        counts.candidates_token_count + counts.thoughts_token_count,
        counts.cached_content_token_count,
    )
