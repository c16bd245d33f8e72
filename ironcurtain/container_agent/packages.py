"""Packages that the agent installs: told as they arrive, and listed when the session ends."""

from __future__ import annotations

from collections.abc import Callable

from ironcurtain.registries.recording import PackageFetched, PackageTraffic
from ironcurtain.session import events
from ironcurtain.session.refused_requests import RefusedRequests
from ironcurtain.text.quantities import counted

NAMED = 50
"""Maximum number of packages that the list names."""


class Packages:
    """
    :param log: writes a line to the session's log; takes the source and the line.
    """

    def __init__(self, emit: Callable[[events.SessionEvent], None], log: Callable[[str, str], None]) -> None:
        self._emit, self._refused = emit, RefusedRequests(emit, log)
        self._installed: dict[str, dict[str, None]] = {}

    def heard(self, event: PackageTraffic) -> None:
        """Process an event of a registry."""
        version = f"{event.name} {event.version}".strip()
        if isinstance(event, PackageFetched):
            self._installed.setdefault(event.registry, {})[version] = None
            self._emit(
                events.PackageInstalled(
                    registry=event.registry, name=event.name, version=event.version, digest=event.digest
                )
            )
        else:
            host = f"{event.registry}: {version}" if version else event.registry
            self._refused.add(events.RequestRefused(host=host, method="", path="", reason=event.reason), event.rule)

    def tell(self) -> None:
        """List what was installed, if anything was."""
        for registry, versions in self._installed.items():
            named = ", ".join(list(versions)[:NAMED])
            more = f" and {len(versions) - NAMED} more (see the audit log)" if len(versions) > NAMED else ""
            text = f"{counted(len(versions), 'package')} fetched from {registry}: {named}{more}"
            self._emit(events.Notice(text=text))
        self._installed.clear()
