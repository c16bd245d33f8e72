"""``ironcurtain reload``."""

from __future__ import annotations

import click

from ironcurtain.cli.output import as_json, home, print_json, print_lines
from ironcurtain.errors import Unavailable


@click.command()
@as_json
def reload(json_output: bool) -> None:
    """
    Have the daemon read config.toml again, and look at policy.toml and mcp-servers.json.

    Sessions that start from now on go by them; those that run keep what they have. If one of the files is wrong,
    nothing changes, and the exit status is 78. Without a daemon there is nothing to do: every command reads the files.
    """
    from ironcurtain.cli.run import run
    from ironcurtain.control.client import ControlClient

    socket = home().daemon_socket
    if not socket.exists():
        raise Unavailable(f"no daemon runs in {home().path}: commands read the files themselves, each time")
    found = run(lambda reactor: ControlClient(reactor, str(socket)).reload())
    if json_output:
        print_json(found)
        return
    print_lines("The files are right. Sessions that start from now on go by them.")
    for name in found.changed:
        print_lines(f"  new: {name}{' (from the next start of the daemon on)' if name in found.restart else ''}")
