"""
Parse the output of the probe that runs inside a container, and find what is wrong with the container.

A value that is missing from the output counts as wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from ironcurtain.container.spec import MIB, SOCKET_NAMES, SOCKETS, ContainerSpec

CAPABILITY_SETS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")

SECCOMP_FILTER = "2"
"""proc(5), ``Seccomp``: system calls are filtered."""

DEVICES = frozenset(f"/dev/{name}" for name in ("console", "full", "null", "random", "tty", "urandom", "zero"))
"""Devices that every container has. They are harmless, as are its own terminals below ``/dev/pts``."""

KERNEL_FILE_SYSTEMS = frozenset(("cgroup", "cgroup2", "devpts", "mqueue", "proc", "sysfs", "tmpfs"))
"""File systems that the Engine mounts at and below ``/dev``, ``/proc`` and ``/sys``."""

ENGINE_FILES = frozenset(("/etc/hostname", "/etc/hosts", "/etc/resolv.conf"))
"""Files that the Engine mounts read-only into every container."""

INIT = frozenset(f"{place}/docker-init" for place in ("/sbin", "/usr/sbin", "/usr/bin"))
"""Where the Engine mounts its init program: in ``/sbin``, which may be a link."""


class ProbeFinding(msgspec.Struct, frozen=True):
    """
    The result of one check.

    :param what: name of the check.
    :param problem: a sentence that says what is wrong; empty if nothing is.
    """

    what: str
    problem: str = ""


def judged(what: str, problems: Iterable[str]) -> ProbeFinding:
    """:returns: one finding for several problems of the same kind."""
    return ProbeFinding(what, "; ".join(problems))


class MountPoint(msgspec.Struct, frozen=True):
    """The fields of a line of ``/proc/self/mountinfo`` (proc(5)) that are checked."""

    target: str
    read_only: bool
    file_system: str
    root: str


class ProbeReport(msgspec.Struct):
    """The parsed output of the probe."""

    status: dict[str, str] = msgspec.field(default_factory=dict)
    mounts: list[MountPoint] = msgspec.field(default_factory=list)
    interfaces: list[str] = msgspec.field(default_factory=list)
    routes: list[str] = msgspec.field(default_factory=list)
    devices: list[str] = msgspec.field(default_factory=list)
    sockets: list[str] = msgspec.field(default_factory=list)
    writes: dict[str, str] = msgspec.field(default_factory=dict)
    limits: dict[str, str] = msgspec.field(default_factory=dict)
    namespaces: str = ""
    connection: str = ""
    complete: bool = False


def parse(output: str) -> ProbeReport:
    """
    Parse the probe's output.

    :returns: the values found. Lines that cannot be parsed are ignored, so their values are missing.
    """
    facts = ProbeReport()
    for line in output.split("\n"):
        word, _, value = line.partition(" ")
        name, _, rest = value.partition(" ")
        match word:
            case "status":
                facts.status[name] = " ".join(rest.split())
            case "mount":
                facts.mounts.extend(_mount(value))
            case "interface":
                facts.interfaces.append(value)
            case "route":
                facts.routes.append(value)
            case "device":
                facts.devices.append(value)
            case "socket":
                facts.sockets.append(value)
            case "write":
                facts.writes[name] = rest
            case "limit":
                facts.limits[name] = rest
            case "namespaces":
                facts.namespaces = value
            case "connection":
                facts.connection = value
            case "end":
                facts.complete = True
    return facts


def judge_inside(facts: ProbeReport, spec: ContainerSpec) -> tuple[ProbeFinding, ...]:
    """:returns: one finding per check, in a fixed order."""
    return (
        *judge_isolation(facts, spec.uid, spec.gid),
        judged("mounts", _mounts(facts, spec)),
        *judge_openings(facts),
        judged("limits", _limits(facts, spec)),
    )


def judge_isolation(
    facts: ProbeReport,
    uid: int,
    gid: int,
    groups: Iterable[str] = frozenset(),
    capability_sets: Iterable[str] = CAPABILITY_SETS,
) -> tuple[ProbeFinding, ...]:
    """
    :param groups: further groups that its user may be in.
    :param capability_sets: those that must be empty.
    :returns: one finding per check of what holds for a sandbox of any kind, in a fixed order.
    """
    return (
        judged("probe", () if facts.complete else ("the probe did not finish",)),
        judged("user", _user(facts, uid, gid, groups)),
        judged("capabilities", _capabilities(facts, capability_sets)),
        judged("privileges", _privileges(facts)),
        judged("namespaces", () if facts.namespaces in ("refused", "unknown") else ("it can create namespaces",)),
        judged("network", _network(facts)),
        judged("root file system", _root(facts)),
    )


def judge_openings(facts: ProbeReport) -> tuple[ProbeFinding, ...]:
    """:returns: the findings on devices and sockets."""
    return judged("devices", _devices(facts)), judged("sockets", _sockets(facts))


def _mount(line: str) -> Iterator[MountPoint]:
    fields, _, source = line.partition(" - ")
    parts, behind = fields.split(" "), source.split(" ")
    if len(parts) >= 6 and len(behind) >= 2:
        yield MountPoint(_unescaped(parts[4]), "ro" in parts[5].split(","), behind[0], _unescaped(parts[3]))


def _unescaped(path: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        path = path.replace(code, character)
    return path


def _user(facts: ProbeReport, uid: int, gid: int, further: Iterable[str]) -> Iterator[str]:
    for name, number in (("Uid", uid), ("Gid", gid)):
        found = facts.status.get(name, "")
        if found.split() != [str(number)] * 4:
            yield f"its {name.lower()} is {found or 'unknown'}, not {number}"
    groups = set(facts.status.get("Groups", "unknown").split())
    if groups - {str(gid), *further}:
        yield f"it is in other groups: {' '.join(sorted(groups))}"


def _capabilities(facts: ProbeReport, sets: Iterable[str]) -> Iterator[str]:
    for name in sets:
        found = facts.status.get(name, "")
        if not found or found.strip("0"):
            yield f"{name} is {found or 'unknown'}, not empty"


def _privileges(facts: ProbeReport) -> Iterator[str]:
    if facts.status.get("NoNewPrivs") != "1":
        yield "programs can gain privileges (no-new-privileges is off)"
    if facts.status.get("Seccomp") != SECCOMP_FILTER:
        yield "system calls are not filtered (seccomp is off)"


def _network(facts: ProbeReport) -> Iterator[str]:
    if facts.interfaces != ["lo"]:
        yield f"it has network interfaces: {' '.join(facts.interfaces) or 'unknown'}"
    if routes := sorted(set(facts.routes) - {"lo"}):
        yield f"it has routes over {' '.join(routes)}"


def _root(facts: ProbeReport) -> Iterator[str]:
    roots = [mount for mount in facts.mounts if mount.target == "/"]
    if len(roots) != 1 or not roots[0].read_only:
        yield "the root file system is not mounted read-only"
    if "/" not in facts.writes:
        yield "writing to it was not tried"
    for directory, answer in facts.writes.items():
        if "read-only file system" not in answer.lower():
            yield f"writing to {directory} ended with: {answer}"


def _mounts(facts: ProbeReport, spec: ContainerSpec) -> Iterator[str]:
    ordered = {mount.target: mount for mount in spec.mounts}
    for mount in facts.mounts:
        if mount.target in ordered:
            if ordered.pop(mount.target).read_only and not mount.read_only:
                yield f"{mount.target} is writable"
        elif not _of_the_engine(mount):
            yield f"there is an unexpected mount at {mount.target}"
    for target in ordered:
        yield f"nothing is mounted at {target}"


def _of_the_engine(mount: MountPoint) -> bool:
    place = f"/{mount.target.split('/')[1]}"
    if place == "/":
        return True
    if mount.target in ENGINE_FILES | INIT:
        return mount.read_only
    if mount.target in DEVICES:  # a rootless Engine mounts them one by one
        return True
    if mount.file_system == "devtmpfs":  # its /dev/null hides files, too
        return place == "/proc" and mount.root == "/null"
    if mount.file_system not in KERNEL_FILE_SYSTEMS:
        return False
    if place == "/sys":  # cgroups version 1 are mounted below a tmpfs, which root owns
        return mount.read_only or mount.file_system == "tmpfs"
    return place in ("/dev", "/proc") or mount.target == "/tmp"


def _devices(facts: ProbeReport) -> Iterator[str]:
    others = [path for path in facts.devices if path not in DEVICES and not path.startswith("/dev/pts/")]
    if others or not facts.devices:
        yield f"it has devices: {' '.join(others[:10]) or 'unknown'}"


def _sockets(facts: ProbeReport) -> Iterator[str]:
    ours = {f"{SOCKETS}/{name}" for name in SOCKET_NAMES}
    for path in facts.sockets:
        if path not in ours:
            yield f"there is a socket {path}"


def _limits(facts: ProbeReport, spec: ContainerSpec) -> Iterator[str]:
    for name, wanted in (("memory", spec.memory_mb * MIB), ("pids", spec.pids)):
        found = facts.limits.get(name, "unknown")
        if not found.isdigit() or int(found) > wanted:
            yield f"the limit of {name} is {found}, not {wanted}"
