"""How agents name the tools of MCP servers (seen in their requests)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from tests.model_stub.dialect import Invalid
from tests.model_stub.replies import McpCall

_FORMS = (
    "mcp__{server}__{name}",  # Claude Code
    "mcp__{server}.{name}",  # Codex: a tool in a namespace
    "{server}_{name}",  # OpenCode
    "mcp_{server}_{name}",  # Gemini CLI
)


def declared(call: McpCall, tools: Iterable[str]) -> str:
    """:returns: the tool's name among those declared, empty if it is none of them."""
    forms = {_plain(form.format(server=call.server, name=call.name)) for form in _FORMS}
    return next((tool for tool in tools if _plain(tool) in forms), "")


def missing(call: McpCall, tools: Iterable[str]) -> Invalid:
    """:returns: what to say if none of those declared is the tool."""
    return Invalid(f"the stub: no tool of {call.server} is {call.name}; declared are {', '.join(tools)}")


def script(call: McpCall) -> str:
    """:returns: JavaScript for Codex's code mode, which calls the tool and shows what it gave."""
    name = re.sub(r"\W", "_", f"mcp__{call.server}__{call.name}")
    return f"const result = await tools.{name}({json.dumps(call.arguments)});\ntext(result);\n"


def _plain(name: str) -> str:
    # Agents replace what an API does not allow in a name, in ways of their own.
    return re.sub(r"\W", "_", name)
