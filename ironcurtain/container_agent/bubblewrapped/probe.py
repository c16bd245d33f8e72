"""Verify that a sandbox of bubblewrap is confined before an agent starts in it, by the probe that containers have."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Protocol

from ironcurtain.container.container import ProgramEnded
from ironcurtain.container.errors import ProbeFailed
from ironcurtain.container.execution import Sink
from ironcurtain.container.inside import (
    CAPABILITY_SETS,
    DEVICES,
    MountPoint,
    ProbeFinding,
    ProbeReport,
    judge_isolation,
    judge_openings,
    judged,
    parse,
)
from ironcurtain.container.probe import OUTPUT_LIMIT, judge_sockets, look_inside
from ironcurtain.container.spec import SOCKETS
from ironcurtain.process.bounded import Kept
from ironcurtain.sandbox.bubblewrap_options import system_paths
from ironcurtain.sandbox.spec import Access, Sandbox, directories_above, is_below

OVERFLOW = "65534"
"""How a group that has no number in a namespace of accounts is shown there (user_namespaces(7))."""

IN_MEMORY = {"/": "tmpfs", "/dev": "tmpfs", "/tmp": "tmpfs", "/dev/shm": "tmpfs", "/dev/pts": "devpts", "/proc": "proc"}
"""What bubblewrap makes, with the kind of file system; the first two are read-only."""


class Runs(Protocol):
    """Runs the probe: see :class:`~ironcurtain.container_agent.agent_sandbox.AgentSandbox`."""

    async def run(
        self, argv: tuple[str, ...], *, stdin: bytes, stdout: Sink, stderr: Sink, environment: dict[str, str]
    ) -> ProgramEnded: ...


async def probe(runs: Runs, sandbox: Sandbox) -> tuple[ProbeFinding, ...]:
    """
    Check a sandbox that is up.

    :returns: the findings, all without a problem: for the record.
    :raises ProbeFailed: something is not as specified, or could not be checked.
    :raises ContainerDied: it ended meanwhile.
    """
    said = Kept(OUTPUT_LIMIT)
    await runs.run(look_inside(), stdin=b"", stdout=said.feed, stderr=lambda _: None, environment={"LC_ALL": "C"})
    findings = judge(parse(said.content.decode("utf-8", "replace")), sandbox)
    if problems := tuple(finding.problem for finding in findings if finding.problem):
        raise ProbeFailed(problems)
    return findings


def judge(report: ProbeReport, sandbox: Sandbox) -> tuple[ProbeFinding, ...]:
    """:returns: one finding per check, in a fixed order."""
    account = sandbox.account
    uid, gid = (os.geteuid(), os.getegid()) if account is None else (account.uid, account.gid)
    groups = (OVERFLOW,) if account is None else ()  # an ordinary user cannot leave a group
    # The bounding set limits what programs gain, and without new privileges they gain nothing.
    sets = [name for name in CAPABILITY_SETS if account is None or name != "CapBnd"]
    sources = [sandbox.source(path) for path, access in sandbox.mounts() if access is not Access.EMPTY]
    return (
        *judge_isolation(report, uid, gid, groups, sets),
        judged("mounts", _mounts(report, sandbox)),
        *judge_openings(report),
        judge_sockets([path for path in sources if not os.path.samefile(path, _proxy_of(sandbox))]),
    )


def _proxy_of(sandbox: Sandbox) -> str:
    """:returns: the MCP proxy's socket, outside."""
    return next(each.source for each in sandbox.bound if is_below(each.target, SOCKETS))


def _mounts(report: ProbeReport, sandbox: Sandbox) -> Iterator[str]:
    given = dict(sandbox.mounts())
    visible = [*system_paths(sandbox), *given, *(path for path, _ in sandbox.files), "/proc"]
    there = {mount.target for mount in report.mounts}
    for mount in report.mounts:
        if mount.read_only:
            known = mount.target in IN_MEMORY or mount.target in DEVICES
            if not known and not any(is_below(mount.target, place) for place in visible):
                yield f"there is an unexpected mount at {mount.target}"
        elif not _may_be_written(mount, given):
            yield f"{mount.target} is writable"
    for target in given:
        if target not in there:
            yield f"nothing is mounted at {target}"


def _may_be_written(mount: MountPoint, given: dict[str, Access]) -> bool:
    if mount.target in DEVICES:
        return True
    if mount.target in IN_MEMORY:
        return mount.target not in ("/", "/dev") and mount.file_system == IN_MEMORY[mount.target]
    above = (mount.target, *directories_above(mount.target))
    return next((given[path] for path in above if path in given), Access.READ) is not Access.READ
