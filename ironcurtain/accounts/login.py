"""A login at a model's provider, and what its tokens say about themselves."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from ironcurtain.accounts.source import Token
from ironcurtain.home.account_sections import AccountName
from ironcurtain.secrets.redaction import Secret

NAMES: Final[Mapping[AccountName, str]] = {
    "claude": "Claude subscription",
    "chatgpt": "ChatGPT plan",
    "google": "login with Google",
    "copilot": "GitHub Copilot",
}
"""What the accounts are called that a person logs in to, by kind."""

TOKEN_LIMIT: Final = 16 * 1024
"""Maximum length in characters of a token; ChatGPT's have about 2000."""

NEWEST_TIME: Final = 32_503_680_000.0
"""The year 3000 in seconds since the epoch: later times are given in another unit."""


class Login(msgspec.Struct, frozen=True):
    """
    The tokens of one account.

    :ivar refresh: renews the access token; ``None`` for one that cannot be renewed.
    :ivar expires: when the access token becomes invalid, in seconds since the epoch; ``None``: never, or unknown.
    :ivar extra: see :attr:`ironcurtain.accounts.source.Token.extra`.
    :ivar owner: whose account it is, usually an address; empty if the login does not say. Not checked by anybody.
    :ivar plan: what is paid for, such as ``max``; empty if the login does not say.
    :ivar ends: when it can no longer be renewed, in seconds since the epoch; ``None``: never, or unknown.
    :ivar refused: whether the provider said that the login is no longer valid.
    """

    kind: AccountName
    access: Secret
    refresh: Secret | None = None
    expires: float | None = None
    extra: Mapping[str, Secret] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    owner: str = ""
    plan: str = ""
    ends: float | None = None
    refused: bool = False

    @property
    def token(self) -> Token:
        """The token for requests."""
        return Token(self.access, self.expires, self.extra)

    @property
    def title(self) -> str:
        """What it is, for people, as in "Claude subscription (max) of ada@example.com"."""
        plan, owner = f" ({self.plan})" if self.plan else "", f" of {self.owner}" if self.owner else ""
        return f"{NAMES[self.kind]}{plan}{owner}"

    def secrets(self) -> list[Secret]:
        """:returns: the values that nobody may see."""
        return [self.access, *([self.refresh] if self.refresh is not None else []), *self.extra.values()]


def is_token(text: str) -> bool:
    """:returns: whether a text can be sent as a token: printable ASCII without spaces, of a sensible length."""
    return 0 < len(text) <= TOKEN_LIMIT and text.isascii() and text.isprintable() and " " not in text


def claims(token: str) -> Mapping[str, Any]:
    """
    What a JWT says (RFC 7519). Its signature is not checked: the provider does that.

    :returns: the claims; none if it is no JWT.
    """
    parts = token.split(".")
    if len(parts) != 3 or len(token) > TOKEN_LIMIT:
        return {}
    try:
        found = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError, RecursionError):  # of Unicode and JSON, too
        return {}
    return found if isinstance(found, dict) else {}


def expiry(token: str) -> float | None:
    """:returns: when a JWT becomes invalid, in seconds since the epoch; ``None`` if it does not say."""
    found = claims(token).get("exp")
    if not isinstance(found, int | float) or isinstance(found, bool) or not 0 < found < NEWEST_TIME:
        return None
    return float(found)


def short_text(value: Any, limit: int = 200) -> str:
    """:returns: the value if it is a short printable text; else empty."""
    return value if isinstance(value, str) and len(value) <= limit and value.isprintable() else ""
