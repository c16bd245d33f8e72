"""
The decision on each connection and request that an agent or a sandboxed program makes.

A host is judged by its name before it is resolved: a lookup alone can carry data to whoever answers it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from ironcurtain.providers.provider import RequestRefusal


class AccountUse(NamedTuple):
    """
    A request gets a token of the person.

    :ivar name: of the account, for people: "GitHub".
    :ivar listed: whether the person's settings allow this request with it.
    :ivar body: of the request, read as JSON; ``None``: it has none.
    """

    name: str
    listed: bool = False
    body: Any = None


class NetworkJudge(Protocol):
    """Decides for one agent, server or shell, records each decision, and asks a person where the policy says so."""

    async def connect(self, host: str, port: int) -> RequestRefusal | None:
        """
        Judge a connection, which takes as long as a person needs to answer. Cancelling withdraws the question,
        after a time in which the program may try again.

        :param host: a name in canonical form, or an address (an IPv6 address without brackets).
        :returns: why it must not be made; ``None`` if it may.
        """

    async def request(self, method: str, url: str, account: AccountUse | None = None) -> RequestRefusal | None:
        """
        Judge one request over a connection that was allowed.

        :param url: with scheme, host and path, without user and fragment.
        :param account: the account of the person that it uses; ``None``: none.
        :returns: why it must not be sent; ``None`` if it may.
        """

    def may_be_private(self, host: str, port: int) -> bool:
        """
        :returns: whether the policy names this host exactly, so that a connection which was allowed may lead to an
            address that is not public.
        """

    def hold(self, host: str, port: int, end: Callable[[], None]) -> Callable[[], None]:
        """
        Name a connection that was allowed, and whose bytes are not judged.

        :param end: ends it; called if a person takes back what allowed it.
        :returns: to call when it has ended otherwise.
        """
