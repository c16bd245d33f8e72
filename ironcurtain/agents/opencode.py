"""
The adapter for OpenCode, tested with version 1.18.33.

OpenCode keeps its conversation in a database below ``~/.local/share/opencode``, and accepts ``--continue`` without one.
Only its log shows that the MCP server is disconnected, so the log is printed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ironcurtain.agents.adapter import (
    KEY_VARIABLES,
    ORIENTATION,
    SERVER,
    Facts,
    File,
    Shareable,
    json_text,
    provider_and_model,
)
from ironcurtain.agents.streams.acp import AcpDialogue, Variant
from ironcurtain.agents.streams.dialogue import Dialogue
from ironcurtain.errors import UsageError

_KEY_VARIABLES = {
    **KEY_VARIABLES,
    "google": "GOOGLE_GENERATIVE_AI_API_KEY",
}
_LOGINS = {"chatgpt": "openai", "copilot": "github-copilot"}
"""Its own names of providers that a login pays for."""

_FAR_MS = 4_102_444_800_000
"""When the logins expire: the year 2100, in milliseconds since the epoch, so that none is renewed."""

_CONFIG_FILE = "opencode.json"
_ORIENTATION_FILE = "orientation.md"
_VARIANT = Variant(
    lost=f'message="server unavailable" key={SERVER} ',
    waits=re.compile(r'message="stream error".* error\.error(?:\.message)?="?(?P<reason>[^"]*)'),
    compact="/compact",
)


class OpenCode:
    """OpenCode of SST."""

    id = "opencode"
    display_name = "OpenCode"
    image = "opencode"
    providers = ("anthropic", "openai", "chatgpt", "google", "openrouter", "copilot")
    supports_pty = True
    shareable = (
        Shareable("memory", ".config/opencode/AGENTS.md"),
        Shareable("commands", ".config/opencode/command"),
    )

    def environment(self, facts: Facts) -> Mapping[str, str]:
        """:returns: the keys; nothing downloaded, shared or updated."""
        self._model(facts)
        keys = {_KEY_VARIABLES[name]: key for name, key in facts.fake_keys.items() if name in _KEY_VARIABLES}
        off = ("AUTOUPDATE", "LSP_DOWNLOAD", "MODELS_FETCH", "SHARE")
        switches = {f"OPENCODE_DISABLE_{what}": "1" for what in off}
        return {**keys, **switches, "OPENCODE_CONFIG": f"{ORIENTATION}/{_CONFIG_FILE}"}

    def files(self, facts: Facts) -> Sequence[File]:
        """:returns: the configuration and the orientation, which the agent cannot change."""
        server = {
            "type": "local",
            "command": list(facts.mcp_command),
            "enabled": True,
            "timeout": facts.tool_seconds * 1000,
        }
        configuration = {
            **self._model(facts),
            "mcp": {SERVER: server},
            "instructions": [f"{ORIENTATION}/{_ORIENTATION_FILE}"],
            # The container is the limit. Features that need the network would fail.
            "permission": {"*": "allow", "webfetch": "deny", "websearch": "deny"},
            # Otherwise each session makes another request to the model, for a title.
            "agent": {"title": {"disable": True}},
            "autoupdate": False,
            "share": "disabled",
        }
        return (
            File("orientation", _CONFIG_FILE, json_text(configuration)),
            File("orientation", _ORIENTATION_FILE, facts.orientation),
            # Else it would connect to the package registry at each start, for types that only authors of plugins need.
            File("home", ".config/opencode/.npmrc", "offline=true\n", replace=False),
            *_logins(facts),
        )

    def _model(self, facts: Facts) -> dict[str, Any]:
        provider, model = provider_and_model(facts, self.providers, self.display_name)
        if model:
            name = _LOGINS.get(provider, provider)
            # It would silently use another provider for a model that is newer than its own list.
            known: dict[str, Any] = {} if provider in _LOGINS else {"provider": {name: {"models": {model: {}}}}}
            return {"model": f"{name}/{model}", **known}
        if provider in ("copilot", "openrouter"):
            raise UsageError(f"OpenCode has no default model for {provider}: give one with --model {provider}/MODEL")
        if provider == "google":
            example = "--model google/gemini-2.5-pro"
            raise UsageError(f"OpenCode's default for google is a model for images: give one, such as {example}")
        # It would choose these before that of openai: the first has a model for images, the second is its maker's.
        return {"disabled_providers": ["google", "opencode"]}

    def turn(self, facts: Facts, first: bool) -> tuple[str, ...]:
        """:returns: the command, which stays, and speaks the Agent Client Protocol."""
        return ("opencode", "acp", "--print-logs", "--log-level", "WARN")

    def screen(self, facts: Facts, first: bool, task: str = "") -> tuple[str, ...]:
        """
        :returns: the command of the full-screen interface.
        :raises UsageError: there is a task for a resumed conversation, which OpenCode would ignore.
        """
        if task and not first:
            raise UsageError("OpenCode accepts no task for a resumed conversation: omit it, and type it there")
        return ("opencode", *(() if first else ("--continue",)), *((f"--prompt={task}",) if task else ()))

    def dialogue(self, facts: Facts) -> Dialogue:
        """:returns: the dialogue in the Agent Client Protocol."""
        return AcpDialogue(facts.directory, facts.conversation, SERVER, _VARIANT)


def _logins(facts: Facts) -> Sequence[File]:
    entries = {}
    for provider, name in _LOGINS.items():
        if token := facts.fake_keys.get(provider, ""):
            account = facts.fake_accounts.get(provider, "")
            entries[name] = {
                **{"type": "oauth", "access": token, "refresh": token},
                "expires": _FAR_MS if account else 0,  # GitHub's do not expire
                **({"accountId": account} if account else {}),
            }
    return (File("home", ".local/share/opencode/auth.json", json_text(entries)),) if entries else ()
