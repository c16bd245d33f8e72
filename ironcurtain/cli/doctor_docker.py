"""The checks of ``ironcurtain doctor`` on the Docker Engine."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ironcurtain.cli.findings import HINT, OK, Finding
from ironcurtain.errors import ConfigurationError
from ironcurtain.sandbox.container import is_podman, maps_accounts

if TYPE_CHECKING:
    from ironcurtain.container.docker_context import DockerContext
    from ironcurtain.container.errors import EngineUnavailable

INSTALL = "Install Docker (Debian: apt-get install docker.io), or name another one: export DOCKER_HOST=unix:///..."

MENDS = {
    errno.EACCES: "Let your account use its socket: sudo usermod --append --groups docker $USER, and log in again.",
    errno.ECONNREFUSED: "Start it: sudo systemctl start docker",
}
"""What to do about an Engine, by the error with which the connection to its socket fails."""

OTHER_HOST = "Use the Engine of this machine: unset DOCKER_HOST, or export DOCKER_HOST=unix:///..."

UNIX = "unix:///"
"""How the address of an Engine begins that agents' containers can use."""

_WAYS = {
    "auto": "; containers use sockets of this machine, or a sidecar where the first one cannot connect to them",
    "unix": '; containers use sockets of this machine (agents.sockets is "unix")',
    "tcp": '; containers reach IronCurtain by TCP, through a sidecar (agents.sockets is "tcp")',
}


def docker_findings(
    info: Mapping[str, Any] | EngineUnavailable,
    sockets: str,
    context: DockerContext | ConfigurationError | None = None,
) -> Iterator[Finding]:
    """
    :param info: the Engine's description of itself, or why there is none.
    :param sockets: the setting ``agents.sockets``.
    :param context: what the command ``docker`` uses, or why it uses none that it should; ``None``: the same.
    :returns: what to say of it.
    """
    if isinstance(context, ConfigurationError):
        yield Finding("Docker", HINT, f"docker cannot read its own settings: {context}")
        context = None
    if not isinstance(info, Mapping):
        e = info
        yield Finding(
            "Docker", HINT, f"does not answer at {e.address} ({e.why}): no agent can run in a container",
            _mend(e, context),
        )  # fmt: skip
        return
    yield Finding("Docker", OK, f"{info.get('ServerVersion', 'unknown version')} answers{_WAYS[sockets]}")
    for detail, mend in _shortcomings(info):
        yield Finding("Docker", HINT, detail, mend)


def _mend(e: EngineUnavailable, context: DockerContext | None) -> str:
    if context is not None and context.host.startswith(UNIX):
        return f"docker uses its context {context.name}; use that one, too: export DOCKER_HOST={context.host}"
    if not e.address.startswith(UNIX):
        return OTHER_HOST
    mend = next((text for number, text in MENDS.items() if e.why == os.strerror(number)), INSTALL)
    if context is None:
        return mend
    return f"docker uses its context {context.name} at {context.host}, but containers need an Engine here. {mend}"


def _shortcomings(info: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """:param info: the Engine's description of itself; missing members do not count as shortcomings."""
    options = [str(option) for option in info.get("SecurityOptions") or ()]
    refused = "So no agent can start in a container."
    if is_podman(info):
        yield (
            "is Podman, which does not take the filter of system calls of a container",
            f"{refused} Use Docker, or agents with bubblewrap.",
        )
    if not any(option.startswith("name=seccomp") for option in options):
        yield "does not filter system calls (seccomp)", refused
    for member, what in (("MemoryLimit", "memory"), ("PidsLimit", "processes"), ("CpuCfsQuota", "processor time")):
        if info.get(member) is False:
            yield f"cannot limit {what}", refused
    if maps_accounts(info):
        yield (
            "maps user ids of containers (rootless, or userns-remap), so that an agent could not write its workspace",
            f"{refused} Use a Docker that runs as root, without userns-remap, or agents with bubblewrap.",
        )
