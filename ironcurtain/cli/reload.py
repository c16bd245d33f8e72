"""``ironcurtain reload``."""

from __future__ import annotations

import click

from ironcurtain.cli.output import as_json, home, print_json, print_lines
from ironcurtain.errors import Unavailable


@click.command()
@as_json
def reload(json_output: bool) -> None:
    """
    Make the daemon read config.toml again, and check policy.toml and mcp-servers.json.

    New sessions use the new settings; running ones keep theirs. If one of the files is wrong, nothing changes, and the
    exit status is 78. Without a daemon there is nothing to do, since every command reads the files.
    """
    from ironcurtain.control.blocking import BlockingClient, result

    socket = home().daemon_socket
    if not socket.exists():
        raise Unavailable(f"no daemon is running in {home().path}: commands read the files themselves")
    found = result(BlockingClient(str(socket)).reload())
    if json_output:
        print_json(found)
        return
    print_lines("The files are correct. New sessions use them.")
    for name in found.changed:
        print_lines(f"  new: {name}{' (after a restart of the daemon)' if name in found.restart else ''}")
