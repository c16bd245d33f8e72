"""
Run the server: ``python -m ironcurtain.servers.git_remote [--account=UID:GID] [--repository=DIRECTORY] WORKSPACE``.

With ``--account``, for root only, it switches to that account permanently, and has its credentials. ``--repository``
is the workspace's repository if that is elsewhere; any other is refused. It uses standard input and output until input
ends.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from ironcurtain.errors import IronCurtainError, UsageError
from ironcurtain.process.search_path import host_environment, keep_out
from ironcurtain.servers.git_remote.runner import Runner
from ironcurtain.servers.git_remote.table import DEFINITIONS
from ironcurtain.servers.git_remote.tools import GitRemoteTools
from ironcurtain.servers.server import ToolServer, account_of, become, serve

REPOSITORY = "--repository="
USAGE = f"usage: python -m ironcurtain.servers.git_remote [--account=UID:GID] [{REPOSITORY}DIRECTORY] WORKSPACE"
TOLD = (
    "Fetches, pulls, pushes and clones, for repositories in the workspace. Name the address itself, not a remote. "
    "For commits, branches and differences use another tool: this one has only what needs the network."
)


def main(arguments: Sequence[str]) -> int:
    """:returns: the exit status: 0 when input ended, or what the error says (sysexits.h)."""
    try:
        account, rest = account_of(arguments)
        repository = ""
        if rest and rest[0].startswith(REPOSITORY):
            repository, rest = rest[0].removeprefix(REPOSITORY), rest[1:]
        if len(rest) != 1 or rest[0].startswith("-") or not os.path.isdir(rest[0]):
            raise UsageError(USAGE)
        if account is not None:
            become(*account, later=())
    except IronCurtainError as e:
        print(e, file=sys.stderr)
        return e.exit_status
    workspace = os.path.realpath(rest[0])
    keep_out(workspace)
    tools = GitRemoteTools(Runner(workspace, host_environment(os.environ), repository))
    with suppress(BrokenPipeError, ConnectionResetError, KeyboardInterrupt):
        serve(ToolServer("ironcurtain-git-remote", TOLD, DEFINITIONS, tools.call))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
