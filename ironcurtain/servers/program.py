"""What the programs of our MCP servers have in common: whom they become, and how they are served."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from importlib import import_module

from ironcurtain.errors import UsageError
from ironcurtain.jsonrpc.framing import OUTBOUND_LIMIT, Framer
from ironcurtain.servers.server import ToolServer

READ_SIZE = 256 * 1024


def account_of(arguments: Sequence[str]) -> tuple[tuple[int, int] | None, Sequence[str]]:
    """
    :returns: the uid and gid that a command line begins with, if it does, and the rest of it.
    :raises UsageError: they are no two numbers.
    """
    if not arguments or not arguments[0].startswith("--account="):
        return None, arguments
    if (found := re.fullmatch(r"--account=([0-9]{1,10}):([0-9]{1,10})", arguments[0])) is None:
        raise UsageError(f"{arguments[0]} is no uid and gid")
    return (int(found[1]), int(found[2])), arguments[1:]


def become(uid: int, gid: int, later: Iterable[str]) -> None:
    """
    Change to another account for good, without any group but ``gid``.

    :param later: modules that are imported before, as the account may not be able to read them.
    :raises UsageError: we are not root.
    """
    for module in later:
        import_module(module)
    try:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    except (OSError, OverflowError) as e:
        raise UsageError(f"cannot become {uid}:{gid}, which only root can: {e}") from None


def serve(server: ToolServer) -> None:
    """Answer on descriptor 1 what comes on descriptor 0, until it ends."""
    for descriptor in (0, 1):
        os.set_blocking(descriptor, True)
    framer = Framer(OUTBOUND_LIMIT)
    while data := os.read(0, READ_SIZE):
        for line in framer.feed(data):
            if (answer := server.handle(line)) is not None:
                _write(answer)


def _write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]
