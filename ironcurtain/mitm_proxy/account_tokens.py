"""
The token of one provider's account, as one session uses it.

The redactor and the scrubber know each token before it is sent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from ironcurtain.accounts.source import FixedToken, Token, TokenSource
from ironcurtain.mitm_proxy.scrub import KeyForms
from ironcurtain.secrets.redaction import Redactor, Secret

EARLY_SECONDS: Final = 120.0
"""Seconds before its end from which a token is renewed before it is used: longer than a request takes to arrive."""

TOKENS_KEPT: Final = 4
"""Number of tokens, the newest, that are removed from responses; older ones have expired long ago."""


class AccountTokens:
    """
    :param source: the account.
    :param redactor: learns each token.
    :param now: seconds since the epoch.
    """

    def __init__(self, source: TokenSource, redactor: Redactor, now: Callable[[], float]) -> None:
        self._source, self._redactor, self.now = source, redactor, now
        self._latest: Token | None = None
        self._renewed: Token | None = None
        self._seen: deque[Token] = deque(maxlen=TOKENS_KEPT)
        self.description = source.description
        """Which account pays, in words."""
        self.advice = source.renewal if isinstance(source, FixedToken) else "log in again"
        """What to do if the provider refuses it."""
        self.renewable = not isinstance(source, FixedToken)
        """Whether a refused token can become another one."""
        self.forms = KeyForms()
        """The forms of the newest tokens, old and new, and of what names the account."""
        self.current()

    def current(self) -> Token:
        """
        :returns: the token to send now.
        :raises IronCurtainError: there is none any more.
        """
        token = self._source.current()
        if token is not self._latest:
            self._learn(token)
        return token

    def due(self) -> bool:
        """
        :returns: whether to renew the token before it is used.
        :raises IronCurtainError: there is none any more.
        """
        token = self.current()
        # By a clock that is wrong, a new token seems old at once: it is not renewed for each request.
        return self.renewable and token is not self._renewed and self._left(token) < EARLY_SECONDS

    def expired(self, token: Token) -> bool:
        """:returns: whether it is certain that the provider will refuse a token."""
        return self._left(token) <= 0

    async def renewed(self, stale: Token) -> Token:
        """See :meth:`~ironcurtain.accounts.source.TokenSource.refreshed`."""
        token = await self._source.refreshed(stale)
        self._learn(token)
        self._renewed = token
        return token

    def _left(self, token: Token) -> float:
        return float("inf") if token.expires is None else token.expires - self.now()

    def _learn(self, token: Token) -> None:
        self._latest = token
        if token in self._seen:
            return
        self._seen.append(token)
        secrets = dict.fromkeys(secret for seen in self._seen for secret in _secrets(seen))
        for secret in _secrets(token):
            self._redactor.add(secret)
        self.forms = KeyForms(*secrets)


def _secrets(token: Token) -> tuple[Secret, ...]:
    return (token.secret, *token.extra.values())
