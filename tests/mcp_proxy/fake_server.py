"""
An MCP server for tests, with good and bad habits. Standard library only: it starts fast.

Each tool takes free arguments and does what its name says. What the server was sent is written, a line each, to the
file in ``RECORD``, if there is one.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

RECORD = os.environ.get("RECORD", "")
PLAIN_TOOLS = """
    echo sleep progress crash crash_midline garbage big badutf8 surrogate ask flood stubborn child error fail where
    stderr environment silent deaf rename change unknown_notice not_an_object file overlong
"""
TOOLS = [*PLAIN_TOOLS.split(), "odd result"]
RAW: dict[str, str] = json.loads(os.environ.get("RAW", "{}"))  # by tool or method: what is answered, as it is
PAGE = int(os.environ.get("PAGE", "7"))
DEFINITIONS: dict[str, Any] = json.loads(os.environ.get("DEFINITIONS", "{}"))  # by tool: what replaces its schema
description = os.environ.get("DESCRIPTION", "a tool for tests")
if "TOOLS" in os.environ:
    TOOLS = os.environ["TOOLS"].split(",")
extra_tools = [f"extra{i}" for i in range(int(os.environ.get("EXTRA", "0")))]
pending: dict[Any, Any] = {}
asked = 0


def send(message: dict[str, Any]) -> None:
    line(json.dumps({"jsonrpc": "2.0", **message}).encode())


def line(data: bytes) -> None:
    sys.stdout.buffer.write(data + b"\n")
    sys.stdout.buffer.flush()


def text(identifier: Any, value: str, **more: Any) -> None:
    send({"id": identifier, "result": {"content": [{"type": "text", "text": value}], **more}})


def definition(name: str) -> dict[str, Any]:
    properties = {"path": {"type": "string"}}
    if name == "file":
        properties["text"] = {"type": "string"}
    schema = {"type": "object", "properties": properties, "additionalProperties": True}
    schema = DEFINITIONS.get(name, schema)
    return {"name": name, "description": description, "inputSchema": schema, "x-unknown": {"kept": [1.5, None, 2**70]}}


def initialize(identifier: Any, params: dict[str, Any]) -> None:
    if "HELD_BY" in os.environ:  # a file; whoever has locked it holds this server up
        with open(os.environ["HELD_BY"]) as held:
            fcntl.flock(held, fcntl.LOCK_SH)
    capabilities = {
        "tools": {"listChanged": True},
        "prompts": {"listChanged": True},
        "resources": {"subscribe": True, "listChanged": True},
        "logging": {},
        "completions": {},
    }
    send(
        {
            "id": identifier,
            "result": {
                "protocolVersion": os.environ.get("VERSION", params["protocolVersion"]),
                "capabilities": capabilities,
                "serverInfo": {"name": "fake", "version": "1"},
                "instructions": os.environ.get("INSTRUCTIONS", ""),
            },
        }
    )


def list_tools(identifier: Any, params: dict[str, Any]) -> None:
    start = int(params.get("cursor", "0"))
    names = [*TOOLS, *extra_tools]
    result: dict[str, Any] = {"tools": [definition(name) for name in names[start : start + PAGE]]}
    if start + PAGE < len(names):
        result["nextCursor"] = start + PAGE if "NUMBERS" in os.environ else str(start + PAGE)
    send({"id": identifier, "result": result})


def resources() -> list[dict[str, Any]]:
    workspace = os.getcwd()
    return [
        {"uri": "test://static", "name": "static", "x-unknown": 1},
        {"uri": f"file://{workspace}/notes.txt", "name": f"notes in {workspace}"},
        {"uri": "file:///etc/shadow", "name": "shadow"},
    ]


def read(identifier: Any, params: dict[str, Any]) -> None:
    contents = [{"uri": params["uri"], "text": f"content of {params['uri']}"}]
    send({"id": identifier, "result": {"contents": contents, "x-unknown": True}})


def ask(method: str, params: dict[str, Any], then: Callable[[dict[str, Any]], None]) -> None:
    global asked
    asked += 1
    pending[asked] = then
    send({"id": asked, "method": method, "params": params})


def call(identifier: Any, params: dict[str, Any]) -> None:
    global description
    name, arguments = params["name"], params.get("arguments", {})
    token = params.get("_meta", {}).get("progressToken")
    if name == "echo":
        text(identifier, json.dumps(params), structuredContent={"got": arguments}, **{"x-unknown": 2**70})
    elif name == "sleep":
        time.sleep(arguments.get("seconds", 1))
        text(identifier, "slept")
    elif name == "progress":
        for value in arguments.get("values", [1, 2, 3]):
            report = {"progressToken": token, "progress": value, "total": 10, "x-unknown": "kept"}
            send({"method": "notifications/progress", "params": report})
        text(identifier, "done")
        send({"method": "notifications/progress", "params": {"progressToken": token, "progress": 99}})
    elif name == "crash":
        os._exit(3)
    elif name == "crash_midline":
        sys.stdout.buffer.write(b'{"jsonrpc":"2.0","id":')
        sys.stdout.buffer.flush()
        os._exit(3)
    elif name == "garbage":
        for junk in (b"Starting up...", b'{"jsonrpc":"2.0","id":99999,"result":{}}', b"[1,2]", b"\xff\xfe", b"{", b""):
            line(junk)
        text(identifier, "after garbage")
        text(identifier, "a second answer")
    elif name == "big":
        text(identifier, "x" * arguments["size"])
    elif name == "badutf8":
        answer = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"caf\xe9"}]}}'
        line(answer % identifier)
    elif name == "surrogate":
        broken = b"a\\ud83d\\\\ud83d\\ud83d\\ude00"
        answer = b'{"jsonrpc":"2.0","id":%d,\r"result":{"content":[{"type":"text","text":"' + broken + b'"}]}}'
        line(answer % identifier)
    elif name == "ask":
        method = arguments["method"]
        ask(method, arguments.get("params", {}), lambda answer: text(identifier, json.dumps(answer)))
    elif name == "flood":
        for number in range(arguments["count"]):
            data = {"number": number, "text": "x" * arguments.get("size", 1000)}
            send({"method": "notifications/message", "params": {"level": "info", "data": data}})
        text(identifier, "flooded")
    elif name == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        text(identifier, str(os.getpid()))
        while True:
            time.sleep(1)
    elif name == "child":
        script = "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
        running = subprocess.Popen([sys.executable, "-c", script])
        text(identifier, str(running.pid))
    elif name == "error":
        error = {"code": -32050, "message": f"refused in {os.getcwd()}", "data": {"x-unknown": 1.5}}
        send({"id": identifier, "error": error})
    elif name == "fail":
        text(identifier, "it failed: " + "y" * 2000, isError=True)
    elif name == "where":
        here = os.getcwd()
        text(identifier, f"{here} and {here}/a.txt but not {here}-other", structuredContent={"path": f"{here}/b"})
    elif name == "stderr":
        sys.stderr.write("z" * 5000 + "\n")
        for number in range(arguments.get("lines", 1)):
            sys.stderr.write(f"line {number}\n")
        sys.stderr.flush()
        text(identifier, "written")
    elif name == "environment":
        text(identifier, json.dumps({"environment": dict(os.environ), "group": os.getpgrp(), "pid": os.getpid()}))
    elif name == "silent":
        pass
    elif name == "deaf":
        text(identifier, "not reading any more")
        time.sleep(3600)
    elif name == "rename":
        extra_tools.append("renamed")
        send({"method": "notifications/tools/list_changed"})
        text(identifier, "renamed")
    elif name == "change":
        description = arguments["description"]
        send({"method": "notifications/tools/list_changed"})
        text(identifier, "changed")
    elif name == "unknown_notice":
        send({"method": "notifications/whatever", "params": {"where": os.getcwd(), "x": 1.5}})
        send({"method": "notifications/resources/updated", "params": {"uri": "test://static"}})
        text(identifier, "told")
    elif name == "not_an_object":
        send({"id": identifier, "result": [1]})
    elif name == "overlong":
        sys.stdout.buffer.write(b'{"jsonrpc":"2.0","id":1,"x":"')
        for _ in range(66):
            sys.stdout.buffer.write(b"x" * 1024 * 1024)
        line(b'"}')
        text(identifier, "sent")
    else:
        text(identifier, f"{name} was called")


def handle(message: dict[str, Any]) -> None:
    identifier, method, params = message.get("id"), message.get("method"), message.get("params") or {}
    if method is None:
        if (then := pending.pop(identifier, None)) is not None:
            then({key: message[key] for key in ("result", "error") if key in message})
    elif (raw := RAW.get(params.get("name", method)) or RAW.get(method)) is not None:
        line(raw.replace("ID", str(identifier)).encode("latin-1"))
    elif method == "initialize":
        initialize(identifier, params)
    elif method == "tools/list":
        list_tools(identifier, params)
    elif method == "tools/call":
        call(identifier, params)
    elif method == "prompts/list":
        send(
            {
                "id": identifier,
                "result": {"prompts": [{"name": "greet", "arguments": [{"name": "who"}], "x-unknown": 1}]},
            }
        )
    elif method == "prompts/get":
        message = {"role": "user", "content": {"type": "text", "text": json.dumps(params)}}
        send({"id": identifier, "result": {"messages": [message]}})
    elif method == "resources/list":
        send({"id": identifier, "result": {"resources": resources()}})
    elif method == "resources/templates/list":
        templates = [{"uriTemplate": "test://items/{id}", "name": "item"}]
        send({"id": identifier, "result": {"resourceTemplates": templates}})
    elif method == "resources/read":
        read(identifier, params)
    elif method == "completion/complete":
        send({"id": identifier, "result": {"completion": {"values": [json.dumps(params)]}}})
    elif identifier is not None:
        send({"id": identifier, "result": {}})


def main() -> None:
    if "EXIT" in os.environ:
        sys.exit(int(os.environ["EXIT"]))
    for raw in sys.stdin.buffer:
        if RECORD:
            with open(RECORD, "ab") as record:
                record.write(raw)
        handle(json.loads(raw))


if __name__ == "__main__":
    main()
