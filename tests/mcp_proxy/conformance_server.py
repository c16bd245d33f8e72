"""
An MCP server with the tools, resources and prompts that the MCP project's conformance suite asks for by name.

Standard library only; the suite says what each must give, and tells how it liked it.
"""

from __future__ import annotations

import base64
import json
import struct
import sys
import zlib
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]
OPTIONS = ["option1", "option2", "option3"]


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


_HEAD, _PIXEL = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0), zlib.compress(b"\0\xff\0\0")
_PNG = b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", _HEAD) + _chunk(b"IDAT", _PIXEL) + _chunk(b"IEND", b"")
_WAV = b"RIFF" + struct.pack("<I", 36) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8)
IMAGE: Json = {"type": "image", "data": base64.b64encode(_PNG).decode(), "mimeType": "image/png"}
AUDIO: Json = {
    "type": "audio",
    "data": base64.b64encode(_WAV + b"data" + struct.pack("<I", 0)).decode(),
    "mimeType": "audio/wav",
}


def text(value: str) -> Json:
    """:returns: a piece of content."""
    return {"type": "text", "text": value}


def embedded(uri: str) -> Json:
    """:returns: a piece of content."""
    return {"type": "resource", "resource": {"uri": uri, "mimeType": "text/plain", "text": "a text inside"}}


def titled(*values: str) -> list[Json]:
    """:returns: choices with titles."""
    return [{"const": value, "title": f"The {value}"} for value in values]


DEFAULTS: Json = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
ENUMS: Json = {
    "untitledSingle": {"type": "string", "enum": OPTIONS},
    "titledSingle": {"type": "string", "oneOf": titled("value1", "value2", "value3")},
    "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"]},
    "untitledMulti": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"type": "string", "enum": OPTIONS}},
    "titledMulti": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"anyOf": titled("value1", "value2")}},
}
ADDRESS: Json = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
    "additionalProperties": False,
}


def read() -> Json:
    """:returns: the next message."""
    line = sys.stdin.readline()
    if not line:
        raise SystemExit
    message: Json = json.loads(line)
    return message


def send(**message: Any) -> None:
    """Send a message."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def notify(method: str, **params: Any) -> None:
    """Send a notification."""
    send(method=method, params=params)


def ask(method: str, **params: Any) -> Json:
    """:returns: the client's answer; other messages are answered meanwhile."""
    send(id="the-question", method=method, params=params)
    while True:
        message = read()
        if "method" not in message and message.get("id") == "the-question":
            result: Json = message.get("result", {})
            return result
        serve(message)


def elicit(properties: Json) -> list[Json]:
    """:returns: what a form gave."""
    schema = {"type": "object", "properties": properties, "required": []}
    answer = ask("elicitation/create", message="Please fill in", requestedSchema=schema)
    return [text(f"action={answer.get('action')}, content={json.dumps(answer.get('content', {}))}")]


def sample(prompt: str) -> list[Json]:
    """:returns: what the client's model said."""
    message = {"role": "user", "content": text(prompt)}
    return [text(f"LLM response: {ask('sampling/createMessage', messages=[message], maxTokens=100)}")]


def log() -> list[Json]:
    """:returns: a word, after three messages."""
    for word in ("started", "processing", "completed"):
        notify("notifications/message", level="info", data=word)
    return [text("logged")]


def fail() -> list[Json]:
    """:raises ValueError: always."""
    raise ValueError("this tool fails on purpose")


TOOLS: dict[str, tuple[Json, Callable[[Json], list[Json]]]] = {
    "test_simple_text": ({}, lambda a: [text("This is a simple text response for testing.")]),
    "test_image_content": ({}, lambda a: [IMAGE]),
    "test_audio_content": ({}, lambda a: [AUDIO]),
    "test_embedded_resource": ({}, lambda a: [embedded("test://embedded-resource")]),
    "test_multiple_content_types": ({}, lambda a: [text("several"), IMAGE, embedded("test://mixed")]),
    "test_tool_with_logging": ({}, lambda a: log()),
    "test_logging_tool": ({}, lambda a: log()),
    "test_streaming_elicitation": ({}, lambda a: elicit({"username": {"type": "string"}})),
    "test_tool_with_progress": ({}, lambda a: [text("done")]),
    "test_error_handling": ({}, lambda a: fail()),
    "test_sampling": ({"prompt": {"type": "string"}}, lambda a: sample(a["prompt"])),
    "test_elicitation": ({"message": {"type": "string"}}, lambda a: elicit({"username": {"type": "string"}})),
    "test_elicitation_sep1034_defaults": ({}, lambda a: elicit(DEFAULTS)),
    "test_elicitation_sep1330_enums": ({}, lambda a: elicit(ENUMS)),
    "json_schema_2020_12_tool": ({"name": {}, "address": {}}, lambda a: [text(json.dumps(a))]),
}
"""By name: the properties of the arguments, and what it does."""

PROMPTS: dict[str, tuple[tuple[str, ...], Callable[[Json], list[Json]]]] = {
    "test_simple_prompt": ((), lambda a: [text("This is a simple prompt for testing.")]),
    "test_prompt_with_arguments": (("arg1", "arg2"), lambda a: [text(f"arg1='{a['arg1']}', arg2='{a['arg2']}'")]),
    "test_prompt_with_embedded_resource": (("resourceUri",), lambda a: [embedded(a["resourceUri"]), text("Read it.")]),
    "test_prompt_with_image": ((), lambda a: [IMAGE, text("Look at it.")]),
}

RESOURCES = [
    {"uri": f"test://{name}", "name": name, "description": f"The resource {name}", "mimeType": kind}
    for name, kind in (
        ("static-text", "text/plain"),
        ("static-binary", "image/png"),
        ("watched-resource", "text/plain"),
    )
]
TEMPLATE = {"uriTemplate": "test://template/{id}/data", "name": "template", "mimeType": "application/json"}


def schema(name: str, properties: Json) -> Json:
    """:returns: of a tool's arguments."""
    return ADDRESS if name.startswith("json_schema") else {"type": "object", "properties": properties}


def call(params: Json) -> Json:
    """:returns: the result of a tool."""
    token = params.get("_meta", {}).get("progressToken")
    if params["name"] == "test_tool_with_progress" and token is not None:
        for done in (0, 50, 100):
            notify("notifications/progress", progressToken=token, progress=done, total=100)
    try:
        return {"content": TOOLS[params["name"]][1](params.get("arguments", {}))}
    except ValueError as e:
        return {"content": [text(str(e))], "isError": True}


def resource(uri: str) -> Json:
    """:returns: the contents of a resource."""
    if uri == "test://static-binary":
        return {"contents": [{"uri": uri, "mimeType": "image/png", "blob": IMAGE["data"]}]}
    if uri.startswith("test://template/"):
        identifier = uri.removeprefix("test://template/").removesuffix("/data")
        return {"contents": [{"uri": uri, "mimeType": "application/json", "text": json.dumps({"id": identifier})}]}
    return {"contents": [{"uri": uri, "mimeType": "text/plain", "text": f"This is {uri}."}]}


def initialize(params: Json) -> Json:
    """:returns: what this server can do."""
    changing = {"listChanged": True}
    resources = {"subscribe": True, **changing}
    capabilities = {"tools": changing, "resources": resources, "prompts": changing, "logging": {}, "completions": {}}
    info = {"name": "conformance", "version": "1"}
    return {"protocolVersion": params["protocolVersion"], "capabilities": capabilities, "serverInfo": info}


METHODS: dict[str, Callable[[Json], Json]] = {
    "initialize": initialize,
    "ping": lambda p: {},
    "logging/setLevel": lambda p: {},
    "completion/complete": lambda p: {"completion": {"values": ["paris", "park"], "total": 2, "hasMore": False}},
    "tools/list": lambda p: {
        "tools": [
            {"name": name, "description": f"The tool {name}", "inputSchema": schema(name, properties)}
            for name, (properties, _) in TOOLS.items()
        ]
    },
    "tools/call": call,
    "prompts/list": lambda p: {
        "prompts": [
            {
                "name": name,
                "description": f"The prompt {name}",
                "arguments": [{"name": a, "required": True} for a in names],
            }
            for name, (names, _) in PROMPTS.items()
        ]
    },
    "prompts/get": lambda p: {
        "messages": [{"role": "user", "content": each} for each in PROMPTS[p["name"]][1](p.get("arguments", {}))]
    },
    "resources/list": lambda p: {"resources": RESOURCES},
    "resources/templates/list": lambda p: {"resourceTemplates": [TEMPLATE]},
    "resources/read": lambda p: resource(p["uri"]),
    "resources/subscribe": lambda p: {},
    "resources/unsubscribe": lambda p: {},
}


def serve(message: Json) -> None:
    """Answer one message."""
    if "id" not in message or "method" not in message:
        return
    if (method := METHODS.get(message["method"])) is None:
        send(id=message["id"], error={"code": -32601, "message": "there is no such method"})
    else:
        send(id=message["id"], result=method(message.get("params", {})))


if __name__ == "__main__":
    while True:
        serve(read())
