"""
Run the file server: ``python -m ironcurtain.servers.files [--account=UID:GID] [--hide=PATH] [--root] DIR [DIR...]``.

With ``--account``, for root only, it opens the directories as root and then becomes that account for good: so it works
below directories that are closed to the account, and with a program that is. It speaks on standard input and output
until input ends. Light on imports, as one is started for every session.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ironcurtain.errors import IronCurtainError, UsageError
from ironcurtain.servers.files.table import DEFINITIONS
from ironcurtain.servers.files.tools import FileTools
from ironcurtain.servers.files.walk import Roots
from ironcurtain.servers.server import ToolServer, account_of, become, serve

USAGE = "usage: python -m ironcurtain.servers.files [--account=UID:GID] [--root] DIRECTORY [[--root] DIRECTORY ...]"
HIDE = "--hide="
"""Prefix of an option that hides a path from all calls."""

LATER = ("base64", "ironcurtain.text.differences", "json", "urllib.parse")
"""Modules that tools import lazily; another account may be unable to read them later."""


def main(arguments: Sequence[str]) -> int:
    """:returns: the exit status: 0 when input ended, or what the error says (sysexits.h)."""
    try:
        account, rest = account_of(arguments)
        hidden = [word.removeprefix(HIDE) for word in rest if word.startswith(HIDE)]
        roots = Roots(directories([word for word in rest if not word.startswith(HIDE)]), hidden)
        for line in roots.missing:
            print(f"not available: {line}", file=sys.stderr)
        if account is not None:
            become(*account, LATER)
    except IronCurtainError as e:
        print(e, file=sys.stderr)
        return e.exit_status
    try:
        below = ", ".join(root.path for root in roots.all)
        instructions = f"Works with files below {below}. Links are not followed."
        serve(ToolServer("ironcurtain-files", instructions, DEFINITIONS, FileTools(roots).call))
    except (BrokenPipeError, ConnectionResetError, KeyboardInterrupt):
        return 0
    finally:
        roots.close()
    return 0


def directories(arguments: Sequence[str]) -> list[str]:
    """
    The directories on a command line.

    :raises UsageError: there is none, or there is an unknown option.
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
