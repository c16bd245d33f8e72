"""
The adapter for Goose, written from parts of its source and not tested with the real program.

Goose keeps its conversation below ``~/.local/share/goose`` and cannot resume a missing one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ironcurtain.agents.adapter import (
    KEY_VARIABLES,
    SERVER,
    Facts,
    File,
    Shareable,
    fake_key,
    json_text,
    provider_and_model,
)
from ironcurtain.agents.streams.acp import AcpDialogue, Variant
from ironcurtain.agents.streams.dialogue import Dialogue
from ironcurtain.errors import UsageError

_VARIANT = Variant(lost=f"Failed to start extension '{SERVER}'")


class Goose:
    """Goose of Block."""

    id = "goose"
    display_name = "Goose"
    image = "goose"
    providers = ("anthropic", "openai", "google", "openrouter")
    supports_pty = True
    shareable = (Shareable("memory", ".config/goose/.goosehints", joined=True),)

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
        """:returns: the command, which stays, and speaks the Agent Client Protocol."""
        return ("goose", "acp")

    def screen(self, facts: Facts, first: bool, task: str = "") -> tuple[str, ...]:
        """:returns: the command of the interactive terminal interface."""
        resume = () if first else ("--resume",)
        return ("goose", "run", *resume, "--interactive", "--text", task) if task else ("goose", "session", *resume)

    def dialogue(self, facts: Facts) -> Dialogue:
        """:returns: the dialogue in the Agent Client Protocol."""
        return AcpDialogue(facts.directory, facts.conversation, SERVER, _VARIANT)
