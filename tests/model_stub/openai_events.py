"""The events of an answer of OpenAI's Responses API, and the whole response."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.model_stub.dialect import cut, input_tokens
from tests.model_stub.replies import Answer, Block, CustomTool, McpCall, Raw, Text, Thinking, Tool

CREATED = 1_780_000_000
"""Seconds since 1970 at which every response says that it was made."""

_CODES = {"overloaded_error": "server_is_overloaded", "rate_limit_error": "rate_limit_exceeded"}
_INCOMPLETE = {"max_tokens": "max_output_tokens", "refusal": "content_filter"}


def events(answer: Answer, model: str, number: int) -> list[bytes]:
    """:returns: the Server-Sent Events of a whole answer."""
    blank = _response(model, number)
    made: list[dict[str, Any]] = [
        {"type": f"response.{state}", "response": blank} for state in ("created", "in_progress")
    ]
    items = [_item(index, content, number) for index, content in enumerate(answer.content)]
    for index, (item, content) in enumerate(zip(items, answer.content, strict=True)):
        made += ({**event, "output_index": index} for event in _item_events(item, content))
    done = _finished(answer, blank, items)
    made.append({"type": f"response.{done['status']}", "response": done})
    return [_event(event, sequence) for sequence, event in enumerate(made)]


def error_event(answer: Answer) -> bytes:
    """:returns: the event that ends an answer with an error."""
    type_, message = answer.error
    error = {"code": _CODES.get(type_, "server_error"), "message": message}
    failed = {**_response("", 0), "status": "failed", "error": error}
    return _event({"type": "response.failed", "response": failed}, 999)


def whole(answer: Answer, model: str, number: int) -> bytes:
    """:returns: the response, for clients that do not ask for a stream."""
    items = [_item(index, content, number) for index, content in enumerate(answer.content)]
    return json.dumps(_finished(answer, _response(model, number), items)).encode()


def _response(model: str, number: int) -> dict[str, Any]:
    return {
        "id": f"resp_{number:032x}",
        "object": "response",
        "created_at": CREATED + number,
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": None,
        "model": model,
        "output": [],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "reasoning": {"effort": None, "summary": None},
        "service_tier": "default",
        "store": False,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": None,
        "user": None,
        "metadata": {},
    }


def _finished(answer: Answer, blank: dict[str, Any], items: list[dict[str, Any]]) -> dict[str, Any]:
    reason = _INCOMPLETE.get(answer.stop_reason)
    given, output = input_tokens(answer.usage), answer.usage.get("output_tokens", 0)
    usage = {
        "input_tokens": given,
        "input_tokens_details": {
            "cached_tokens": answer.usage.get("cache_read_input_tokens", 0),
            "cache_write_tokens": answer.usage.get("cache_creation_input_tokens", 0),
        },
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": given + output,
    }
    state = {"status": "incomplete", "incomplete_details": {"reason": reason}} if reason else {"status": "completed"}
    return {**blank, **state, "output": items, "usage": usage}


def _item(index: int, content: Block, number: int) -> dict[str, Any]:
    id = f"{number:08x}{index:024x}"
    match content:
        case Text(chunks):
            part = {"type": "output_text", "annotations": [], "logprobs": [], "text": "".join(chunks)}
            message = {"id": f"msg_{id}", "type": "message", "status": "completed", "role": "assistant"}
            return {**message, "content": [part]}
        case Thinking(chunks, signature):
            summary = [{"type": "summary_text", "text": "".join(chunks)}]
            return {"id": f"rs_{id}", "type": "reasoning", "summary": summary, "encrypted_content": signature}
        case Tool(name, input, call_id, _, namespace):
            call = {
                "id": f"fc_{id}",
                "type": "function_call",
                "status": "completed",
                "call_id": call_id or f"call_{id}",
            }
            place = {"namespace": namespace} if namespace else {}
            return {**call, **place, "name": name, "arguments": json.dumps(input)}
        case CustomTool(name, text):
            call = {"id": f"ctc_{id}", "type": "custom_tool_call", "status": "completed", "call_id": f"call_{id}"}
            return {**call, "name": name, "input": text}
        case Raw(block):
            return block
        case McpCall():
            raise ValueError("first to be said in the agent's own words")


def _item_events(item: dict[str, Any], content: Block) -> Iterator[dict[str, Any]]:
    yield {"type": "response.output_item.added", "item": _begun(item)}
    match content:
        case Text(chunks):
            yield from _text_events(item, chunks)
        case Thinking(chunks):
            yield from _summary_events(item, chunks)
        case Tool(pieces=pieces):
            yield from _piecewise("response.function_call_arguments", item, "arguments", cut(item["arguments"], pieces))
        case CustomTool(_, text, pieces):
            yield from _piecewise("response.custom_tool_call_input", item, "input", cut(text, pieces))
    yield {"type": "response.output_item.done", "item": item}


def _begun(item: dict[str, Any]) -> dict[str, Any]:
    blank = {"content": [], "summary": [], "arguments": "", "input": ""}
    begun = {name: blank.get(name, value) for name, value in item.items()}
    return {**begun, "status": "in_progress"} if "status" in item else begun


def _text_events(item: dict[str, Any], chunks: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    place = {"item_id": item["id"], "content_index": 0}
    (part,) = item["content"]
    yield {"type": "response.content_part.added", **place, "part": {**part, "text": ""}}
    for chunk in chunks:
        yield {"type": "response.output_text.delta", **place, "delta": chunk, "logprobs": []}
    yield {"type": "response.output_text.done", **place, "text": part["text"], "logprobs": []}
    yield {"type": "response.content_part.done", **place, "part": part}


def _summary_events(item: dict[str, Any], chunks: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    place = {"item_id": item["id"], "summary_index": 0}
    (part,) = item["summary"]
    yield {"type": "response.reasoning_summary_part.added", **place, "part": {**part, "text": ""}}
    for chunk in chunks:
        yield {"type": "response.reasoning_summary_text.delta", **place, "delta": chunk}
    yield {"type": "response.reasoning_summary_text.done", **place, "text": part["text"]}
    yield {"type": "response.reasoning_summary_part.done", **place, "part": part}


def _piecewise(kind: str, item: dict[str, Any], name: str, pieces: Iterator[str]) -> Iterator[dict[str, Any]]:
    for piece in pieces:
        yield {"type": f"{kind}.delta", "item_id": item["id"], "delta": piece}
    yield {"type": f"{kind}.done", "item_id": item["id"], name: item[name]}


def _event(event: dict[str, Any], sequence: int) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps({**event, 'sequence_number': sequence})}\n\n".encode()
