"""
Verify that a container is confined before an agent starts in it: from inside, by the Engine's description, and by the
kernel's.

The kernel is queried only if the Engine runs on this machine and its processes are visible; otherwise that check gives
no result.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ironcurtain.container import execution
from ironcurtain.container.engine import ContainerState, Engine
from ironcurtain.container.errors import ContainerDied, ProbeFailed, SocketsUnreachable
from ironcurtain.container.inside import CAPABILITY_SETS, SECCOMP_FILTER, ProbeFinding, judge_inside, judged, parse
from ironcurtain.container.sidecar import Sidecar, SidecarSpec
from ironcurtain.container.spec import SOCKETS, ContainerSpec

_HINT = "What this Engine cannot limit, ironcurtain doctor says; agents on this machine need none: --sandbox bubblewrap"

NAMESPACES = ("ipc", "mnt", "net", "pid", "uts")
"""Namespaces that a container must not share with the host (namespaces(7))."""

EMPTY = (
    "Binds", "CapAdd", "DeviceCgroupRules", "DeviceRequests", "Devices", "ExtraHosts", "GroupAdd", "Links", "PidMode",
    "PortBindings", "UTSMode", "UsernsMode", "VolumesFrom",
)  # fmt: skip
"""Settings that the Engine must not have added: they must be missing or empty."""

EXACT = (
    "CapDrop", "IpcMode", "Memory", "MemorySwap", "NanoCpus", "NetworkMode", "PidsLimit", "Privileged",
    "ReadonlyRootfs", "Tmpfs",
)  # fmt: skip
"""Settings that must be exactly as requested."""


def judge_description(inspected: Mapping[str, Any], spec: ContainerSpec | SidecarSpec) -> tuple[ProbeFinding, ...]:
    """:param inspected: the result of :meth:`Engine.inspect`."""
    return (
        judged("order", _order(inspected, spec)),
        judged("mounted files", _mounted(inspected, spec)),
        judged("networks", _networks(inspected, spec)),
    )


def judge_sidecar(
    sidecar: str, inspected: Mapping[str, Any], network: Mapping[str, Any], spec: SidecarSpec
) -> tuple[ProbeFinding, ...]:
    """
    Check that a sidecar is confined like the container, but for its network, in which nothing else may be.

    :param sidecar: its full id.
    :param inspected: the result of :meth:`Engine.inspect`.
    :param network: the result of :meth:`Engine.inspect_network`.
    """
    found = (
        *judge_description(inspected, spec),
        judged("network with nothing else", _others(sidecar, network, spec.internal)),
    )
    return tuple(replace(each, what=f"sidecar's {each.what}") for each in found)


def judge_kernel(container: str, pid: int, proc: Path = Path("/proc")) -> tuple[ProbeFinding, ...]:
    """
    Check the first process of a container.

    :param container: the full id.
    :param pid: that process's id, as the Engine reports it.
    :returns: no finding if that process is not visible.
    :raises ContainerDied: it ended meanwhile.
    """
    process = proc / str(pid)
    if not pid or container not in _text(process / "cgroup"):
        return ()
    status = dict(line.split(":\t", 1) for line in _text(process / "status").splitlines() if ":\t" in line)
    return (
        judged("kernel's capabilities", _held(status)),
        judged("kernel's namespaces", _shared(proc, process)),
    )


def judge_sockets(sources: Iterable[str], proc: Path = Path("/proc")) -> ProbeFinding:
    """
    :param sources: what of this machine is visible inside, except the proxies' sockets.
    :returns: findings on programs of this machine that listen on a socket visible inside.
    """
    return judged("sockets of this machine", _reachable(_bound(_text(proc / "net/unix")), sources))


def _order(inspected: Mapping[str, Any], spec: ContainerSpec | SidecarSpec) -> Iterator[str]:
    request = spec.create_request()
    host, wanted = inspected["HostConfig"], request["HostConfig"]
    for name in EMPTY:
        if (host.get(name) or None) != (wanted.get(name) or None):
            yield f"{name} is {host.get(name)}"
    for name in EXACT:
        if host.get(name) != wanted[name]:
            yield f"{name} is {host.get(name)}, not {wanted[name]}"
    if host.get("SecurityOpt") != wanted["SecurityOpt"]:
        yield "SecurityOpt is not as requested"
    if inspected["Config"].get("User") != request["User"]:
        yield f"User is {inspected['Config'].get('User')}"


def _mounted(inspected: Mapping[str, Any], spec: ContainerSpec | SidecarSpec) -> Iterator[str]:
    ordered = {(mount.source, mount.target, not mount.read_only) for mount in spec.mounts}
    # A volume is known by its name only if it was ordered; one that the image declares has a random name.
    found = {
        (m.get("Name" if m["Type"] == "volume" else "Source"), m["Destination"], m["RW"])
        for m in inspected["Mounts"]
        if m["Type"] != "tmpfs"
    }
    for source, target, _ in sorted(found - ordered, key=str):
        yield f"{source} is mounted at {target}, which is unexpected (an image must not declare volumes)"


def _networks(inspected: Mapping[str, Any], spec: ContainerSpec | SidecarSpec) -> Iterator[str]:
    networks = inspected["NetworkSettings"].get("Networks") or {}
    if others := sorted(set(networks) - {spec.network}):
        yield f"it is in the networks {' '.join(others)}"


def _others(sidecar: str, network: Mapping[str, Any], internal: bool) -> Iterator[str]:
    if bool(network.get("Internal")) != internal:
        yield f"its network is {'not ' if internal else ''}internal"
    if others := sorted(set(network.get("Containers") or {}) - {sidecar}):
        yield f"other containers are in its network: {' '.join(each[:12] for each in others)}"


def _held(status: Mapping[str, str]) -> Iterator[str]:
    if any(status.get(name, "?").strip("0") for name in CAPABILITY_SETS):
        yield "the kernel says that it has capabilities"
    if status.get("NoNewPrivs") != "1" or status.get("Seccomp") != SECCOMP_FILTER:
        yield "the kernel says that no-new-privileges or seccomp is off"


def _shared(proc: Path, process: Path) -> Iterator[str]:
    for name in NAMESPACES:
        try:
            if os.readlink(process / "ns" / name) == os.readlink(proc / "self/ns" / name):
                yield f"it shares the {name} namespace with this machine"
        except PermissionError:
            return
        except (FileNotFoundError, ProcessLookupError):
            raise ContainerDied("the container ended while it was probed") from None


def _bound(table: str) -> Iterator[str]:
    """:returns: the paths in ``/proc/net/unix``; sockets of other network namespaces are not listed."""
    for line in table.splitlines()[1:]:
        fields = line.split(None, 7)
        if len(fields) == 8 and fields[7].startswith("/"):
            yield fields[7]


def _reachable(bound: Iterable[str], sources: Iterable[str]) -> Iterator[str]:
    places = [os.path.realpath(source) for source in sources]
    for path in sorted(set(bound)):
        real = os.path.realpath(path)
        if any(real == place or real.startswith(f"{place}/") for place in places):
            yield f"a program of this machine listens on {real}: end it, or move its socket"


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


OUTPUT_LIMIT = 256 * 1024
"""Maximum number of bytes kept of the probe's output (it prints about 6 KiB)."""


async def probe(
    engine: Engine, container: str, spec: ContainerSpec, sidecar: Sidecar | None = None
) -> tuple[ProbeFinding, ...]:
    """
    Check a running container from inside and outside, with its sidecar, if that runs.

    :param container: its full id.
    :returns: the findings, all without a problem: for the record.
    :raises ProbeFailed: something is not as specified, or could not be checked.
    :raises SocketsUnreachable: nothing but that: a program in it cannot connect to the proxies.
    :raises ContainerDied: it ended meanwhile.
    """
    inspected = await engine.inspect(container)
    report = parse(await _look_inside(engine, container))
    findings = (
        *judge_description(inspected, spec),
        *(await _judge_sidecar(sidecar) if sidecar is not None else ()),
        *judge_kernel(container, ContainerState.of(inspected).pid),
        judge_sockets([mount.source for mount in spec.mounts if mount.target != SOCKETS]),
        *judge_inside(report, spec),
    )
    if wrong := [finding for finding in findings if finding.problem]:
        unlimited = any(finding.what == "limits" for finding in wrong)
        raise ProbeFailed(tuple(finding.problem for finding in wrong), _HINT if unlimited else "")
    if report.connection == "no" and any(mount.target == SOCKETS for mount in spec.mounts):
        raise SocketsUnreachable()
    return findings


async def _judge_sidecar(sidecar: Sidecar) -> tuple[ProbeFinding, ...]:
    if sidecar.spec is None or not sidecar.id:
        return ()
    return judge_sidecar(sidecar.id, await sidecar.inspect(), await sidecar.network(), sidecar.spec)


def look_inside() -> tuple[str, ...]:
    """:returns: the command that prints what a sandbox is like, for :func:`ironcurtain.container.inside.parse`."""
    script = resources.files("ironcurtain.container").joinpath("data/probe.sh").read_text()
    return ("/bin/sh", "-c", script, "probe", SOCKETS)


async def _look_inside(engine: Engine, container: str) -> str:
    said = bytearray()

    def take(data: bytes) -> None:
        said.extend(data[: OUTPUT_LIMIT - len(said)])

    await execution.run(
        engine, container, look_inside(), stdin=b"", stdout=take, stderr=lambda _: None, environment={"LC_ALL": "C"}
    )
    return said.decode("utf-8", "replace")
