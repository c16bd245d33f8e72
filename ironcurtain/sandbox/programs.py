"""Choose what implements a sandbox, the strongest kind that works on this machine, and start programs in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from ironcurtain.errors import Unavailable
from ironcurtain.process import bounded
from ironcurtain.process.accounts import Account
from ironcurtain.process.bounded import Bounds, Finished
from ironcurtain.sandbox import bubblewrap, cgroups, container, promises
from ironcurtain.sandbox.bubblewrap import opened
from ironcurtain.sandbox.bubblewrap_options import HANDOVER_DESCRIPTOR
from ironcurtain.sandbox.handover import Handover
from ironcurtain.sandbox.landlock import implementation as landlock
from ironcurtain.sandbox.mount_points import check_mount_points
from ironcurtain.sandbox.spec import Kind, Sandbox

_PROBLEMS: Mapping[Kind, Callable[[Sandbox], str | None]] = {
    Kind.BUBBLEWRAP: lambda sandbox: bubblewrap.available(sandbox.account),
    Kind.CONTAINER: lambda sandbox: container.available() or container.inexpressible(sandbox),
    Kind.LANDLOCK: lambda sandbox: (
        landlock.unavailable(sandbox.account, sandbox.alone) or landlock.inexpressible(sandbox)
    ),
}


def problems(sandbox: Sandbox) -> Iterator[tuple[Kind, str | None]]:
    """
    Try the kinds of sandboxes, strongest first; only the one that the sandbox names, if it does.

    :returns: each kind with the reason why it cannot implement a sandbox here; ``None`` if it can.
    """
    for kind in Kind if sandbox.kind is None else (sandbox.kind,):
        yield kind, _PROBLEMS[kind](sandbox)


def kind_of(sandbox: Sandbox) -> Kind:
    """
    :returns: what implements a sandbox here.
    :raises Unavailable: nothing can.
    """
    reasons = []
    for kind, problem in problems(sandbox):
        if problem is None:
            check_mount_points(sandbox)
            return kind
        reasons.append(problem)
    if (other := other_kind(sandbox)) is not None:
        reasons.append(f"{promises.NAMES[other]} can: remove sandbox.kind from config.toml")
    raise Unavailable(f"no sandbox can be made for it: {'; '.join(filter(None, reasons))}")


def unavailable(account: Account | None = None, kind: Kind | None = None) -> str | None:
    """
    :param account: the account that programs will run as; ``None``: that of this process.
    :param kind: as in :class:`~ironcurtain.sandbox.spec.Sandbox`.
    :returns: ``None`` if sandboxes work, else the reason in words.
    """
    found = dict(problems(Sandbox(account=account, kind=kind)))
    return None if None in found.values() else "; ".join(filter(None, found.values()))


def other_kind(sandbox: Sandbox) -> Kind | None:
    """:returns: the strongest kind that works here for a sandbox whose own does not; ``None`` if it names none."""
    if sandbox.kind is None:
        return None
    return next((kind for kind, problem in problems(replace(sandbox, kind=None)) if problem is None), None)


def inputs(sandbox: Sandbox) -> dict[int, bytes]:
    """
    :returns: the data that the sandboxing program reads, by descriptor.
    :raises Unavailable: no sandbox can be made.
    """
    match kind_of(sandbox):
        case Kind.BUBBLEWRAP:
            return bubblewrap.inputs(sandbox)
        case Kind.CONTAINER:
            return container.inputs(sandbox, os.environ)
        case Kind.LANDLOCK:
            return landlock.inputs(sandbox)


def command(sandbox: Sandbox, argv: Sequence[str], descriptors: Mapping[int, int] = {}) -> list[str]:
    """
    :param descriptors: replacements for the descriptor numbers of :func:`inputs`.
    :returns: the command line that runs ``argv`` in a sandbox, its program as an absolute path.
    :raises Unavailable: no sandbox can be made.
    """
    match kind_of(sandbox):
        case Kind.BUBBLEWRAP:
            return cgroups.limited(bubblewrap.command(sandbox, argv, descriptors), sandbox.limits)
        case Kind.CONTAINER:
            return container.command(argv, descriptors)
        case Kind.LANDLOCK:
            return cgroups.limited(landlock.command(argv, descriptors), sandbox.limits)


def run(
    sandbox: Sandbox,
    argv: Sequence[str],
    environment: Mapping[str, str],
    bounds: Bounds,
    out: Path | None = None,
    handover: Handover | None = None,
    stdin: bytes | int = b"",
) -> Finished:
    """
    Run a program, and wait for its end.

    :param out: a file for its standard output.
    :param handover: the way on which the listening sockets of its network come, if it has one.
    :param stdin: what it reads, nothing secret, or a descriptor.
    :raises Unfinished: it took too long or printed too much.
    :raises Unavailable: no sandbox can be made.
    """
    with opened(inputs(sandbox)) as descriptors:
        further = {} if handover is None else {HANDOVER_DESCRIPTOR: handover.theirs.fileno()}
        inherited = {**descriptors, **further}
        line, given = command(sandbox, argv, inherited), tuple(inherited.values())
        try:
            return bounded.run(line, bounds, environment=environment, stdin=stdin, out=out, descriptors=given)
        finally:
            cgroups.settle()
