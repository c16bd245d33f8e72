"""
The adapter for Codex, tested with version 0.169.0.

Codex keeps its conversation below ``~/.codex``; ``resume --last`` starts a new one if there is none. It reports token
counts of the whole conversation, not of a turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ironcurtain.agents.adapter import SERVER, Facts, File, Shareable, fake_key
from ironcurtain.agents.streams.codex import CodexDialogue
from ironcurtain.agents.streams.dialogue import Dialogue
from ironcurtain.text.toml import toml_string

START_SECONDS = 120
"""Codex's time limit for the start of the MCP server (its default, 10, is short while backends start)."""

_ADDRESS = "https://api.openai.com/v1"
_PLAN_ADDRESS = "https://chatgpt.com/backend-api/codex"
_CONFIGURATION = """\
# The built-in provider would speak over WebSockets, and with other hosts.
model_provider = "openai-http"
check_for_update_on_startup = false
web_search = "disabled"

[model_providers.openai-http]
name = "OpenAI"
base_url = {address}
env_key = "OPENAI_API_KEY"
wire_api = "responses"
supports_websockets = false
{headers}
[analytics]
enabled = false

[features]
plugins = false
apps = false

# A tool called from a script of the model times out after 30 seconds; called directly, it can wait for a person.
[features.code_mode]
direct_only_tool_namespaces = [{namespace}]

[projects.{workspace}]
trust_level = "trusted"

[mcp_servers.{server}]
command = {program}
args = [{arguments}]
required = true
startup_timeout_sec = {start}
tool_timeout_sec = {tool}
"""


class Codex:
    """Codex of OpenAI."""

    id = "codex"
    display_name = "Codex"
    image = "codex"
    providers = ("openai", "chatgpt")
    supports_pty = True
    shareable = (
        Shareable("memory", ".codex/AGENTS.md", joined=True),
        Shareable("commands", ".codex/prompts"),
    )

    def environment(self, facts: Facts) -> Mapping[str, str]:
        """:returns: the key or token."""
        return {"OPENAI_API_KEY": fake_key(facts, facts.paid(self.providers) or "openai", self.display_name)}

    def files(self, facts: Facts) -> Sequence[File]:
        """
        :returns: the configuration, and the orientation as instructions for all projects. Codex reads these again when
            it resumes a conversation, but not instructions in the configuration.
        """
        program, *arguments = facts.mcp_command
        account = facts.fake_accounts.get("chatgpt", "")
        text = _CONFIGURATION.format(
            address=toml_string(_PLAN_ADDRESS if account else _ADDRESS),
            headers=f"http_headers = {{ chatgpt-account-id = {toml_string(account)} }}\n" if account else "",
            workspace=toml_string(facts.directory),
            namespace=toml_string(f"mcp__{SERVER}"),
            server=SERVER,
            program=toml_string(program),
            arguments=", ".join(map(toml_string, arguments)),
            start=START_SECONDS,
            tool=facts.tool_seconds,
        )
        return (File("home", ".codex/config.toml", text), File("home", ".codex/AGENTS.md", facts.orientation))

    def turn(self, facts: Facts, first: bool) -> tuple[str, ...]:
        """:returns: the command, which stays, and speaks JSON-RPC."""
        return ("codex", "app-server")

    def screen(self, facts: Facts, first: bool, task: str = "") -> tuple[str, ...]:
        """:returns: the command of the full-screen interface."""
        # Resume conversations without a screen as well. A background server would end with the screen anyway.
        resume = () if first else ("resume", "--last", "--include-non-interactive")
        return ("codex", *resume, "--no-daemon", *_options(facts), *(("--", task) if task else ()))

    def dialogue(self, facts: Facts) -> Dialogue:
        """:returns: the dialogue with the app server, whose configuration permits everything."""
        return CodexDialogue(facts.directory, facts.conversation, facts.model, SERVER)


def _options(facts: Facts) -> tuple[str, ...]:
    return ("--dangerously-bypass-approvals-and-sandbox", *(("--model", facts.model) if facts.model else ()))
