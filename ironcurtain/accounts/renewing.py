"""Renew logins: the request of each provider, and what the answer means."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, TypeGuard
from urllib.parse import urlencode

import msgspec
from msgspec.structs import replace

from ironcurtain.accounts.login import NEWEST_TIME, Login, is_token, short_text
from ironcurtain.accounts.login_files import chatgpt_login
from ironcurtain.accounts.source import ACCOUNT_ID
from ironcurtain.errors import ConfigurationError, Unavailable
from ironcurtain.home.account_sections import AccountName
from ironcurtain.secrets.redaction import Secret

ANSWER_LIMIT: Final = 64 * 1024
"""Maximum size in bytes of an answer; ChatGPT's, the largest, have about 6 KiB."""

JSON, FORM = "application/json", "application/x-www-form-urlencoded"

_CLAUDE_SCOPES = (
    "user:profile user:inference user:sessions:claude_code user:mcp_servers user:file_upload user:plugins"  # as the CLI
)

_FINAL = frozenset(
    (
        "invalid_grant",
        "refresh_token_expired",
        "refresh_token_reused",
        "refresh_token_invalidated",
        "app_session_terminated",
    )
)
"""Errors after which the same refresh token never works again (RFC 6749, section 5.2, and OpenAI's own)."""

_ERROR_CODE = re.compile(r"[a-z_]{1,60}")


class RenewalRequest(msgspec.Struct, frozen=True):
    """A ``POST`` that renews a login. Its body is as secret as the refresh token in it."""

    url: str
    content_type: str
    body: Secret


class _Answer(msgspec.Struct):
    # Only what cannot be missing has a type: once a refresh token was replaced, the new one must not be lost because
    # something beside it is unusual.
    access_token: str
    refresh_token: Any = None
    id_token: Any = None
    expires_in: Any = None
    refresh_token_expires_in: Any = None
    account: Any = None


def renewal_request(login: Login) -> RenewalRequest | None:
    """:returns: the request, as the account's own program makes it; ``None`` if the login cannot be renewed."""
    if login.refresh is None or login.kind not in _REQUESTS:
        return None
    url, content_type, fields = _REQUESTS[login.kind]
    given = {**fields, "grant_type": "refresh_token", "refresh_token": login.refresh.reveal()}
    body = json.dumps(given) if content_type == JSON else urlencode(given)
    return RenewalRequest(url, content_type, Secret(body, login.refresh.origin))


_REQUESTS: Final[Mapping[AccountName, tuple[str, str, Mapping[str, str]]]] = {
    "claude": (
        "https://platform.claude.com/v1/oauth/token",
        JSON,
        {"client_id": "9d1c250a-e61b-44d9-88ed-5944d1962f5e", "scope": _CLAUDE_SCOPES},
    ),
    "chatgpt": (
        "https://auth.openai.com/oauth/token",
        JSON,
        {"client_id": "app_EMoamEEZ73f0CkXaXp7hrann", "refresh_reason": "proactive_expiry"},
    ),
    # An installed program cannot keep a secret, so that Google's is public (RFC 8252, section 8.5): it is in the
    # published sources of its program.
    "google": (
        "https://oauth2.googleapis.com/token",
        FORM,
        {
            "client_id": "681255809395-oo8ft2oprdrnp9e3aqf6av3hmdib135j.apps.googleusercontent.com",
            "client_secret": "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",
        },
    ),
}
"""Address, form and fixed fields of the renewal of each kind. A login at GitHub does not expire."""


def renewed(login: Login, status: int, body: bytes, now: float, renewal: str) -> Login:
    """
    Understand the answer to a renewal.

    :param now: when the answer came, in seconds since the epoch.
    :param renewal: the command with which a person logs in again.
    :returns: the login with new tokens. A refresh token that the answer does not replace is kept.
    :raises ConfigurationError: the login is no longer valid.
    :raises Unavailable: it was not renewed now. No message contains anything of the body but an error's code.
    """
    if status != 200:
        raise _refusal(login, status, body, renewal)
    try:
        answer = msgspec.json.decode(body, type=_Answer)
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise _unusable(login, "is not understood") from None
    if not is_token(answer.access_token):
        raise _unusable(login, "has no usable token")
    origin, given = login.access.origin, answer.refresh_token
    access = Secret(answer.access_token, origin)
    refresh = Secret(given, origin) if isinstance(given, str) and is_token(given) else login.refresh
    expires = now + answer.expires_in if _is_duration(answer.expires_in) else None
    lasts = answer.refresh_token_expires_in
    login = replace(login, ends=now + lasts if _is_duration(lasts) else login.ends)
    if login.kind == "chatgpt":
        id_token = answer.id_token if isinstance(answer.id_token, str) else ""
        return _chatgpt(login, access, refresh, id_token, expires)
    owner = answer.account.get("email_address") if isinstance(answer.account, dict) else None
    return replace(login, access=access, refresh=refresh, expires=expires, owner=short_text(owner) or login.owner)


def _is_duration(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < NEWEST_TIME


def _chatgpt(login: Login, access: Secret, refresh: Secret | None, id_token: str, expires: float | None) -> Login:
    found = chatgpt_login(access, refresh, id_token, login.extra[ACCOUNT_ID].reveal(), login.access.origin)
    return replace(
        found,
        expires=expires if found.expires is None else found.expires,
        owner=found.owner or login.owner,
        plan=found.plan or login.plan,
    )


def _refusal(login: Login, status: int, body: bytes, renewal: str) -> Exception:
    code = error_code(body)
    if code in _FINAL:
        return lapsed(login, renewal)
    said = f"status {status}{f', {code}' if code else ''}"
    advice = f"; if that stays so, run {renewal}" if status in (400, 401, 403) else ""
    return Unavailable(f"the login of {login.title} was not renewed: {login_host(login)} answered with {said}{advice}")


def lapsed(login: Login, renewal: str) -> ConfigurationError:
    """:returns: the error for a login that the provider accepts no more."""
    return ConfigurationError(login.access.origin, f"the login is no longer valid: run {renewal}")


def _unusable(login: Login, what: str) -> Unavailable:
    return Unavailable(f"the login of {login.title} was not renewed: the answer of {login_host(login)} {what}")


def login_host(login: Login) -> str:
    """:returns: the host that renews a login."""
    return _REQUESTS[login.kind][0].split("/")[2]


def error_code(body: bytes) -> str:
    """:returns: the code in the answer to a refused request, as RFC 6749 or OpenAI has it; empty if there is none."""
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return ""
    code = found.get("error") if isinstance(found, dict) else None
    if isinstance(code, dict):
        code = code.get("code")
    return code if isinstance(code, str) and _ERROR_CODE.fullmatch(code) else ""
