"""OpenAI's Chat Completions API as a server sees it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from tests.model_stub import naming
from tests.model_stub.dialect import Asked, Invalid, cut, input_tokens, last_text, texts
from tests.model_stub.openai import error_body as error_body
from tests.model_stub.openai import key as key
from tests.model_stub.openai import models as models
from tests.model_stub.openai_events import CREATED
from tests.model_stub.replies import Answer, Block, CustomTool, McpCall, Raw, Text, Thinking, Tool

NAME = "openai-chat"

_PARAMETERS = frozenset(
    (
        *("model", "messages", "stream", "stream_options", "tools", "tool_choice", "parallel_tool_calls"),
        *("max_tokens", "max_completion_tokens", "temperature", "top_p", "response_format", "user"),
    )
)
_REASONS = {"tool_use": "tool_calls", "end_turn": "stop", "max_tokens": "length", "refusal": "content_filter"}


def handles(method: str, path: str) -> bool:
    return method == "POST" and path == "/v1/chat/completions"


def check_headers(headers: Mapping[str, str], keys: frozenset[str]) -> None:
    if key(headers) not in keys:
        raise Invalid("Incorrect API key provided." if key(headers) else "You didn't provide an API key.", 401)
    if not headers.get("content-type", "").startswith("application/json"):
        raise Invalid("Unsupported content type: the API accepts 'application/json'.")


def asked(path: str, headers: Mapping[str, str], body: bytes) -> Asked:
    request = check_body(body)
    messages = request["messages"]
    said = [texts(message["content"]) for message in messages if message["role"] == "user"]
    return Asked(
        body=request,
        model=request["model"],
        stream=bool(request.get("stream")),
        counting=False,
        system="\n".join(texts(message["content"]) for message in messages if message["role"] == "system"),
        tools=tuple(tool["function"]["name"] for tool in request.get("tools", [])),
        results=tuple(_results(messages)),
        said=last_text(said[-1]) if said else "",
        schema=None,
    )


def check_body(body: bytes) -> dict[str, Any]:
    """
    :returns: the request.
    :raises Invalid: it breaks a rule of the API.
    """
    request: dict[str, Any] = json.loads(body)
    if unknown := set(request) - _PARAMETERS:
        raise Invalid(f"Unrecognized request argument supplied: {min(unknown)}")
    if not request.get("messages"):
        raise Invalid("[] is too short - 'messages'")
    waiting: list[str] = []
    for message in request["messages"]:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                raise Invalid("messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.")
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            raise Invalid(f"tool_call_ids did not have response messages: {', '.join(waiting)}")
        if message["role"] not in ("system", "user", "assistant"):
            raise Invalid(f"Invalid value: '{message['role']}'.")
        if not message["content"] and not message.get("tool_calls"):
            raise Invalid("Invalid value for 'content': expected a string, got null.")
        for call in message.get("tool_calls", []):
            json.loads(call["function"]["arguments"])
            waiting.append(call["id"])
    if waiting:
        raise Invalid(f"tool_call_ids did not have response messages: {', '.join(waiting)}")
    return request


def spoken(answer: Answer, asked: Asked) -> Answer:
    return msgspec.structs.replace(answer, content=tuple(_spoken(content, asked) for content in answer.content))


def events(answer: Answer, model: str, number: int) -> list[bytes]:
    blank = {"id": f"chatcmpl-{number:08x}", "object": "chat.completion.chunk", "created": CREATED, "model": model}
    deltas = [{"role": "assistant", "content": ""}, *_deltas(answer)]
    made = [{**blank, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    made.append({**blank, "choices": [{"index": 0, "delta": {}, "finish_reason": _reason(answer)}]})
    made.append({**blank, "choices": [], "usage": _usage(answer)})
    return [*map(_event, made), b"data: [DONE]\n\n"]


def error_event(answer: Answer) -> bytes:
    type_, message = answer.error
    return _event({"error": {"message": message, "type": type_, "param": None, "code": None}})


def whole(answer: Answer, model: str, number: int) -> bytes:
    raise NotImplementedError("every client asks for a stream")


def counted(tokens: int) -> bytes:
    raise NotImplementedError("this API counts nothing")


def _event(event: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(event)}\n\n".encode()


def _reason(answer: Answer) -> str:
    used = any(isinstance(content, Tool) for content in answer.content)
    stop = answer.stop_reason or ("tool_use" if used else "end_turn")
    return _REASONS.get(stop, stop)


def _usage(answer: Answer) -> dict[str, Any]:
    given, output = input_tokens(answer.usage), answer.usage.get("output_tokens", 0)
    cached = answer.usage.get("cache_read_input_tokens", 0)
    written = answer.usage.get("cache_creation_input_tokens", 0)
    return {
        "prompt_tokens": given,
        "completion_tokens": output,
        "total_tokens": given + output,
        "prompt_tokens_details": {"cached_tokens": cached, "cache_write_tokens": written},
    }


def _deltas(answer: Answer) -> Iterator[dict[str, Any]]:
    calls = 0
    for content in answer.content:
        match content:
            case Text(chunks):
                yield from ({"content": chunk} for chunk in chunks)
            case Thinking(chunks):
                yield from ({"reasoning_content": chunk} for chunk in chunks)
            case Tool(name, input, id, pieces):
                first = {"id": id or f"call_{calls}", "type": "function", "function": {"name": name, "arguments": ""}}
                yield {"tool_calls": [{"index": calls, **first}]}
                for piece in cut(json.dumps(input), pieces):
                    yield {"tool_calls": [{"index": calls, "function": {"arguments": piece}}]}
                calls += 1
            case Raw(block):
                yield block
            case McpCall() | CustomTool():
                raise ValueError("first to be said in the agent's own words")


def _results(messages: list[dict[str, Any]]) -> list[str]:
    found: list[str] = []
    for message in reversed(messages):
        if message["role"] != "tool":
            break
        found.insert(0, texts(message["content"]))
    return found


def _spoken(content: Block, asked: Asked) -> Block:
    if not isinstance(content, McpCall):
        return content
    known = naming.declared(content, asked.tools)
    if not known:
        raise naming.missing(content, asked.tools)
    return Tool(known, content.arguments, pieces=content.pieces)
