"""Google's Gemini API: requests, the stream of events of an answer, and errors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import msgspec

from ironcurtain.http.sse import ServerEvent
from ironcurtain.llm.dialect import CONTENT_LIMIT, GrowingReply, mentions, response_error
from ironcurtain.llm.model import (
    Block,
    ChatMessage,
    ErrorKind,
    ImageBlock,
    ModelError,
    ModelEvent,
    ModelReply,
    ModelRequest,
    ProviderBlock,
    TextBlock,
    TokenUsage,
    ToolAsked,
    ToolResult,
    ToolStarted,
    ToolUse,
)
from ironcurtain.llm.pictures import FROM_TOOLS, base64_of

GOOGLE: Final = "google"
"""Name of the provider."""

VENDOR: Final = "Google"
"""Its name for people."""

SIGNATURE: Final = "thoughtSignature"
"""The field of a part that has to come back with it."""

FOREIGN: Final = "skip_thought_signature_validator"
"""The signature of a function call that another provider's model made; without one, the API refuses it."""

_OLDER: Final = re.compile(r"gemini-[12]|gemma")
"""Models that take function calls without a signature, and no pictures in the results of functions."""

_OVERFLOW: Final = ("exceeds the maximum number of tokens", "input token count")
_BAD_KEY: Final = ("api key not valid", "api key expired", "api_key_invalid")


class GoogleDialect:
    """How :class:`~ironcurtain.llm.http_provider.HttpModelClient` uses Google's Gemini API."""

    name = GOOGLE
    models = re.compile("gemini|gemma")
    key_header = "x-goog-api-key"
    headers: Mapping[str, str] = {}
    default_url = "https://generativelanguage.googleapis.com"
    default_model = "gemini-3.1-pro-preview"

    def path(self, request: ModelRequest) -> str:
        """:returns: the path of the endpoint, below the base URL; the key never stands in it."""
        model = quote(request.model.removeprefix("models/"), safe="")
        return f"/v1beta/models/{model}:streamGenerateContent?alt=sse"

    def body(self, request: ModelRequest) -> bytes:
        """Build a request. The provider reads the beginning of a request from its cache by itself."""
        body: dict[str, Any] = {
            "contents": _contents(request),
            "generationConfig": {"maxOutputTokens": request.max_tokens},
        }
        if request.system.strip():
            body["systemInstruction"] = {"parts": [{"text": request.system}]}
        if request.tools:
            declared = [
                {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.schema}
                for tool in request.tools
            ]
            body["tools"] = [{"functionDeclarations": declared}]
        return msgspec.json.encode(body)

    def reply(self) -> GoogleReply:
        """:returns: a new answer in progress."""
        return GoogleReply()

    def failure(self, status: int, body: bytes) -> ModelError:
        """Explain a response other than 200. A refused key has status 400 here."""
        error = _error_of(body)
        text = f"{error.message} {' '.join(detail.reason for detail in error.details)}"
        kind: ErrorKind | None = "authentication" if mentions(text, _BAD_KEY) else None
        full = mentions(error.message, _OVERFLOW)
        failure = response_error(VENDOR, status, error.status, error.message, full=full, kind=kind)
        failure.retry_after = error.delay() if failure.retryable else None
        return failure


def _contents(request: ModelRequest) -> list[dict[str, Any]]:
    names = {
        block.id: block.name for message in request.messages for block in message.content if isinstance(block, ToolUse)
    }
    contents: list[dict[str, Any]] = []
    for message in request.messages:
        role = "model" if message.role == "assistant" else "user"
        parts = _parts(message, names, newer=not _OLDER.match(request.model))
        if parts and contents and contents[-1]["role"] == role:
            contents[-1]["parts"] += parts
        elif parts:
            contents.append({"role": role, "parts": parts})
    return contents


def _parts(message: ChatMessage, names: dict[str, str], *, newer: bool) -> list[dict[str, Any]]:
    """:param newer: whether the model wants calls signed, and takes pictures in results; else they follow these."""
    parts: list[dict[str, Any]] = []
    pictures: list[dict[str, Any]] = []
    signature: dict[str, Any] = {}
    for block in message.content:
        if isinstance(block, ProviderBlock):
            if block.provider == GOOGLE and set(block.data) == {SIGNATURE}:
                signature = dict(block.data)
            elif block.provider == GOOGLE:
                parts.append(dict(block.data))
        elif (part := _part(block, names)) is not None:
            parts.append({**part, **signature})
            signature = {}
        if isinstance(block, ToolResult) and block.images:
            shown = [_inline(image) for image in block.images]
            if newer:
                parts[-1]["functionResponse"]["parts"] = shown
            else:
                pictures += [{"text": FROM_TOOLS}, *shown]
    parts += pictures
    calls = [part for part in parts if "functionCall" in part]
    if newer and calls and not any(SIGNATURE in part for part in calls):
        calls[0][SIGNATURE] = FOREIGN
    return parts


def _part(block: TextBlock | ToolUse | ToolResult, names: dict[str, str]) -> dict[str, Any] | None:
    match block:
        case TextBlock(text):
            return {"text": text} if text.strip() else None
        case ToolUse(id, name, input):
            return {"functionCall": {"id": id, "name": name, "args": input}}
        case ToolResult(id, content, is_error):
            response = {"error" if is_error else "output": content}
            return {"functionResponse": {"id": id, "name": names.get(id, ""), "response": response}}


def _inline(image: ImageBlock) -> dict[str, Any]:
    return {"inlineData": {"mimeType": image.media_type, "data": base64_of(image)}}


class _Detail(msgspec.Struct, rename="camel"):
    reason: str = ""
    retry_delay: str = ""


class _ErrorWords(msgspec.Struct):
    message: str = ""
    status: str = ""
    code: int = 0
    details: list[_Detail] = []

    def delay(self) -> float | None:
        """:returns: the requested delay in seconds, which has the form ``17.5s``."""
        for detail in self.details:
            number = detail.retry_delay.removesuffix("s")
            if number.isascii() and number.replace(".", "", 1).isdigit():
                return float(number)
        return None


class _ErrorBody(msgspec.Struct):
    error: _ErrorWords


_errors = msgspec.json.Decoder(_ErrorBody | list[_ErrorBody])


def _error_of(body: bytes) -> _ErrorWords:
    try:
        parsed: _ErrorBody | list[_ErrorBody] = _errors.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _ErrorWords(body.decode("utf-8", "replace"))
    if isinstance(parsed, list):
        return parsed[0].error if parsed else _ErrorWords()
    return parsed.error


class GoogleUsage(msgspec.Struct, rename="camel"):
    """Token counts. Those of the prompt include what was read from the cache."""

    prompt_token_count: int = 0
    cached_content_token_count: int = 0
    tool_use_prompt_token_count: int = 0
    candidates_token_count: int = 0
    thoughts_token_count: int = 0

    def tokens(self) -> TokenUsage:
        """:returns: the counts in the form that all providers share."""
        return TokenUsage(
            max(0, self.prompt_token_count - self.cached_content_token_count) + self.tool_use_prompt_token_count,
            self.candidates_token_count + self.thoughts_token_count,
            self.cached_content_token_count,
        )


class _Content(msgspec.Struct):
    parts: list[dict[str, Any]] = []


class _Candidate(msgspec.Struct, rename="camel"):
    content: _Content | None = None
    finish_reason: str | None = None


class _Feedback(msgspec.Struct, rename="camel"):
    block_reason: str | None = None


class _Event(msgspec.Struct, rename="camel"):
    candidates: list[_Candidate] | None = None
    prompt_feedback: _Feedback | None = None
    usage_metadata: GoogleUsage | None = None
    model_version: str = ""
    response_id: str = ""
    error: _ErrorWords | None = None


_STOP: Final = {"STOP": "end_turn", "MAX_TOKENS": "max_tokens"}
_MALFORMED: Final = frozenset(("MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL"))
_PASSING: Final[dict[str, ErrorKind]] = {
    "UNAVAILABLE": "overloaded",
    "INTERNAL": "overloaded",
    "DEADLINE_EXCEEDED": "overloaded",
    "RESOURCE_EXHAUSTED": "rate-limited",
}
_events = msgspec.json.Decoder(_Event)


class GoogleReply(GrowingReply):
    """
    One answer in progress; it is complete if the stream ends after a reason to stop.

    A signature stands as a :class:`ProviderBlock` before the block that it belongs to; alone, in a part of its own.
    """

    vendor = VENDOR

    def __init__(self, limit: int = CONTENT_LIMIT) -> None:
        super().__init__(limit)
        self._model = self._id = self._finish = ""
        self._blocks: list[Block] = []
        self._text: list[str] = []
        self._calls = 0

    def feed(self, event: ServerEvent) -> list[ModelEvent]:
        """
        Process one event of the stream.

        :returns: the resulting events.
        :raises ModelError: an error event, or an event that violates the format or the size limit.
        """
        try:
            parsed = _events.decode(event.data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise self.unreadable("an event is not as documented") from None
        if parsed.error is not None:
            raise self._failed(parsed.error)
        self._model, self._id = parsed.model_version or self._model, parsed.response_id or self._id
        told: list[ModelEvent] = []
        for candidate in (parsed.candidates or [])[:1]:
            for part in candidate.content.parts if candidate.content is not None else ():
                told += self._grown(part)
            self._finishes(candidate.finish_reason)
        if parsed.prompt_feedback is not None:
            self._finishes(parsed.prompt_feedback.block_reason)
        if parsed.usage_metadata is not None:
            told += self.count(parsed.usage_metadata.tokens())
        return told

    def close(self) -> list[ModelEvent]:
        """The stream has ended: the answer is complete if there was a reason to stop."""
        if not self._finish:
            return []
        if self._finish in _MALFORMED:
            raise self.unreadable(f"the model made a wrong function call ({self._finish})")
        self._end_text()
        stop = _STOP.get(self._finish, self._finish.lower())
        if self._calls and stop == "end_turn":
            stop = "tool_use"
        self.reply = ModelReply(tuple(self._blocks), stop, self.usage, self._model)
        return []

    def _finishes(self, why: str | None) -> None:
        if why and self._finish in ("", *_STOP):  # what ended an answer is not undone by a later event
            self._finish = why

    def _grown(self, part: dict[str, Any]) -> list[ModelEvent]:
        call, text, signature = part.get("functionCall"), part.get("text"), part.get(SIGNATURE)
        if isinstance(call, dict):
            return self._called(call, signature)
        if not isinstance(text, str) or part.get("thought"):
            if signature:
                self._keep(part)
            return []
        if signature and not text:
            self._keep(part)
        elif signature:
            self._keep({SIGNATURE: signature})
        self.grow(text)
        self._text += [text] if text else []
        if signature:
            self._end_text()
        return self.show(text)

    def _called(self, call: dict[str, Any], signature: Any) -> list[ModelEvent]:
        name, input = call.get("name"), call.get("args") or {}
        if not (isinstance(name, str) and name and isinstance(input, dict)):
            raise self.unreadable("a function call lacks its name or args")
        self.grow(msgspec.json.encode(input).decode())
        self._end_text()
        if signature:
            self._keep({SIGNATURE: signature})
        use = ToolUse(str(call.get("id") or f"{self._id or 'call'}_{self._calls}"), name, input)
        self._calls += 1
        self._blocks.append(use)
        self.shown = True
        return [ToolStarted(name), ToolAsked(use)]

    def _keep(self, data: dict[str, Any]) -> None:
        self._end_text()
        self._blocks.append(ProviderBlock(GOOGLE, data))

    def _end_text(self) -> None:
        text, self._text = "".join(self._text), []
        if text:
            self._blocks.append(TextBlock(text))

    def _failed(self, error: _ErrorWords) -> ModelError:
        if mentions(error.message, _OVERFLOW):
            return self.broken_off(error.status, error.message, "context-overflow", passing=False)
        passing = _PASSING.get(error.status)
        return self.broken_off(error.status, error.message, passing or "invalid-request", passing=passing is not None)
