"""``ironcurtain gc``."""

from __future__ import annotations

import os
from typing import Any

import click

from ironcurtain.cli.output import as_json, home, print_json, print_lines


@click.command()
@click.option("--dry-run", is_flag=True, help="Only print what would be removed.")
@as_json
def gc(dry_run: bool, json_output: bool) -> None:
    """
    Remove containers and sockets that dead processes left behind.

    The daemon and each session do this when they start. Only containers of this home are removed, and only if their
    owner has died: a container's labels name that process, with its start time. Networks and volumes of sidecars go
    with them. Directories of sockets are removed even
    if no Docker Engine answers. Sandboxes and all other files are kept.
    """
    from ironcurtain.cli.run import run
    from ironcurtain.container.engine import Engine
    from ironcurtain.container_agent.leftovers import clear_sockets, leftovers, sweep

    where = home()

    async def collect(reactor: Any) -> Any:
        engine = Engine.find(reactor, os.environ)
        return await (leftovers if dry_run else sweep)(engine, where.path)

    try:
        found = run(collect)
    finally:
        without_owner = [] if dry_run else clear_sockets(where)
        if not json_output:
            for session in without_owner:
                print_lines(f"Removed the sockets of session {session}: it does not run.")
    if json_output:
        print_json(found)
        return
    for leftover in found:
        did = "Would remove" if dry_run else "Removed"
        what = leftover.name if leftover.kind == "container" else f"{leftover.kind} {leftover.name}"
        print_lines(f"{did} {what} (session {leftover.session}): its owner, process {leftover.pid}, is gone.")
    if not (found or without_owner):
        print_lines("Nothing is left behind.")
