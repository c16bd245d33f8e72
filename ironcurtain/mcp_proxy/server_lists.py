"""The lists of a session's MCP servers: fetch them, follow their changes, and withhold tools that have changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall, deferLater
from twisted.logger import Logger

from ironcurtain.audit.log import AuditLog
from ironcurtain.errors import IronCurtainError
from ironcurtain.mcp_proxy.backend import Backend
from ironcurtain.mcp_proxy.catalogue import TOOLS, Catalogue, CatalogueKind, Sighting, fetch_all
from ironcurtain.mcp_proxy.faults import ServerFaults
from ironcurtain.mcp_proxy.pins import SessionPins, withheld_notice

REFRESH_SECONDS = 0.2
"""Minimum seconds between two fetches of the same list, however often the server reports a change."""

WATCH_SECONDS = 1.0
"""Seconds between checks whether a person has accepted withheld definitions, while there are any."""


class ServerLists:
    """
    :param pins: decides which tool definitions are in force.
    :param faults: records what servers send that breaks the protocol.
    :param tell: called with a message for the user.
    :param changed: called with the method of a notification when a list has changed.
    :ivar catalogue: the lists of all servers, merged.
    """

    log = Logger()

    def __init__(
        self,
        catalogue: Catalogue,
        pins: SessionPins,
        faults: ServerFaults,
        audit: AuditLog,
        clock: IReactorTime,
        tell: Callable[[str], None],
        changed: Callable[[str], None],
    ) -> None:
        self.catalogue, self._pins, self._faults, self._audit = catalogue, pins, faults, audit
        self._clock, self._tell, self._changed = clock, tell, changed
        self._watch = LoopingCall(self.look_again)
        self._watch.clock = clock
        self._refreshing: dict[tuple[str, str], bool] = {}
        self._refreshes: set[Deferred[None]] = set()

    def stop(self) -> None:
        """Fetch nothing more."""
        self._stop_watching()
        for refresh in list(self._refreshes):
            refresh.cancel()

    def look_again(self) -> None:
        """Use the definitions that a person has accepted since the last check."""
        if not self._watch.running:
            return
        for server in self.catalogue.withholding():
            try:
                if self._pins.changed(server):
                    self._record(server, self.catalogue.pin_again(server))
                    self._changed(TOOLS.changed)
            except IronCurtainError as e:
                self.log.warn("tools of MCP server {name} stay withheld: {error}", name=server, error=e)
        if not self.catalogue.withholding():
            self._stop_watching()

    def refresh(self, backend: Backend, kinds: Sequence[CatalogueKind]) -> None:
        """A list of a server has changed: fetch it, and tell the agents."""
        refresh = Deferred.fromCoroutine(self._refresh(backend, kinds))
        self._refreshes.add(refresh)
        refresh.addBoth(lambda _: self._refreshes.discard(refresh))

    async def load(self, backend: Backend, kind: CatalogueKind) -> None:
        """Fetch a list."""
        name, (entries, lacking) = backend.name, await fetch_all(backend, kind)
        self._record(name, self.catalogue.take(name, kind, entries))
        faults = self.catalogue.faults.get((name, kind.method), [])
        self._faults.replace(name, kind.method, [*([lacking] if lacking else []), *faults])
        if kind is TOOLS and self.catalogue.withholding() and not self._watch.running:
            self._watch.start(WATCH_SECONDS, now=False)

    async def _refresh(self, backend: Backend, kinds: Sequence[CatalogueKind]) -> None:
        key = (backend.name, kinds[0].method)
        if key in self._refreshing:
            self._refreshing[key] = True
            return
        self._refreshing[key] = True
        try:
            while self._refreshing[key]:
                self._refreshing[key] = False
                for kind in kinds:
                    await self.load(backend, kind)
                self._changed(kinds[0].changed)
                await deferLater(self._clock, REFRESH_SECONDS)
        except IronCurtainError as e:
            self.log.warn("the lists of MCP server {name} are not known: {error}", name=backend.name, error=e)
        finally:
            del self._refreshing[key]

    def _record(self, server: str, sightings: Sequence[Sighting]) -> None:
        if not sightings:
            return
        seen = [
            {"tool": s.tool, "digest": s.digest, "held": s.withheld, **({"acceptedBy": s.by} if s.by else {})}
            for s in sightings
        ]
        self._audit.append("tools", server=server, tools=seen)
        if held := [s.tool for s in sightings if s.withheld is not None]:
            self._tell(withheld_notice(server, held))

    def _stop_watching(self) -> None:
        if self._watch.running:
            self._watch.stop()
