"""Run the small programs of a desktop, with bounds."""

from __future__ import annotations

from collections.abc import Sequence

from ironcurtain.process.bounded import Bounds, Unfinished, run
from ironcurtain.process.search_path import host_program
from ironcurtain.servers.desktop.model import DesktopError, Unsupported, shown

SECONDS = 10.0
"""How long a program may take, unless the caller says otherwise."""

LIMIT = 1024 * 1024
"""Most bytes that one may print, unless the caller says otherwise."""


def installed(name: str) -> str:
    """
    :returns: the path of a program.
    :raises Unsupported: it is not there, or where an agent may write.
    """
    if (found := host_program(name)) is None:
        raise Unsupported(f"the program {name} is not installed")
    return found


def output(argv: Sequence[str], *, stdin: bytes = b"", seconds: float = SECONDS, limit: int = LIMIT) -> bytes:
    """
    :returns: what a program prints.
    :raises DesktopError: it is missing, fails, takes too long or prints too much.
    """
    try:
        done = run([installed(argv[0]), *argv[1:]], Bounds(seconds, limit, whole=True), stdin=stdin)
    except (Unfinished, OSError) as e:
        raise DesktopError(f"{argv[0]}: {e}") from None
    if done.status != 0:
        said = next(iter(done.errors.decode(errors="replace").strip().splitlines()), "")
        raise DesktopError(f"{argv[0]} failed: {shown(said, 300) or f'status {done.status}'}")
    return done.output
