"""Keys of providers as accounts: those from commands and files are fetched again when the provider refuses them."""

from __future__ import annotations

from collections.abc import Mapping

from twisted.internet.defer import DeferredLock

from ironcurtain.accounts.source import Kind, Token, TokenSource, api_key
from ironcurtain.errors import ConfigurationError
from ironcurtain.home.sections import KeySettings
from ironcurtain.process.piped import CommandReactor
from ironcurtain.providers.keys import key_origin, real_key
from ironcurtain.secrets.redaction import Secret


async def open_key(
    provider: str, source: KeySettings, environ: Mapping[str, str], reactor: CommandReactor
) -> TokenSource:
    """
    :param provider: name of its table in the settings.
    :raises ConfigurationError: there is no key.
    """
    secret = await real_key(provider, source, environ, reactor)
    if source.command or source.file:
        return FetchedKey(provider, source, environ, reactor, secret)
    return api_key(secret)


class FetchedKey:
    """
    The key of a command or file, such as an access token of a cloud, which lasts an hour.

    :param secret: the first one.
    """

    kind: Kind = "api-key"

    def __init__(
        self,
        provider: str,
        source: KeySettings,
        environ: Mapping[str, str],
        reactor: CommandReactor,
        secret: Secret,
    ) -> None:
        self._provider, self._source, self._environ, self._reactor = provider, source, environ, reactor
        self.description = f"the API key from the {key_origin(provider, source, environ)}"
        self._token = Token(secret)
        self._fetching = DeferredLock()

    def current(self) -> Token:
        """See :class:`~ironcurtain.accounts.source.TokenSource`."""
        return self._token

    async def refreshed(self, stale: Token) -> Token:
        """:raises ConfigurationError: the command or file still has the same key, or has none."""
        await self._fetching.acquire()
        try:
            if self._token == stale:
                secret = await real_key(self._provider, self._source, self._environ, self._reactor)
                if secret == stale.secret:
                    where = f"providers.{self._provider}.key"
                    raise ConfigurationError(
                        "config.toml", f"{self.description} is not accepted: put a valid one there", field=where
                    )
                self._token = Token(secret)
        finally:
            self._fetching.release()
        return self._token
