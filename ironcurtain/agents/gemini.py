"""
The adapter for Gemini CLI, tested with version 0.61.0.

Gemini CLI keeps its conversation below ``~/.gemini/tmp``, and accepts ``--resume latest`` without one. The orientation
is an extension, since a project's settings can disable other context files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ironcurtain.agents.adapter import SERVER, Compiling, Facts, File, Shareable, fake_key, json_text
from ironcurtain.agents.streams.acp import AcpDialogue, Variant
from ironcurtain.agents.streams.dialogue import Dialogue

_EXTENSION = ".gemini/extensions/ironcurtain"
_ORIENTATION_FILE = "ORIENTATION.md"
_VARIANT = Variant(
    lost="MCP issues detected",
    waits=re.compile(r"(?P<reason>.*)Retrying (?:after (?P<ms>\d{1,9})ms|with backoff)"),
    mode="yolo",
    # 0.61.0 names the file of a conversation by the minute and the id's beginning. Before it loads one, it begins a new
    # one with the same id: in the minute in which the other began, this would empty it. The blank is ignored otherwise.
    before_id=" ",
)
_ONE_PROCESS = {"GEMINI_CLI_NO_RELAUNCH": "true"}
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
    shareable = (
        Shareable("memory", ".gemini/GEMINI.md"),
        Shareable("commands", ".gemini/commands"),
    )
    compiling = Compiling(("--acp",), _ONE_PROCESS)

    def environment(self, facts: Facts) -> Mapping[str, str]:
        """:returns: the key or token, that the workspace is trusted, and what makes it start faster."""
        trusted = {
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            # A project can ask for a sandbox of its own, which cannot be made inside another one.
            "GEMINI_SANDBOX": "false",
            **_ONE_PROCESS,
        }
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
        """:returns: the command, which stays, and speaks the Agent Client Protocol."""
        return (*_start(facts), "--acp")

    def screen(self, facts: Facts, first: bool, task: str = "") -> tuple[str, ...]:
        """:returns: the command of the full-screen interface."""
        resume = () if first else ("--resume", "latest")
        return (*_start(facts), *resume, *((f"--prompt-interactive={task}",) if task else ()))

    def dialogue(self, facts: Facts) -> Dialogue:
        """:returns: the dialogue in the Agent Client Protocol."""
        return AcpDialogue(facts.directory, facts.conversation, SERVER, _VARIANT)


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
