"""Remove what sessions of dead processes left: containers, and directories with sockets."""

from __future__ import annotations

import shutil

from ironcurtain.container.engine import Engine
from ironcurtain.container.sweep import sweep
from ironcurtain.home import Home
from ironcurtain.locks import is_held


async def clear(engine: Engine, home: Home) -> list[str]:
    """
    Remove what no living process owns, and only that.

    :returns: a sentence for each container.
    """
    removed = await sweep(engine, home.path)
    clear_sockets(home)
    return [f"removed the container {found.name}, which process {found.pid} left behind" for found in removed]


def clear_sockets(home: Home) -> None:
    """Remove the socket directories of sessions that do not run."""
    known = {home.session_run(paths.name).directory: home.session(paths.name).lock for paths in home.sessions.iterdir()}
    for directory, lock in known.items():
        if directory.is_dir() and not is_held(lock):
            shutil.rmtree(directory, ignore_errors=True)
