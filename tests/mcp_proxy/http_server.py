"""
A real MCP server behind HTTP: the official SDK's, on a listening socket that it is given.

Usage: ``http_server.py FD [--json] [--handshake]``; the last: it does not know revision 2026-07-28. What it was sent to
be let in is what its tool ``environment`` tells.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import anyio
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel
from starlette.responses import Response

HANDSHAKE = "--handshake" in sys.argv
server = MCPServer("behind-http", instructions="Be brief.")


class Name(BaseModel):
    name: str


@server.tool()
async def echo(value: str) -> str:
    return value


@server.tool()
async def environment(context: Context) -> str:
    return json.dumps({"headers": dict(context.headers or {}), "pid": os.getpid()})


@server.tool()
async def progress(context: Context) -> str:
    for step in range(3):
        await context.report_progress(step + 1, 3, f"step {step + 1}")
    return "done"


@server.tool()
async def sleep() -> str:
    try:
        await anyio.sleep_forever()
    finally:
        stopped.append("sleep")
    return ""


@server.tool()
async def stubborn() -> str:
    return json.dumps(stopped)


@server.tool()
async def ask(context: Context) -> str:
    answer = await context.elicit("your name?", Name)
    return answer.model_dump_json()


@server.tool()
async def change(context: Context) -> str:
    server.add_tool(echo, name="renamed")
    if HANDSHAKE:
        await context.session.send_tool_list_changed()
    else:
        await context.notify_tools_changed()
    return "changed"


@server.tool()
async def crash() -> None:
    os._exit(3)


@server.tool()
async def big(size: int) -> str:
    return "x" * size


def earlier(app: Any) -> Any:
    """:returns: the application without the requests of revision 2026-07-28."""

    async def filtered(scope: Any, receive: Any, send: Any) -> None:
        if any(name == b"mcp-method" for name, _ in scope.get("headers", ())):
            await Response(status_code=400)(scope, receive, send)
        else:
            await app(scope, receive, send)

    return filtered


stopped: list[str] = []

if __name__ == "__main__":
    app = server.streamable_http_app(json_response="--json" in sys.argv)
    uvicorn.run(earlier(app) if HANDSHAKE else app, fd=int(sys.argv[1]), log_level="error")
