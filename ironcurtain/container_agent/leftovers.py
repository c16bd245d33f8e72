"""Remove what sessions of dead processes left: containers, and directories with sockets."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twisted.internet.defer import CancelledError
from twisted.logger import Logger

from ironcurtain.container.engine import Engine
from ironcurtain.container.errors import EngineError, EngineUnavailable
from ironcurtain.container.spec import HOME_LABEL, SESSION_LABEL, owner_of
from ironcurtain.container_agent.agent_sandbox import AgentSandbox
from ironcurtain.files.locks import is_held, locked
from ironcurtain.files.removal import remove
from ironcurtain.home.layout import Home
from ironcurtain.home.session_paths import SessionPaths
from ironcurtain.session import events
from ironcurtain.session.parts import Core

_log = Logger()


@dataclass(frozen=True, slots=True)
class Leftover:
    """
    A container whose owner is dead.

    :param pid: the dead owner.
    """

    id: str
    name: str
    session: str
    pid: int


async def leftovers(engine: Engine, home: Path) -> list[Leftover]:
    """
    Find leftovers without changing anything.

    :param home: containers of other homes are ignored.
    :returns: by name, only containers that certainly belong to a dead process.
    """
    found = []
    for container in await engine.list_containers({HOME_LABEL: str(home)}):
        labels = container.get("Labels") or {}
        owner = owner_of(labels)
        if owner is not None and not owner.alive:
            name = (container.get("Names") or [container["Id"][:12]])[0].lstrip("/")
            found.append(Leftover(container["Id"], name, labels.get(SESSION_LABEL, ""), owner.pid))
    return sorted(found, key=lambda leftover: leftover.name)


async def sweep(engine: Engine, home: Path) -> list[Leftover]:
    """
    Remove leftovers, and nothing else.

    :returns: the removed containers, without those that another process removed first.
    """
    removed = []
    for leftover in await leftovers(engine, home):
        try:
            await engine.remove(leftover.id)
        except EngineError as e:
            if e.status not in (404, 409):  # it is gone, or being removed
                raise
            continue
        _log.info("removed {name}, which process {pid} had left", name=leftover.name, pid=leftover.pid)
        removed.append(leftover)
    return removed


async def removed(sandbox: AgentSandbox, core: Core) -> None:
    """End and remove the sandbox of a session that closes. If no Engine answers, report what may be left."""
    try:
        await sandbox.stop()
    except EngineUnavailable as e:
        text = f"the container {sandbox.name} may be left ({e.why}): 'ironcurtain gc' removes it once Docker answers"
        core.emit(events.Notice(text=text))


async def clear(engine: Engine, home: Home) -> list[str]:
    """
    Remove what no living process owns, and nothing else.

    :returns: a sentence for each container.
    """
    removed = await sweep(engine, home.path)
    clear_sockets(home)
    clear_logins(home)
    return [f"removed the container {found.name}, which process {found.pid} left behind" for found in removed]


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
