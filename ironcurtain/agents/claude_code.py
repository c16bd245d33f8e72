"""
The adapter for Claude Code, tested with version 2.1.329.

Claude Code keeps its conversation below ``~/.claude``. It accepts ``--continue`` without a conversation, but not in its
full-screen interface. Of the token counts that it reports, ``modelUsage`` and ``total_cost_usd`` are totals of the
conversation; ``model_usage_since_last_result`` is the turn's, including subagents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ironcurtain.agents.adapter import (
    ORIENTATION,
    SERVER,
    AgentAnswer,
    Facts,
    File,
    TurnOutcome,
    fake_key,
    json_text,
)
from ironcurtain.agents.output import count_at, dig, failure, objects, status_at, text_at
from ironcurtain.llm.model import TokenUsage

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
        """:returns: the command, which prints one JSON object per line."""
        return (*_start(facts), "--continue", "--output-format", "stream-json", "--verbose", "--print")

    def screen(self, facts: Facts, first: bool, task: str = "") -> tuple[str, ...]:
        """:returns: the command of the full-screen interface."""
        return (*_start(facts), *(() if first else ("--continue",)), *(("--", task) if task else ()))

    def answer(self, outcome: TurnOutcome) -> AgentAnswer:
        """
        Find the result, the last object printed; the first one says whether the MCP server was connected.

        :raises TurnFailed: there is no answer.
        """
        events = list(objects(outcome.stdout))
        result = next((event for event in reversed(events) if event.get("type") == "result"), None)
        if any(_lost_tools(event) for event in events):
            raise failure(self.display_name, outcome, text_at(result, "result"), kind="mcp-down")
        if result is None or result.get("is_error") or outcome.exit_code != 0:
            reason, status = _reason(result), status_at(result, "api_error_status")
            raise failure(self.display_name, outcome, reason, status=status)
        text = text_at(result, "result")
        if not text.strip():
            raise failure(self.display_name, outcome, kind="empty")
        return AgentAnswer(text, _usage(result))


_SETTINGS = {
    # The command line disables questions. A default mode here would make the full-screen interface offer another one.
    "permissions": {"deny": list(_NO_NETWORK), "disableAutoMode": "disable"},
    "skipDangerousModePermissionPrompt": True,
    "cleanupPeriodDays": KEEP_DAYS,
}


def _server(facts: Facts) -> dict[str, Any]:
    program, *arguments = facts.mcp_command
    return {"command": program, "args": arguments, "timeout": facts.tool_seconds * 1000}


def _start(facts: Facts) -> tuple[str, ...]:
    # --strict-mcp-config: servers in the workspace's own .mcp.json are not started.
    return (
        *("claude", "--dangerously-skip-permissions"),
        *("--mcp-config", f"{ORIENTATION}/{_MCP_FILE}", "--strict-mcp-config"),
        *("--append-system-prompt-file", f"{ORIENTATION}/{_ORIENTATION_FILE}"),
        # Otherwise it continues with the orientation of the conversation's beginning.
        *(("--system-prompt-snapshot", "off") if facts.resumed else ()),
        *(("--model", facts.model) if facts.model else ()),
    )


def _lost_tools(event: dict[str, Any]) -> bool:
    if event.get("type") != "system" or event.get("subtype") != "init":
        return False
    servers = event.get("mcp_servers")
    named = [s for s in servers if text_at(s, "name") == SERVER] if isinstance(servers, list) else []
    return not any(text_at(server, "status") in ("connected", "pending") for server in named)


def _reason(result: dict[str, Any] | None) -> str:
    errors = dig(result, "errors")
    reasons = "; ".join(e for e in errors if isinstance(e, str)) if isinstance(errors, list) else ""
    return text_at(result, "result") or reasons


def _usage(result: dict[str, Any]) -> TokenUsage:
    models = result.get("model_usage_since_last_result")
    used = TokenUsage()
    for counts in models.values() if isinstance(models, dict) else ():
        names = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
        used += TokenUsage(*(count_at(counts, name) for name in names))
    return used
