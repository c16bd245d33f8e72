"""
The adapter for Claude Code, tested with version 2.1.329.

Claude Code keeps its conversation below ``~/.claude``. It accepts ``--continue`` without a conversation, but not in its
full-screen interface. Of the token counts that it reports, ``modelUsage`` and ``total_cost_usd`` are totals of the
conversation; ``model_usage_since_last_result`` is the turn's, including subagents.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ironcurtain.agents.adapter import ORIENTATION, SERVER, Facts, File, Shareable, fake_key, json_text
from ironcurtain.agents.streams.claude_code import ClaudeDialogue
from ironcurtain.agents.streams.dialogue import Dialogue

KEY_SUFFIX = 20
"""Number of characters of an API key by which Claude Code remembers that the key was approved."""

KEEP_DAYS = 36_500
"""Days after which Claude Code may delete a conversation. The default is 30, but sessions can be resumed later."""

_NO_NETWORK = ("WebFetch", "WebSearch")
"""Its own tools that need a network."""

_MCP_FILE = "claude-mcp.json"
_ORIENTATION_FILE = "orientation.md"


class ClaudeCode:
    """Claude Code of Anthropic."""

    id = "claude-code"
    display_name = "Claude Code"
    image = "claude-code"
    providers = ("anthropic", "claude", "bedrock", "vertex", "foundry")
    supports_pty = True
    shareable = (
        Shareable("memory", ".claude/CLAUDE.md"),
        Shareable("skills", ".claude/skills"),
        Shareable("commands", ".claude/commands"),
    )

    def environment(self, facts: Facts) -> Mapping[str, str]:
        """:returns: the key or token; no telemetry, no updates; and tools that the model sees from the start."""
        return {
            **self._paying(facts),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL": "1",
            "DISABLE_AUTOUPDATER": "1",
            # Otherwise the model has to search for the tools of MCP servers before it can call them.
            "ENABLE_TOOL_SEARCH": "false",
        }

    def files(self, facts: Facts) -> Sequence[File]:
        """
        :returns: the MCP server and the orientation, which the agent cannot change; and the answers to its first
            questions.
        """
        return (
            File("orientation", _MCP_FILE, json_text({"mcpServers": {SERVER: _server(facts)}})),
            File("orientation", _ORIENTATION_FILE, facts.orientation),
            File("home", ".claude.json", json_text(self._answers(facts))),
            File("home", ".claude/settings.json", json_text(_SETTINGS)),
        )

    def _paying(self, facts: Facts) -> Mapping[str, str]:
        provider = facts.paid(self.providers) or "anthropic"
        token, place = fake_key(facts, provider, self.display_name), facts.places.get(provider, {})
        if provider == "claude":
            return {"CLAUDE_CODE_OAUTH_TOKEN": token}
        if provider == "bedrock":
            region = {"AWS_REGION": place["region"]}
            return {"CLAUDE_CODE_USE_BEDROCK": "1", "AWS_BEARER_TOKEN_BEDROCK": token, **region}
        if provider == "vertex":
            return {
                "CLAUDE_CODE_USE_VERTEX": "1",
                "CLAUDE_CODE_SKIP_VERTEX_AUTH": "1",
                "CLOUD_ML_REGION": place["region"],
                "ANTHROPIC_VERTEX_PROJECT_ID": place["project"],
                "ANTHROPIC_CUSTOM_HEADERS": f"Authorization: Bearer {token}",
            }
        if provider == "foundry":
            resource = {"ANTHROPIC_FOUNDRY_RESOURCE": place["resource"]}
            return {"CLAUDE_CODE_USE_FOUNDRY": "1", "ANTHROPIC_FOUNDRY_API_KEY": token, **resource}
        return {"ANTHROPIC_API_KEY": token}

    def _answers(self, facts: Facts) -> dict[str, Any]:
        key = facts.fake_keys.get("anthropic", "")
        return {
            "hasCompletedOnboarding": True,
            "customApiKeyResponses": {"approved": [key[-KEY_SUFFIX:]] if key else [], "rejected": []},
            "projects": {facts.directory: {"hasTrustDialogAccepted": True}},
        }

    def turn(self, facts: Facts, first: bool) -> tuple[str, ...]:
        """:returns: the command, which stays, and speaks JSON lines."""
        again = ("--resume", facts.conversation) if facts.conversation else ("--continue",)
        resume = () if first and not facts.conversation else again
        return (*_start(facts), *resume, *_STREAMS, "--print")

    def screen(self, facts: Facts, first: bool, task: str = "") -> tuple[str, ...]:
        """:returns: the command of the full-screen interface."""
        return (*_start(facts), *(() if first else ("--continue",)), *(("--", task) if task else ()))

    def dialogue(self, facts: Facts) -> Dialogue:
        """:returns: the dialogue in JSON lines."""
        return ClaudeDialogue(SERVER)


SNAPSHOTS = (2, 1, 257)
"""The first release that keeps the system prompt of a conversation, and has an option against it."""

_STREAMS = (
    *("--input-format", "stream-json", "--output-format", "stream-json", "--verbose"),
    *("--include-partial-messages", "--replay-user-messages"),
)

_SETTINGS = {
    # The command line disables questions. A default mode here would make the full-screen interface offer another one.
    "permissions": {"deny": list(_NO_NETWORK), "disableAutoMode": "disable"},
    "skipDangerousModePermissionPrompt": True,
    "cleanupPeriodDays": KEEP_DAYS,
}


def _server(facts: Facts) -> dict[str, Any]:
    program, *arguments = facts.mcp_command
    return {"command": program, "args": arguments, "timeout": facts.tool_seconds * 1000}


_NO_NESTED = json.dumps({"sandbox": {"enabled": False}})
"""
Settings on the command line, which win over those of a project: inside a sandbox no other one can be made, so that a
project that enables Claude Code's own would make every command fail.
"""


def _start(facts: Facts) -> tuple[str, ...]:
    # --strict-mcp-config: servers in the workspace's own .mcp.json are not started.
    return (
        *("claude", "--dangerously-skip-permissions", "--settings", _NO_NESTED),
        *("--mcp-config", f"{ORIENTATION}/{_MCP_FILE}", "--strict-mcp-config"),
        *("--append-system-prompt-file", f"{ORIENTATION}/{_ORIENTATION_FILE}"),
        # Otherwise it continues with the orientation of the conversation's beginning; older ones do not.
        *(("--system-prompt-snapshot", "off") if facts.resumed and not facts.older_than(SNAPSHOTS) else ()),
        *(("--model", facts.model) if facts.model else ()),
    )
