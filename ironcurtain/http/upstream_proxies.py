"""The upstream proxies of one process, and the credentials for them. Tunnels through them: :mod:`.tunnels`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twisted.internet.defer import DeferredLock
from twisted.internet.error import ConnectError

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.network_section import Network
from ironcurtain.http.proxies import Proxy, read_proxies
from ironcurtain.secrets.redaction import Secret


class ProxyFailed(ConnectError):
    """
    There is no connection through the upstream proxy.

    :param message: a whole sentence that names the proxy.
    :ivar lasting: whether trying again is in vain until somebody changes something.
    """

    def __init__(self, message: str, *, lasting: bool) -> None:
        super().__init__(string=message)
        self.message, self.lasting = message, lasting

    def __str__(self) -> str:
        return self.message


class UpstreamProxies:
    """
    :param reactor: for the command that prints the password; it runs once.
    :param network: the settings, which take precedence over the environment.
    :param environ: has the usual variables, may have the password, and is the environment of that command.
    """

    def __init__(self, reactor: Any, network: Network, environ: Mapping[str, str]) -> None:
        self._reactor, self._environ, self.known = reactor, environ, read_proxies(network, environ)
        self._fetching, self._passwords = DeferredLock(), dict[Proxy, Secret]()

    def choose(self, scheme: str, host: str, port: int) -> Proxy | None:
        """
        See :meth:`~ironcurtain.http.proxies.Proxies.choose`.

        :raises ProxyFailed: the proxy for it cannot be used.
        """
        try:
            return self.known.choose(scheme, host, port)
        except ConfigurationError as e:
            raise ProxyFailed(str(e), lasting=True) from None

    async def credentials(self, proxy: Proxy) -> Secret | None:
        """
        :returns: ``USER:PASSWORD``, if the proxy has a user.
        :raises ProxyFailed: the password cannot be read.
        """
        if not proxy.user:
            return None
        password = proxy.password
        if proxy.source.has_source:
            try:
                password = await self._fetched(proxy)
            except ConfigurationError as e:
                raise ProxyFailed(str(e), lasting=True) from None
        return Secret(f"{proxy.user}:{'' if password is None else password.reveal()}", proxy.origin)

    async def _fetched(self, proxy: Proxy) -> Secret:
        from ironcurtain.process.configured_secret import configured_secret  # most proxies need none

        await self._fetching.acquire()
        try:
            if proxy not in self._passwords:
                where = "network.proxy_password"
                self._passwords[proxy] = await configured_secret(proxy.source, where, self._environ, self._reactor)
            return self._passwords[proxy]
        finally:
            self._fetching.release()
