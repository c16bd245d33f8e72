"""
The adapter for Goose, written from parts of its source and not tested with the real program.

Goose keeps its conversation below ``~/.local/share/goose`` and cannot resume a missing one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ironcurtain.agents.adapter import (
    KEY_VARIABLES,
    SERVER,
    AgentAnswer,
    Facts,
    File,
    TurnOutcome,
    fake_key,
    json_text,
    provider_and_model,
)
from ironcurtain.agents.output import dig, failure, objects, text_at
from ironcurtain.errors import UsageError

_TOOLS_LOST = f"Failed to start extension '{SERVER}'".encode()
_RAN_INTO = "Ran into this error: "


class Goose:
    """Goose of Block."""

    id = "goose"
    display_name = "Goose"
    image = "goose"
    providers = ("anthropic", "openai", "google", "openrouter")
    supports_pty = True

    def environment(self, facts: Facts) -> Mapping[str, str]:
        """
        :returns: provider, model and key. Goose does not ask before using a tool, and uses neither keyring nor
            telemetry.
        :raises UsageError: no model is given, since Goose has no default; or its provider has no key.
        """
        if not facts.model:
            raise UsageError("Goose has no default model: give one, such as --model anthropic/claude-opus-5-5")
        provider, model = provider_and_model(facts, self.providers, self.display_name)
        return {
            "GOOSE_PROVIDER": provider,
            "GOOSE_MODEL": model,
            KEY_VARIABLES[provider]: fake_key(facts, provider, self.display_name),
            "GOOSE_MODE": "auto",
            "GOOSE_DISABLE_KEYRING": "1",
            "GOOSE_TELEMETRY_ENABLED": "false",
        }

    def files(self, facts: Facts) -> Sequence[File]:
        """
        :returns: the configuration with its tools and the MCP server, and the orientation as hints for all projects.
        """
        program, *arguments = facts.mcp_command
        server = {
            **{"enabled": True, "type": "stdio", "name": SERVER, "description": "Tools outside the container"},
            **{"cmd": program, "args": arguments, "envs": {}, "timeout": facts.tool_seconds},
        }
        developer = {"enabled": True, "type": "builtin", "name": "developer", "bundled": True, "timeout": 300}
        configuration = {"extensions": {"developer": developer, SERVER: server}}
        return (
            File("home", ".config/goose/config.yaml", json_text(configuration)),
            File("home", ".config/goose/.goosehints", facts.orientation),
        )

    def turn(self, facts: Facts, first: bool) -> tuple[str, ...]:
        """:returns: the command, which prints one JSON object per line."""
        resume = () if first else ("--resume",)
        return ("goose", "run", *resume, "--quiet", "--output-format", "stream-json", "--instructions", "-")

    def screen(self, facts: Facts, first: bool, task: str = "") -> tuple[str, ...]:
        """:returns: the command of the interactive terminal interface."""
        resume = () if first else ("--resume",)
        return ("goose", "run", *resume, "--interactive", "--text", task) if task else ("goose", "session", *resume)

    def answer(self, outcome: TurnOutcome) -> AgentAnswer:
        """
        Join the pieces of the last message. If the model failed, that message says so.

        :raises TurnFailed: there is no answer.
        """
        if _TOOLS_LOST in outcome.stderr:
            raise failure(self.display_name, outcome, kind="mcp-down")
        events = list(objects(outcome.stdout))
        errors = [text_at(event, "error") for event in events if event.get("type") == "error"]
        text = _last_text(events)
        if errors or outcome.exit_code != 0:
            raise failure(self.display_name, outcome, errors[-1] if errors else "")
        if text.startswith(_RAN_INTO):
            raise failure(self.display_name, outcome, text.removeprefix(_RAN_INTO))
        if not text:
            raise failure(self.display_name, outcome, kind="empty")
        return AgentAnswer(text)


def _last_text(events: list[dict[str, Any]]) -> str:
    pieces: dict[str, list[str]] = {}
    for number, event in enumerate(events):
        if event.get("type") == "message" and text_at(event, "message", "role") == "assistant":
            # Pieces of one message share its id.
            identity = text_at(event, "message", "id") or f"#{number}"
            pieces.setdefault(identity, []).append(_text(dig(event, "message", "content")))
    return next((text for text in map("".join, reversed(pieces.values())) if text.strip()), "")


def _text(content: Any) -> str:
    parts = content if isinstance(content, list) else []
    return "".join(text_at(part, "text") for part in parts if text_at(part, "type") == "text")
