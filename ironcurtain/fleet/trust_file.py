"""The file ``fleet.trust``, as it is now."""

from __future__ import annotations

from twisted.logger import Logger

from ironcurtain.errors import ConfigurationError
from ironcurtain.files.private import file_stamp
from ironcurtain.fleet.trust import Trust, read_trust
from ironcurtain.home.layout import Home


class TrustFile:
    """``fleet.trust`` of a home, read again when it has changed. A wrong one means that nobody is trusted."""

    log = Logger()

    def __init__(self, home: Home) -> None:
        self._path = home.fleet_trust
        self._stamp: tuple[int, ...] | None = None
        self._trust = self._before = Trust()

    def changed(self) -> set[str]:
        """:returns: the hosts whose key or people were changed or taken out since this was called last."""
        before, self._before = self._before.hosts, self()
        return {name for name, host in before.items() if self._before.hosts.get(name) != host}

    def __call__(self) -> Trust:
        """:returns: whom this host believes now."""
        if (stamp := file_stamp(self._path)) != self._stamp:
            self._stamp = stamp
            try:
                self._trust = read_trust(self._path)
            except ConfigurationError as e:
                self._trust = Trust()
                self.log.error("nobody of the fleet is believed: {error}", error=e)
        return self._trust

    def once(self, first: str, second: str) -> str:
        """See :meth:`~ironcurtain.fleet.trust.Trust.once`, as the file says now."""
        return self().once(first, second)
