"""Google's Gemini API as a server sees it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from tests.model_stub import naming
from tests.model_stub.dialect import Asked, Invalid, input_tokens, last_text, texts
from tests.model_stub.google_rules import check_body
from tests.model_stub.replies import Answer, Block, CustomTool, McpCall, Raw, Text, Thinking, Tool

NAME = "google"

ERROR_TYPES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
    529: "UNAVAILABLE",
}
"""The API's own words for statuses."""

_PATH = re.compile(r"/v1(?:beta|alpha)?/models/([^/:]+):(streamGenerateContent|generateContent|countTokens)")
_REASONS = {"max_tokens": "MAX_TOKENS", "refusal": "SAFETY"}
_STATUSES = {"overloaded_error": 503, "rate_limit_error": 429}


def handles(method: str, path: str) -> bool:
    return method == "POST" and _PATH.fullmatch(path) is not None


def key(headers: Mapping[str, str]) -> str:
    return headers.get("x-goog-api-key", "")


def check_headers(headers: Mapping[str, str], keys: frozenset[str]) -> None:
    # The real API says 403 to no key and 400 to a wrong one; 401 here, so that a test can tell what it was.
    if key(headers) not in keys:
        known = "API key not valid. Please pass a valid API key." if key(headers) else "The request has no API key."
        raise Invalid(known, 401)
    if not headers.get("content-type", "").startswith("application/json"):
        raise Invalid("Invalid content type: it has to be application/json.")


def asked(path: str, headers: Mapping[str, str], body: bytes) -> Asked:
    matched = _PATH.fullmatch(path)
    assert matched is not None, path
    model, method = matched.groups()
    request = check_body(body)
    contents, settings = request["contents"], request.get("generationConfig", {})
    responses = [part["functionResponse"] for part in contents[-1]["parts"] if "functionResponse" in part]
    said = [last_text(content["parts"]) for content in contents if content.get("role", "user") == "user"]
    declared = [tool.get("functionDeclarations", []) for tool in request.get("tools", [])]
    return Asked(
        body=request,
        model=model,
        stream=method == "streamGenerateContent",
        counting=method == "countTokens",
        system=texts(request.get("systemInstruction", {}).get("parts")),
        tools=tuple(declaration["name"] for tool in declared for declaration in tool),
        results=tuple(_result(response["response"]) for response in responses),
        said=next((text for text in reversed(said) if text), ""),
        schema=settings.get("responseJsonSchema") or settings.get("responseSchema"),
    )


def spoken(answer: Answer, asked: Asked) -> Answer:
    return msgspec.structs.replace(answer, content=tuple(_spoken(content, asked) for content in answer.content))


def events(answer: Answer, model: str, number: int) -> list[bytes]:
    blank = {"modelVersion": model, "responseId": f"stub{number:08d}"}
    parts = [part for content in answer.content for part in _parts(content)]
    made = [{"candidates": [_candidate([part])], "usageMetadata": _usage(answer, 0), **blank} for part in parts]
    last = _candidate([{"text": ""}], _REASONS.get(answer.stop_reason, "STOP"))
    output = answer.usage.get("output_tokens", 0)
    made.append({"candidates": [last], "usageMetadata": _usage(answer, output), **blank})
    return [_event(event) for event in made]


def error_event(answer: Answer) -> bytes:
    type_, message = answer.error
    return _event(json.loads(error_body(_STATUSES.get(type_, 500), message)))


def whole(answer: Answer, model: str, number: int) -> bytes:
    parts = [part for content in answer.content for part in _parts(content, joined=True)]
    candidate = _candidate(parts, _REASONS.get(answer.stop_reason, "STOP"))
    usage = _usage(answer, answer.usage.get("output_tokens", 0))
    said = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": model, "responseId": f"stub{number:08d}"}
    return json.dumps(said).encode()


def counted(tokens: int) -> bytes:
    return json.dumps({"totalTokens": tokens}).encode()


def models() -> bytes:
    names = ("gemini-3.1-pro-preview", "gemini-2.5-pro", "gemini-2.5-flash")
    methods = ["generateContent", "countTokens"]
    listed = [{"name": f"models/{name}", "displayName": name, "supportedGenerationMethods": methods} for name in names]
    return json.dumps({"models": listed}).encode()


def error_body(status: int, message: str, type: str = "", *, retry_after: str = "") -> bytes:
    error: dict[str, Any] = {"code": status, "message": message or "Error"}
    error["status"] = type or ERROR_TYPES.get(status, "UNKNOWN")
    if retry_after:
        kind = "type.googleapis.com/google.rpc.RetryInfo"
        error["details"] = [{"@type": kind, "retryDelay": f"{retry_after}s"}]
    return json.dumps({"error": error}).encode()


def _event(event: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(event)}\r\n\r\n".encode()


def _candidate(parts: list[dict[str, Any]], reason: str = "") -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}, "index": 0}
    return {**candidate, "finishReason": reason} if reason else candidate


def _usage(answer: Answer, output: int) -> dict[str, int]:
    given, cached = input_tokens(answer.usage), answer.usage.get("cache_read_input_tokens", 0)
    usage = {"promptTokenCount": given, "candidatesTokenCount": output, "totalTokenCount": given + output}
    return {**usage, "cachedContentTokenCount": cached} if cached else usage


def _parts(content: Block, *, joined: bool = False) -> list[dict[str, Any]]:
    match content:
        case Text(chunks):
            return [{"text": chunk} for chunk in (["".join(chunks)] if joined else chunks)]
        case Thinking(chunks):
            return [{"text": chunk, "thought": True} for chunk in (["".join(chunks)] if joined else chunks)]
        case Tool(name, input, id):
            call = {"name": name, "args": input, **({"id": id} if id else {})}  # most models give none
            return [{"functionCall": call, "thoughtSignature": "c2lnbmF0dXJl"}]
        case Raw(block):
            return [block]
        case McpCall() | CustomTool():
            raise ValueError("first to be said in the agent's own words")


def _result(response: Mapping[str, Any]) -> str:
    # Gemini CLI puts it into "output" or "error", OpenCode into "content".
    found = [response[name] for name in ("output", "error", "content") if name in response]
    return "\n".join(value if isinstance(value, str) else json.dumps(value) for value in found or [response])


def _spoken(content: Block, asked: Asked) -> Block:
    match content:
        case CustomTool(name):
            raise Invalid(f"the stub: this API has no tools that take any text, and {name} is to be one")
        case McpCall(arguments=arguments, pieces=pieces):
            known = naming.declared(content, asked.tools)
            if not known:
                raise naming.missing(content, asked.tools)
            return Tool(known, arguments, pieces=pieces)
    return content
