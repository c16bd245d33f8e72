"""
Clients of the Docker Engine: the low-level ones of the package ``docker``, with IronCurtain's API versions and time
limits.

The package takes 0.2 s to import, so this module is imported only when containers are used.
"""

from __future__ import annotations

from typing import Any

from docker import APIClient, auth
from docker.errors import InvalidVersion

OLDEST, NEWEST = (1, 41), (1, 47)
"""API versions: the minimum (Docker 20.10: private cgroup namespaces), and the newest that was tested."""

CONNECT_SECONDS = 5.0
"""Time limit in seconds for connecting to the Engine (it is on this machine)."""


class DockerClient(APIClient):
    """
    A client that opens a connection per call, so that a restarted Engine works at once.

    :param address: ``unix://`` and the path of the Engine's socket.
    :param version: API version.
    :param seconds: how long the Engine may be silent.
    """

    def __init__(self, address: str, version: tuple[int, ...], seconds: float) -> None:
        super().__init__(address, version=_text(version), timeout=seconds)  # type: ignore[arg-type]  # fractions work
        self.trust_env = False  # proxies and passwords in the environment do not apply to a socket of this machine
        self.headers["Connection"] = "close"

    def send(self, request: Any, **kwargs: Any) -> Any:
        """Send one request; see :meth:`requests.Session.send`."""
        return super().send(request, **{**kwargs, "timeout": (CONNECT_SECONDS, kwargs["timeout"])})

    def registry_login(self, image: str) -> str:
        """:returns: the value of ``X-Registry-Auth`` for an image, from the person's logins; empty: there is none."""
        registry, _ = auth.resolve_repository_name(image)
        header: bytes | str | None = auth.get_config_header(self, registry)
        return header.decode() if isinstance(header, bytes) else header or ""


def connect(address: str, first: float, seconds: float) -> DockerClient:
    """
    Negotiate a version with the Engine.

    :param first: time limit in seconds for its first answer.
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
