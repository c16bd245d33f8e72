"""Read the files in which the agents' programs keep the logins of a person."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, TypeVar

import msgspec

from ironcurtain.accounts.login import NEWEST_TIME, Login, claims, expiry, is_token, short_text
from ironcurtain.accounts.source import ACCOUNT_ID
from ironcurtain.errors import ConfigurationError
from ironcurtain.home.account_sections import AccountName
from ironcurtain.home.parsing import parse_json
from ironcurtain.secrets.redaction import Secret

T = TypeVar("T")

FILE_LIMIT: Final = 256 * 1024
"""Maximum size in bytes of such a file; usual ones have less than 10 KiB."""

USUAL_FILES: Final[Mapping[AccountName, tuple[str, ...]]] = {
    "claude": ("~/.claude/.credentials.json",),
    "chatgpt": ("~/.codex/auth.json", "~/.local/share/opencode/auth.json"),
    "google": ("~/.gemini/oauth_creds.json",),
    "copilot": ("~/.local/share/opencode/auth.json",),
}
"""Where the programs keep them, by kind of account."""

INFERENCE: Final = "user:inference"
"""The scope that lets a Claude login use models."""

OPENAI_CLAIM: Final = "https://api.openai.com/auth"
"""The claim of ChatGPT's tokens that names plan and account."""

Milliseconds = Annotated[float, msgspec.Meta(ge=0, lt=NEWEST_TIME * 1000)]


class _ClaudeLogin(msgspec.Struct, rename="camel"):
    access_token: str
    refresh_token: str | None = None
    expires_at: Milliseconds | None = None
    refresh_token_expires_at: Milliseconds | None = None
    scopes: tuple[str, ...] | None = None
    subscription_type: str | None = None


class _ClaudeFile(msgspec.Struct, rename="camel"):
    claude_ai_oauth: _ClaudeLogin | None = None


class _CodexTokens(msgspec.Struct):
    access_token: str
    id_token: str = ""
    refresh_token: str | None = None
    account_id: str | None = None


class _CodexFile(msgspec.Struct):
    auth_mode: str | None = None
    tokens: _CodexTokens | None = None


class _GoogleFile(msgspec.Struct):
    access_token: str
    refresh_token: str | None = None
    id_token: str | None = None
    expiry_date: Milliseconds | None = None


class _OpenCodeEntry(msgspec.Struct, rename="camel"):
    type: str
    access: str = ""
    refresh: str = ""
    expires: Milliseconds = 0
    account_id: str | None = None


def read_login(kind: AccountName, path: str, data: bytes) -> Login:
    """
    :param kind: what the account is, which decides the form; a ChatGPT plan has Codex's or OpenCode's.
    :param path: of the file, for messages.
    :raises ConfigurationError: the file is not of that form, or has no such login. No message contains a token.
    """
    if len(data) > FILE_LIMIT:
        raise ConfigurationError(path, f"has more than {FILE_LIMIT} bytes: it is no file with a login")
    parsed = parse_json(path, data)
    if not isinstance(parsed, dict):
        raise ConfigurationError(path, "must contain a JSON object: it is no file with a login")
    return _READERS[kind](path, parsed)


def _claude(path: str, parsed: dict[str, Any]) -> Login:
    login = _as(_ClaudeFile, path, parsed).claude_ai_oauth
    if login is None:
        raise ConfigurationError(path, "has no Claude login: run claude /login")
    if login.scopes is not None and INFERENCE not in login.scopes:
        raise ConfigurationError(path, f"its Claude login may not use models (scope {INFERENCE}): run claude /login")
    return Login(
        "claude",
        _token(path, "accessToken", login.access_token, "claude /login"),
        _optional(path, "refreshToken", login.refresh_token, "claude /login"),
        _seconds(login.expires_at),
        plan=short_text(login.subscription_type, 40),
        ends=_seconds(login.refresh_token_expires_at),
    )


def _chatgpt(path: str, parsed: dict[str, Any]) -> Login:
    if "tokens" not in parsed and "auth_mode" not in parsed and "OPENAI_API_KEY" not in parsed:
        return _opencode("chatgpt", path, parsed)
    file = _as(_CodexFile, path, parsed)
    if file.tokens is None:
        what = "an API key, which is no login: name it as the key of [providers.openai]"
        has_key = file.auth_mode == "apikey" or bool(parsed.get("OPENAI_API_KEY"))
        raise ConfigurationError(path, f"has {what}" if has_key else "has no ChatGPT login: run codex login")
    return chatgpt_login(
        _token(path, "tokens.access_token", file.tokens.access_token, "codex login"),
        _optional(path, "tokens.refresh_token", file.tokens.refresh_token, "codex login"),
        file.tokens.id_token,
        file.tokens.account_id or "",
        path,
    )


def chatgpt_login(access: Secret, refresh: Secret | None, id_token: str, account: str, source: str) -> Login:
    """
    A login whose other facts are in its tokens.

    :param id_token: a JWT; empty for none.
    :param account: id of the account; empty: as the tokens say.
    :param source: where the tokens are from, for messages.
    :raises ConfigurationError: nothing names the account.
    """
    known = claims(id_token) or claims(access.reveal())
    details = known.get(OPENAI_CLAIM)
    details = details if isinstance(details, dict) else {}
    account = account or short_text(details.get("chatgpt_account_id"))
    if not is_token(account):
        raise ConfigurationError(source, "its ChatGPT login does not say which account it is for: run codex login")
    return Login(
        "chatgpt",
        access,
        refresh,
        expiry(access.reveal()),
        {ACCOUNT_ID: Secret(account, "ChatGPT account")},
        short_text(known.get("email")),
        short_text(details.get("chatgpt_plan_type"), 40),
    )


def _google(path: str, parsed: dict[str, Any]) -> Login:
    file = _as(_GoogleFile, path, parsed)
    return Login(
        "google",
        _token(path, "access_token", file.access_token, "gemini"),
        _optional(path, "refresh_token", file.refresh_token, "gemini"),
        _seconds(file.expiry_date),
        owner=short_text(claims(file.id_token or "").get("email")),
    )


def _copilot(path: str, parsed: dict[str, Any]) -> Login:
    return _opencode("copilot", path, parsed)


def _opencode(kind: AccountName, path: str, parsed: dict[str, Any]) -> Login:
    provider = "openai" if kind == "chatgpt" else "github-copilot"
    renewal = f"opencode auth login -p {provider}"
    if not isinstance(parsed.get(provider), dict):
        raise ConfigurationError(path, f"has no login for {provider}: run {renewal}")
    entry = _as(_OpenCodeEntry, path, parsed[provider], provider)
    if entry.type != "oauth":
        raise ConfigurationError(path, f"has an API key for {provider}, which is no login: run {renewal}")
    if kind == "chatgpt":
        access = _token(path, "openai.access", entry.access, renewal)
        refresh = _optional(path, "openai.refresh", entry.refresh, renewal)
        return chatgpt_login(access, refresh, "", entry.account_id or "", path)
    # GitHub's token is both, and does not expire.
    return Login(kind, _token(path, f"{provider}.access", entry.access or entry.refresh, renewal))


_READERS: Final[Mapping[AccountName, Callable[[str, dict[str, Any]], Login]]] = {
    "claude": _claude,
    "chatgpt": _chatgpt,
    "google": _google,
    "copilot": _copilot,
}


def _as(type_: type[T], path: str, parsed: dict[str, Any], place: str = "") -> T:
    try:
        return msgspec.convert(parsed, type_)
    except msgspec.ValidationError as e:  # it names places and types, never values
        where = f" (in {place})" if place else ""
        raise ConfigurationError(path, f"is no file with a login: {e}{where}") from None


def _token(path: str, field: str, text: str, renewal: str) -> Secret:
    if not text:
        raise ConfigurationError(path, f"is logged out: run {renewal}", field=field)
    if not is_token(text):
        raise ConfigurationError(path, "is not a token", field=field)
    return Secret(text, path)


def _optional(path: str, field: str, text: str | None, renewal: str) -> Secret | None:
    return _token(path, field, text, renewal) if text else None


def _seconds(milliseconds: float | None) -> float | None:
    return milliseconds / 1000 if milliseconds else None
