"""The agents' own programs that log in, and what each of them needs for that."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from ironcurtain.accounts.login import short_text
from ironcurtain.accounts.login_files import FILE_LIMIT
from ironcurtain.errors import ConfigurationError
from ironcurtain.home.account_sections import AccountName
from ironcurtain.home.parsing import parse_json


class LoginProgram(msgspec.Struct, frozen=True):
    """
    A program that logs in without a browser of its own: it prints an address, and asks for a code or shows one.

    :ivar agent: whose image has it.
    :ivar advice: what a person does to log in. The browser can be on any machine.
    :ivar hosts: which it has to reach by HTTPS; the browser runs elsewhere.
    :ivar file: where it keeps the login, below its home directory.
    :ivar facts_file: a file beside it that says whose login it is; empty: none.
    :ivar environment: variables besides those of all agents.
    :ivar files: its settings, by path below its home directory.
    :ivar ends: whether it ends by itself when the login is complete; otherwise it is ended then.
    """

    agent: str
    advice: str
    argv: tuple[str, ...]
    hosts: tuple[str, ...]
    file: str
    facts_file: str = ""
    environment: Mapping[str, str] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    files: Mapping[str, str] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    ends: bool = True


PROGRAMS: Final[Mapping[AccountName, LoginProgram]] = {
    # Shows an address, and asks for the code that its page shows.
    "claude": LoginProgram(
        "claude-code",
        "Open the address below in a browser, agree, and paste the code of its last page here.",
        ("claude", "auth", "login"),
        ("platform.claude.com", "api.anthropic.com"),
        ".claude/.credentials.json",
        ".claude.json",
        {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"},
    ),
    # Shows an address and a code to enter there; its other way needs a browser that reaches it.
    "chatgpt": LoginProgram(
        "codex",
        "Open the address below in a browser, log in, and enter the code there.",
        ("codex", "login", "-c", 'cli_auth_credentials_store="file"', "--device-auth"),
        ("auth.openai.com",),
        ".codex/auth.json",
    ),
    # Has no command for it: the login comes before its screen.
    "google": LoginProgram(
        "gemini",
        "Open the address below in a browser, agree, and paste the code of its last page here.",
        ("gemini", "--skip-trust"),
        ("oauth2.googleapis.com", "www.googleapis.com"),
        ".gemini/oauth_creds.json",
        environment={"NO_BROWSER": "true", "GOOGLE_GENAI_USE_GCA": "true"},
        files={".gemini/settings.json": json.dumps({"security": {"auth": {"selectedType": "oauth-personal"}}})},
        ends=False,
    ),
    # Shows an address and a code to enter there.
    "copilot": LoginProgram(
        "opencode",
        "Choose GitHub.com, open the address below in a browser, and enter the code there.",
        ("opencode", "auth", "login", "-p", "github-copilot"),
        ("github.com",),
        ".local/share/opencode/auth.json",
    ),
}
"""By the account."""


def claude_owner(data: bytes) -> str:
    """
    :param data: of Claude Code's ``.claude.json``.
    :returns: the address of who logged in; empty if the file does not say.
    """
    if len(data) > FILE_LIMIT:
        return ""
    try:
        found = parse_json(".claude.json", data)
    except ConfigurationError:
        return ""
    account = found.get("oauthAccount") if isinstance(found, dict) else None
    return short_text(account.get("emailAddress")) if isinstance(account, dict) else ""
