"""
The adapter for Gemini CLI, tested with version 0.61.0.

Gemini CLI keeps its conversation below ``~/.gemini/tmp``, and accepts ``--resume latest`` without one. The orientation
is an extension, since a project's settings can disable other context files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ironcurtain.agents.adapter import (
    SERVER,
    AgentAnswer,
    Facts,
    File,
    TurnFailed,
    TurnOutcome,
    fake_key,
    json_text,
)
from ironcurtain.agents.output import count_at, failure, objects, status_at, text_at
from ironcurtain.llm.model import TokenUsage

_EXTENSION = ".gemini/extensions/ironcurtain"
_ORIENTATION_FILE = "ORIENTATION.md"
_TOOLS_LOST = b"MCP issues detected"
_POLICY = """\
# Without a network these could only fail.
[[rule]]
toolName = ["google_web_search", "web_fetch"]
decision = "deny"
priority = 999
"""


class Gemini:
    """Gemini CLI of Google."""

    id = "gemini"
    display_name = "Gemini CLI"
    image = "gemini"
    providers = ("google", "google-login")
    supports_pty = True

    def environment(self, facts: Facts) -> Mapping[str, str]:
        """:returns: the key or token, and that the workspace is trusted."""
        trusted = {"GEMINI_CLI_TRUST_WORKSPACE": "true"}
        if facts.paid(self.providers) == "google-login":
            token = fake_key(facts, "google-login", self.display_name)
            return {"GOOGLE_GENAI_USE_GCA": "true", "GOOGLE_CLOUD_ACCESS_TOKEN": token, **trusted}
        return {"GEMINI_API_KEY": fake_key(facts, "google", self.display_name), **trusted}

    def files(self, facts: Facts) -> Sequence[File]:
        """
        :returns: settings, a policy, and an extension with the orientation; the agent's own memory is in another file.
        """
        program, *arguments = facts.mcp_command
        server = {"command": program, "args": arguments, "timeout": facts.tool_seconds * 1000, "trust": True}
        kind = "oauth-personal" if facts.paid(self.providers) == "google-login" else "gemini-api-key"
        security = {"auth": {"selectedType": kind}, "folderTrust": {"enabled": False}}
        settings = {"security": security, **_SETTINGS, "mcpServers": {SERVER: server}}
        extension = {"name": "ironcurtain", "version": "1.0.0", "contextFileName": _ORIENTATION_FILE}
        return (
            File("home", ".gemini/settings.json", json_text(settings)),
            File("home", ".gemini/policies/ironcurtain.toml", _POLICY),
            File("home", f"{_EXTENSION}/gemini-extension.json", json_text(extension)),
            File("home", f"{_EXTENSION}/{_ORIENTATION_FILE}", facts.orientation),
        )

    def turn(self, facts: Facts, first: bool) -> tuple[str, ...]:
        """:returns: the command, which prints one JSON object per line."""
        return (*_start(facts), "--resume", "latest", "--output-format", "stream-json")

    def screen(self, facts: Facts, first: bool, task: str = "") -> tuple[str, ...]:
        """:returns: the command of the full-screen interface."""
        resume = () if first else ("--resume", "latest")
        return (*_start(facts), *resume, *((f"--prompt-interactive={task}",) if task else ()))

    def answer(self, outcome: TurnOutcome) -> AgentAnswer:
        """
        Join the pieces of text since the last use of a tool.

        The exit status is unreliable: it is 0 after an empty answer, and the lowest byte of an HTTP status after
        others.

        :raises TurnFailed: there is no answer.
        """
        if _TOOLS_LOST in outcome.stderr:
            raise failure(self.display_name, outcome, kind="mcp-down")
        events = list(objects(outcome.stdout))
        result = next((event for event in reversed(events) if event.get("type") == "result"), None)
        text = _last_text(events)
        if result is None or result.get("status") != "success":
            raise self._failure(outcome, events, result)
        if not text:
            raise failure(self.display_name, outcome, kind="empty")
        return AgentAnswer(text, _usage(result))

    def _failure(self, outcome: TurnOutcome, events: list[dict[str, Any]], result: dict[str, Any] | None) -> TurnFailed:
        errors = [text_at(event, "message") for event in events if event.get("type") == "error"]
        reason = text_at(result, "error", "message") or (errors[-1] if errors else "")
        if "empty response" in reason:
            return failure(self.display_name, outcome, reason, kind="empty")
        details = next(objects(reason[reason.find("{") :].rstrip("]").encode("utf-8", "replace")), None)
        return failure(self.display_name, outcome, reason, status=status_at(details, "error", "code"))


_SETTINGS: dict[str, Any] = {
    "privacy": {"usageStatisticsEnabled": False},
    # By default conversations are deleted after 30 days, but sessions can be resumed later.
    "general": {
        "enableAutoUpdate": False,
        "enableAutoUpdateNotification": False,
        "sessionRetention": {"enabled": False},
    },
}


def _start(facts: Facts) -> tuple[str, ...]:
    return ("gemini", "--yolo", *(("--model", facts.model) if facts.model else ()))


def _last_text(events: list[dict[str, Any]]) -> str:
    runs: list[list[str]] = [[]]
    for event in events:
        if event.get("type") in ("tool_use", "tool_result"):
            runs.append([])
        elif event.get("type") == "message" and event.get("role") == "assistant":
            runs[-1].append(text_at(event, "content"))
    return next((text for text in map("".join, reversed(runs)) if text.strip()), "")


def _usage(result: dict[str, Any]) -> TokenUsage:
    # The model's thoughts count as output, and are in the total only.
    prompt, cached = count_at(result, "stats", "input_tokens"), count_at(result, "stats", "cached")
    output = count_at(result, "stats", "total_tokens") - prompt
    return TokenUsage(max(0, prompt - cached), max(0, output), cached)
