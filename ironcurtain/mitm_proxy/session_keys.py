"""The fake keys of a session in requests to hosts that belong to no provider, which must not get them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ironcurtain.http.head import RequestHead
from ironcurtain.mitm_proxy.host_accounts import HostAccount, HostAccounts
from ironcurtain.mitm_proxy.judgement import ABSENT
from ironcurtain.providers.provider import RequestRefusal
from ironcurtain.secrets.redaction import Secret


class SessionKeys:
    """
    :param fakes: of the session's providers.
    :param accounts: of the person, at some of these hosts; each may get its own fake token.
    :param absent: requests with such a key that nothing needs, as ``GET host/path``.
    """

    def __init__(self, fakes: Iterable[Secret], accounts: HostAccounts, absent: Collection[str]) -> None:
        self._fakes = [fake.reveal().encode() for fake in fakes]
        self._accounts, self._absent = accounts, absent

    def refusal(self, host: str, head: bytes, request: RequestHead, own: HostAccount | None) -> RequestRefusal | None:
        """
        :param host: which the request is for.
        :param head: as it came.
        :param request: the same, parsed.
        :param own: the account at the host that gets it over TLS.
        :returns: why a request with a fake key that is not for that host is refused; ``None`` for all others.
        """
        if not self._leaks(head, own):
            return None
        if f"{request.method} {host}{request.path}" in self._absent:
            return RequestRefusal(404, ABSENT, f"nothing needs {request.path} here")
        why = "the request contains a key of this session that is for another host, or in another header"
        return RequestRefusal(403, "session-key", why)

    def _leaks(self, head: bytes, own: HostAccount | None) -> bool:
        others = [each for each in self._accounts.values() if each is not own]
        keys = (*self._fakes, *(each.fake.reveal().encode() for each in others))
        return any(key in head for key in keys) or (own is not None and own.leaks(head))
