"""The upstream proxies of one process, and the credentials for them. Tunnels through them: :mod:`.tunnels`."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from twisted.internet.defer import DeferredLock
from twisted.internet.error import ConnectError
from twisted.internet.threads import deferToThreadPool

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.network_section import Network
from ironcurtain.http.proxies import NONE, VARIABLES, Proxy, read_proxies
from ironcurtain.secrets.redaction import Secret

if TYPE_CHECKING:
    from ironcurtain.http.negotiate import Negotiation


PROXY_AUTH: Final = "IRONCURTAIN_PROXY_AUTH"
"""The variable that says ``negotiate`` to IronCurtain's own programs, where the proxy of the others wants that."""


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


@dataclass(frozen=True, slots=True)
class Authorization:
    """
    What proves to a proxy who asks for one tunnel.

    :ivar value: of ``Proxy-Authorization``.
    :ivar negotiation: verifies the proxy's answer, if it can be verified.
    """

    value: Secret
    negotiation: Negotiation | None = None


class UpstreamProxies:
    """
    :param reactor: for the command that prints the password; it runs once.
    :param network: the settings, which take precedence over the environment.
    :param environ: has the usual variables, may have the password, and is the environment of that command.
    """

    def __init__(self, reactor: Any, network: Network, environ: Mapping[str, str]) -> None:
        self._reactor, self._environ, self._network = reactor, environ, network
        self.known = read_proxies(network, environ)
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

    async def authorization(self, proxy: Proxy) -> Authorization | None:
        """
        :returns: for one tunnel; ``None`` if the proxy wants none.
        :raises ProxyFailed: there is no password, or no Kerberos ticket.
        """
        if proxy.negotiates:
            return await self._negotiated(proxy)
        if (secret := await self.credentials(proxy)) is None:
            return None
        basic = base64.b64encode(secret.reveal().encode()).decode("ascii")
        return Authorization(Secret(f"Basic {basic}", secret.origin))

    async def _negotiated(self, proxy: Proxy) -> Authorization:
        from ironcurtain.http.negotiate import Negotiation, NegotiationFailed  # few proxies need it

        def begin() -> Authorization:
            negotiation = Negotiation(proxy.host.name)
            return Authorization(negotiation.begin(), negotiation)

        try:
            return await deferToThreadPool(self._reactor, self._reactor.getThreadPool(), begin)
        except NegotiationFailed as e:
            raise ProxyFailed(f"the proxy {proxy} cannot be used: {e}", lasting=e.lasting) from None

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

    async def variables(self) -> dict[str, str]:
        """
        :returns: the environment in which another program makes the same choice; it may contain a password.
        :raises ProxyFailed: the password cannot be read.
        """
        network = self._network
        if network.proxy == NONE:
            return {}
        found = {name: self._environ[name] for name in VARIABLES if name in self._environ}
        if network.no_proxy:
            found = {name: value for name, value in found.items() if name.lower() != "no_proxy"}
            found["no_proxy"] = ",".join(network.no_proxy)
        if isinstance(proxy := self.known.by_scheme.get("https"), Proxy) and network.proxy:
            secret = await self.credentials(proxy)
            url = proxy.url_for("" if secret is None else secret.reveal().partition(":")[2])
            found |= {"https_proxy": url, "http_proxy": url}
            if proxy.negotiates:
                kerberos = (name for name in self._environ if name.startswith("KRB5"))
                found |= {PROXY_AUTH: "negotiate", **{name: self._environ[name] for name in kerberos}}
        return found

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
