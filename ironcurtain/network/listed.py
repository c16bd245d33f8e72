"""Refuse what a list does not name, before anybody is asked."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ironcurtain.http.urls import UnclearAddress, read_web_address
from ironcurtain.network.access import Access
from ironcurtain.network.judge import AccountUse, NetworkJudge
from ironcurtain.providers.provider import RequestRefusal


class ListedJudge(msgspec.Struct, frozen=True):
    """
    Judges the connections of a program that may reach what a list names. See
    :class:`~ironcurtain.network.judge.NetworkJudge`.

    :param where: what names the hosts, in words.
    :param policy: decides about what the list permits; ``None``: the list alone decides.
    """

    access: Access
    where: str
    policy: NetworkJudge | None = None

    async def connect(self, host: str, port: int) -> RequestRefusal | None:
        """See :class:`~ironcurtain.network.judge.NetworkJudge`."""
        if not (self.access.anything or self.access.lists(host, port)):
            return self._unlisted(f"{host}:{port}")
        return None if self.policy is None else await self.policy.connect(host, port)

    async def request(self, method: str, url: str, account: AccountUse | None = None) -> RequestRefusal | None:
        """See :class:`~ironcurtain.network.judge.NetworkJudge`."""
        try:
            address = read_web_address(url)
        except UnclearAddress as e:
            return RequestRefusal(403, "unclear-address", f"the address is unclear: {e}")
        if not (self.access.anything or self.access.lists(address.host.name, address.port)):
            return self._unlisted(f"{address.host.name}:{address.port}")
        return None if self.policy is None else await self.policy.request(method, url, account)

    def may_be_private(self, host: str, port: int) -> bool:
        """See :class:`~ironcurtain.network.judge.NetworkJudge`."""
        return self.access.names(host, port)

    def hold(self, host: str, port: int, end: Callable[[], None]) -> Callable[[], None]:
        """See :class:`~ironcurtain.network.judge.NetworkJudge`."""
        return _nothing if self.policy is None else self.policy.hold(host, port, end)

    def _unlisted(self, what: str) -> RequestRefusal:
        return RequestRefusal(403, "not-listed", f"the connection to {what} is refused: {self.where} does not list it")


def _nothing() -> None:
    """Nobody can take back what the settings list."""
