"""Remove what sessions of dead processes left: containers, and directories with sockets."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from typing import Any

from twisted.internet.defer import CancelledError
from twisted.logger import Logger

from ironcurtain.container.container import Container
from ironcurtain.container.engine import Engine
from ironcurtain.container.errors import EngineUnavailable
from ironcurtain.container.sweep import sweep
from ironcurtain.files.locks import is_held
from ironcurtain.home.layout import Home
from ironcurtain.session import events
from ironcurtain.session.parts import Core

_log = Logger()


async def removed(container: Container, core: Core) -> None:
    """End and remove the container of a session that closes; where no Engine answers, tell what is left."""
    try:
        await container.stop()
    except EngineUnavailable as e:
        told = f"the container {container.name} may be left ({e.why}): 'ironcurtain gc' removes it once Docker answers"
        core.emit(events.Notice(text=told))


async def clear(engine: Engine, home: Home) -> list[str]:
    """
    Remove what no living process owns, and only that.

    :returns: a sentence for each container.
    """
    removed = await sweep(engine, home.path)
    clear_sockets(home)
    return [f"removed the container {found.name}, which process {found.pid} left behind" for found in removed]


async def clear_at_start(reactor: Any, home: Home, environ: Mapping[str, str]) -> None:
    """Remove what dead processes left, without a word where no Engine answers: it is needed for containers only."""
    clear_sockets(home)
    try:
        engine = Engine.find(reactor, environ)
        if engine.is_there:
            await sweep(engine, home.path)
            engine.close()
    except CancelledError:
        raise
    except EngineUnavailable:
        return
    except Exception:
        _log.failure("not all containers that dead processes left could be removed")


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
