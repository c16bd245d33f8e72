"""
Clients of the Docker Engine: the low-level ones of the package ``docker``, with our versions and time limits.

The package takes 0.2 s to import, so this module is imported only when containers are used.
"""

from __future__ import annotations

from typing import Any

from docker import APIClient
from docker.errors import InvalidVersion

OLDEST, NEWEST = (1, 41), (1, 47)
"""Versions of the API: what is needed (Docker 20.10: private cgroup namespaces), and the newest that was looked at."""

CONNECT_SECONDS = 5.0
"""How long the Engine may take to accept a connection (it is on this machine)."""


class DockerClient(APIClient):
    """
    A client whose calls use a connection each, so that an Engine that was started again answers at once.

    :param address: ``unix://`` and the path of the Engine's socket.
    :param version: of the API.
    :param seconds: how long the Engine may be silent.
    """

    def __init__(self, address: str, version: tuple[int, ...], seconds: float) -> None:
        super().__init__(address, version=_text(version), timeout=seconds)  # type: ignore[arg-type]  # fractions work
        self.trust_env = False  # neither proxies nor passwords of the environment concern a socket of this machine
        self.headers["Connection"] = "close"

    def send(self, request: Any, **kwargs: Any) -> Any:
        """Send one request; see :meth:`requests.Session.send`."""
        return super().send(request, **{**kwargs, "timeout": (CONNECT_SECONDS, kwargs["timeout"])})


def connect(address: str, first: float, seconds: float) -> DockerClient:
    """
    Agree on a version with the Engine.

    :param first: how many seconds it may take to answer.
    :param seconds: how long it may be silent later.
    :raises docker.errors.DockerException: it refuses, or is too old.
    :raises OSError: it does not answer.
    """
    spoken = str(DockerClient(address, NEWEST, first).version(api_version=False).get("ApiVersion") or "unknown")
    parts = spoken.split(".")
    version = tuple(map(int, parts)) if all(part.isdigit() for part in parts) else ()
    if version < OLDEST:
        raise InvalidVersion(f"its API is {spoken}, and {_text(OLDEST)} is needed")
    return DockerClient(address, min(version, NEWEST), seconds)


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
