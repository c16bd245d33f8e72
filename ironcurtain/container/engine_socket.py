"""Find the socket of the Docker Engine, before anything that speaks to it is imported."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ironcurtain.container.errors import EngineUnavailable

USUAL = "/var/run/docker.sock"


def engine_socket(environ: Mapping[str, str]) -> str:
    """
    :returns: path of the socket of the Engine of ``DOCKER_HOST``, else the system's, else the user's: a rootless one,
        or that of Docker Desktop for macOS.
    :raises EngineUnavailable: ``DOCKER_HOST`` is not a UNIX socket.
    """
    named = environ.get("DOCKER_HOST", "")
    if named and not named.startswith("unix:///"):
        raise EngineUnavailable(named, "DOCKER_HOST has to be unix:///...: containers mount files of this machine")
    if named:
        return named.removeprefix("unix://")
    own = os.path.join(environ.get("XDG_RUNTIME_DIR", "/nonexistent"), "docker.sock")
    desktop = os.path.join(environ.get("HOME", "/nonexistent"), ".docker/run/docker.sock")
    return next(filter(is_usable, (USUAL, own, desktop)), USUAL)


def is_usable(socket: str) -> bool:
    """:returns: whether this process may use a socket; if there is none, no Engine runs."""
    return os.access(socket, os.R_OK | os.W_OK)
