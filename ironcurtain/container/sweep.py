"""Remove what processes left behind that died without closing their sessions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from twisted.logger import Logger

from ironcurtain.container.engine import Engine
from ironcurtain.container.errors import EngineError
from ironcurtain.container.owners import HOME, SESSION, owner_of

_log = Logger()


@dataclass(frozen=True, slots=True)
class Leftover:
    """
    A container whose owner is dead.

    :param pid: of the dead owner.
    """

    id: str
    name: str
    session: str
    pid: int


async def leftovers(engine: Engine, home: Path) -> list[Leftover]:
    """
    Look for what is left behind; change nothing.

    :param home: of ours; containers of other homes are not looked at.
    :returns: by name. What cannot be told to be a dead process's is not among it.
    """
    found = []
    for container in await engine.list_containers({HOME: str(home)}):
        labels = container.get("Labels") or {}
        owner = owner_of(labels)
        if owner is not None and not owner.alive:
            name = (container.get("Names") or [container["Id"][:12]])[0].lstrip("/")
            found.append(Leftover(container["Id"], name, labels.get(SESSION, ""), owner.pid))
    return sorted(found, key=lambda leftover: leftover.name)


async def sweep(engine: Engine, home: Path) -> list[Leftover]:
    """
    Remove what is left behind, and only that.

    :returns: what was removed. What another process removed first is not among it.
    """
    removed = []
    for leftover in await leftovers(engine, home):
        try:
            await engine.remove(leftover.id)
        except EngineError as e:
            if e.status not in (404, 409):  # it is gone, or going
                raise
            continue
        _log.info("removed {name}, which process {pid} had left", name=leftover.name, pid=leftover.pid)
        removed.append(leftover)
    return removed
