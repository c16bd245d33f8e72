"""
What a provider's account gives to requests: a token that can expire, and what names the account.

An API key is a token that does not expire. Tokens stay on this machine: agents get fakes of the same shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, Protocol

import msgspec

from ironcurtain.errors import Unavailable
from ironcurtain.secrets.redaction import Secret

Kind = Literal["api-key", "bearer", "claude", "chatgpt", "google", "copilot"]
"""
What an account is, which decides the host, the headers, and what an agent needs.

``api-key``: a key of the provider's API; ``bearer``: a token that goes in ``Authorization``, for a gateway or a cloud;
``claude``: a Claude subscription; ``chatgpt``: a ChatGPT plan; ``google``: a login with Google; ``copilot``: GitHub
Copilot.
"""

ACCOUNT_ID: Final = "account-id"
"""The name in :attr:`Token.extra` of the id of a ChatGPT account, which its requests name beside the token."""


class Token(msgspec.Struct, frozen=True):
    """
    What pays for a request now.

    :ivar secret: the token itself.
    :ivar expires: when it becomes invalid, in seconds since the epoch; ``None``: never, or unknown.
    :ivar extra: further values that name the account, by name; secret like the token.
    """

    secret: Secret
    expires: float | None = None
    extra: Mapping[str, Secret] = msgspec.field(default_factory=lambda: MappingProxyType({}))


class TokenSource(Protocol):
    """One account, whose token it keeps valid."""

    @property
    def kind(self) -> Kind:
        """What the account is."""

    @property
    def description(self) -> str:
        """Which account pays, in words: "your Claude subscription (max), from the login kept by IronCurtain"."""

    def current(self) -> Token:
        """:returns: the token, which may have expired; it may differ at each call."""

    async def refreshed(self, stale: Token) -> Token:
        """
        Renew the token once for each stale one, however many ask.

        :param stale: the token that the provider refused, or that is about to expire.
        :returns: another token; at once if the current one is no longer the stale one.
        :raises ConfigurationError: the login is no longer valid; the message names the command that renews it.
        :raises Unavailable: it cannot be renewed now.
        """


class FixedToken:
    """
    An account whose token stays as it is: an API key, or a token that nothing here can renew.

    :param renewal: what to do when the provider no longer accepts it, as the end of a sentence.
    """

    def __init__(self, kind: Kind, token: Token, description: str, renewal: str) -> None:
        self.kind, self.description, self.renewal, self._token = kind, description, renewal, token

    def current(self) -> Token:
        """See :class:`TokenSource`."""
        return self._token

    async def refreshed(self, stale: Token) -> Token:
        """:raises Unavailable: always."""
        raise Unavailable(f"{self.description} is not accepted, or has expired: {self.renewal}")


def fixed(kind: Kind, secret: Secret, what: str, extra: Mapping[str, Secret] | None = None) -> FixedToken:
    """
    :param secret: from the settings or the environment; its origin says from where.
    :param what: what it is, in words: "the API key".
    """
    origin = secret.origin or "settings"
    renewal = "put a valid one there, and start again"
    return FixedToken(kind, Token(secret, None, extra or {}), f"{what} from the {origin}", renewal)


def api_key(secret: Secret) -> FixedToken:
    """:returns: the account of an API key."""
    return fixed("api-key", secret, "the API key")
