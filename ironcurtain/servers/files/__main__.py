"""
Run the file server: ``python -m ironcurtain.servers.files [--root] DIR [DIR...]``.

Speaks on standard input and output until input ends. Light on imports, as one is started for every session.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from ironcurtain.errors import IronCurtainError, UsageError
from ironcurtain.jsonrpc.framing import OUTBOUND_LIMIT, Framer
from ironcurtain.servers.files.server import FileServer
from ironcurtain.servers.files.tools import FileTools
from ironcurtain.servers.files.walk import Roots

USAGE = "usage: python -m ironcurtain.servers.files [--root] DIRECTORY [[--root] DIRECTORY ...]"
READ_SIZE = 256 * 1024


def main(arguments: Sequence[str]) -> int:
    """:returns: the exit status: 0 when input ended, or what the error says (sysexits.h)."""
    try:
        roots = Roots(directories(arguments))
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
