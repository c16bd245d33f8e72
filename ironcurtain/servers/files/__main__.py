"""
Run the file server: ``python -m ironcurtain.servers.files [--account=UID:GID] [--root] DIR [DIR...]``.

With ``--account``, for root only, it opens the directories as root and then becomes that account for good: so it works
below directories that are closed to the account, and with a program that is. It speaks on standard input and output
until input ends. Light on imports, as one is started for every session.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module

from ironcurtain.errors import IronCurtainError, UsageError
from ironcurtain.jsonrpc.framing import OUTBOUND_LIMIT, Framer
from ironcurtain.servers.files.server import FileServer
from ironcurtain.servers.files.tools import FileTools
from ironcurtain.servers.files.walk import Roots

USAGE = "usage: python -m ironcurtain.servers.files [--account=UID:GID] [--root] DIRECTORY [[--root] DIRECTORY ...]"
LATER = ("base64", "ironcurtain.servers.files.differences", "json", "urllib.parse")
"""What tools import when they are called; another account may not be able to read these modules any more."""

READ_SIZE = 256 * 1024


def main(arguments: Sequence[str]) -> int:
    """:returns: the exit status: 0 when input ended, or what the error says (sysexits.h)."""
    try:
        account, rest = account_of(arguments)
        roots = Roots(directories(rest))
        if account is not None:
            become(*account)
    except IronCurtainError as e:
        print(e, file=sys.stderr)
        return e.exit_status
    try:
        serve(FileServer(FileTools(roots), [root.path for root in roots.all]))
    except (BrokenPipeError, ConnectionResetError, KeyboardInterrupt):
        return 0
    finally:
        roots.close()
    return 0


def account_of(arguments: Sequence[str]) -> tuple[tuple[int, int] | None, Sequence[str]]:
    """
    :returns: the uid and gid that a command line begins with, if it does, and the rest of it.
    :raises UsageError: they are no two numbers.
    """
    if not arguments or not arguments[0].startswith("--account="):
        return None, arguments
    if (found := re.fullmatch(r"--account=([0-9]{1,10}):([0-9]{1,10})", arguments[0])) is None:
        raise UsageError(f"{arguments[0]} is no uid and gid\n{USAGE}")
    return (int(found[1]), int(found[2])), arguments[1:]


def become(uid: int, gid: int) -> None:
    """
    Change to another account for good, without any group but ``gid``.

    :raises UsageError: we are not root.
    """
    for module in LATER:
        import_module(module)
    try:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    except (OSError, OverflowError) as e:
        raise UsageError(f"cannot become {uid}:{gid}, which only root can: {e}") from None


def directories(arguments: Sequence[str]) -> list[str]:
    """
    The directories that a command line names.

    :raises UsageError: it names none, or holds another option.
    """
    found: list[str] = []
    for argument in arguments:
        value = argument.removeprefix("--root=")
        if value == argument and argument.startswith("-") and argument != "--root":
            raise UsageError(f"unknown option {argument}\n{USAGE}")
        if value != "--root":
            found.append(value)
    if not found or not all(found):
        raise UsageError(USAGE)
    return found


def serve(server: FileServer) -> None:
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
