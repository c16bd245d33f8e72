"""The events of an answer of Anthropic's Messages API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.model_stub.dialect import USAGE, cut
from tests.model_stub.replies import Answer, Block, CustomTool, McpCall, Raw, Text, Thinking, Tool


def events(answer: Answer, model: str, number: int) -> list[bytes]:
    """:returns: the Server-Sent Events of a whole answer."""
    usage = {name: 0 for name in USAGE} | answer.usage
    start = {**_message(model, number), "usage": {**usage, "output_tokens": 1}}
    made = [_event("message_start", message=start)]
    made += [_event("ping")] * answer.pings
    for index, content in enumerate(answer.content):
        made += _block_events(index, content, number)
    delta = {"stop_reason": _stop_reason(answer), "stop_sequence": None}
    made.append(_event("message_delta", delta=delta, usage={"output_tokens": usage["output_tokens"]}))
    return [*made, _event("message_stop")]


def error_event(answer: Answer) -> bytes:
    """:returns: the event that ends an answer with an error."""
    type_, message = answer.error
    return _event("error", error={"type": type_, "message": message})


def whole(answer: Answer, model: str, number: int) -> bytes:
    """:returns: the answer as one JSON message, for clients that do not ask for a stream."""
    content = [_finished(index, block, number) for index, block in enumerate(answer.content)]
    message = {**_message(model, number), "content": content, "stop_reason": _stop_reason(answer)}
    return json.dumps({**message, "usage": answer.usage}).encode()


def _message(model: str, number: int) -> dict[str, Any]:
    blank: dict[str, Any] = {"content": [], "stop_reason": None, "stop_sequence": None}
    return {"id": f"msg_{number:024d}", "type": "message", "role": "assistant", "model": model, **blank}


def _stop_reason(answer: Answer) -> str:
    uses_tool = any(isinstance(content, Tool) for content in answer.content)
    return answer.stop_reason or ("tool_use" if uses_tool else "end_turn")


def _event(name: str, **fields: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name, **fields})}\n\n".encode()


def _finished(index: int, content: Block, number: int) -> dict[str, Any]:
    match content:
        case Text(chunks):
            return {"type": "text", "text": "".join(chunks)}
        case Thinking(chunks, signature):
            return {"type": "thinking", "thinking": "".join(chunks), "signature": signature}
        case Tool(name, input, id):
            return {"type": "tool_use", "id": id or f"toolu_{number:012d}{index:012d}", "name": name, "input": input}
        case Raw(block):
            return block
        case McpCall() | CustomTool():
            raise ValueError("first to be said in the agent's own words")


def _block_events(index: int, content: Block, number: int) -> Iterator[bytes]:
    start, deltas = _finished(index, content, number), []
    match content:
        case Text(chunks):
            start["text"] = ""
            deltas = [{"type": "text_delta", "text": chunk} for chunk in chunks]
        case Thinking(chunks, signature):
            start |= {"thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": chunk} for chunk in chunks]
            deltas.append({"type": "signature_delta", "signature": signature})
        case Tool(_, input, _, pieces):
            start["input"] = {}
            partial = ("", *cut(json.dumps(input), pieces))
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in partial]
    yield _event("content_block_start", index=index, content_block=start)
    for delta in deltas:
        yield _event("content_block_delta", index=index, delta=delta)
    yield _event("content_block_stop", index=index)
