"""
Remove what sessions of dead processes left: containers, networks and volumes of sidecars, directories with sockets.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec
from twisted.internet.defer import CancelledError
from twisted.logger import Logger

from ironcurtain.container.engine import Engine
from ironcurtain.container.errors import EngineError, EngineUnavailable
from ironcurtain.container.spec import HOME_LABEL, SESSION_LABEL, owner_of
from ironcurtain.files.locks import is_held, locked
from ironcurtain.files.removal import remove
from ironcurtain.home.layout import Home
from ironcurtain.home.session_paths import SessionPaths
from ironcurtain.session import events
from ironcurtain.session.parts import Core

_log = Logger()


class Leftover(msgspec.Struct, frozen=True):
    """
    A container whose owner is dead, or a network or volume of its sidecar.

    :param pid: the dead owner.
    """

    id: str
    name: str
    session: str
    pid: int
    kind: Literal["container", "network", "volume"] = "container"


async def leftovers(engine: Engine, home: Path) -> list[Leftover]:
    """
    Find leftovers without changing anything.

    :param home: those of other homes are ignored.
    :returns: only what certainly belongs to a dead process; containers first, since they use the rest; each by name.
    """
    ours, found = {HOME_LABEL: str(home)}, []
    for container in await engine.list_containers(ours):
        name = (container.get("Names") or [container["Id"][:12]])[0].lstrip("/")
        found += _left("container", container["Id"], name, container)
    for network in await engine.list_networks(ours):
        found += _left("network", network["Id"], network["Name"], network)
    for volume in await engine.list_volumes(ours):
        found += _left("volume", volume["Name"], volume["Name"], volume)
    return sorted(found, key=lambda leftover: (leftover.kind, leftover.name))


def _left(
    kind: Literal["container", "network", "volume"], id: str, name: str, described: Mapping[str, Any]
) -> list[Leftover]:
    labels = described.get("Labels") or {}
    owner = owner_of(labels)
    return [] if owner is None or owner.alive else [Leftover(id, name, labels.get(SESSION_LABEL, ""), owner.pid, kind)]


async def sweep(engine: Engine, home: Path) -> list[Leftover]:
    """
    Remove leftovers, and nothing else.

    :returns: what was removed, without what another process removed first.
    """
    removed = []
    remove = {"container": engine.remove, "network": engine.remove_network, "volume": engine.remove_volume}
    for leftover in await leftovers(engine, home):
        try:
            await remove[leftover.kind](leftover.id)
        except EngineError as e:
            if e.status not in (404, 409):  # it is gone, or being removed
                raise
            continue
        _log.info("removed {name}, which process {pid} had left", name=leftover.name, pid=leftover.pid)
        removed.append(leftover)
    return removed


class Removable(Protocol):
    """A sandbox of an agent."""

    @property
    def name(self) -> str:
        """What it is called by those who look for it."""

    async def stop(self) -> None:
        """End and remove it."""


async def removed(sandbox: Removable, core: Core) -> None:
    """End and remove the sandbox of a session that closes. If no Engine answers, report what may be left."""
    try:
        await sandbox.stop()
    except EngineUnavailable as e:
        text = f"the container {sandbox.name} may be left ({e.why}): 'ironcurtain gc' removes it once Docker answers"
        core.emit(events.Notice(text=text))


async def clear(engine: Engine, home: Home) -> list[str]:
    """
    Remove what no living process owns, and nothing else.

    :returns: a sentence for each container; what belongs to it is not mentioned.
    """
    removed = await sweep(engine, home.path)
    clear_sockets(home)
    clear_logins(home)
    containers = [found for found in removed if found.kind == "container"]
    return [f"removed the container {found.name}, which process {found.pid} left behind" for found in containers]


async def clear_at_start(reactor: Any, home: Home, environ: Mapping[str, str]) -> None:
    """Remove what dead processes left. If no Engine answers, do nothing: only containers need one."""
    clear_sockets(home)
    clear_logins(home)
    try:
        engine = Engine.find(reactor, environ)
        if engine.has_socket:
            await sweep(engine, home.path)
            engine.close()
    except CancelledError:
        raise
    except EngineUnavailable:
        return
    except Exception:
        _log.failure("not all containers that dead processes left could be removed")


def clear_logins(home: Home) -> None:
    """Remove the files of logins whose processes were killed: they can contain tokens."""
    if not home.logins.is_dir():
        return
    with locked(home.logins_lock):
        for directory in home.logins.iterdir():
            if not is_held(SessionPaths(directory).lock):
                remove(directory)
                shutil.rmtree(home.session_run(directory.name).directory, ignore_errors=True)


def clear_sockets(home: Home) -> list[str]:
    """
    Remove the socket directories of sessions that do not run.

    :returns: the ids of these sessions.
    """
    found = []
    for session in sorted(path.name for path in home.sessions.glob("*/")):
        directory = home.session_run(session).directory
        if directory.is_dir() and not is_held(home.session(session).lock):
            shutil.rmtree(directory, ignore_errors=True)
            found.append(session)
    return found
