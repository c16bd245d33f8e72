"""``ironcurtain mcp-proxy``."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ironcurtain.cli.output import home, print_lines
from ironcurtain.cli.paths import UserPath
from ironcurtain.home.user_paths import absolute_path

if TYPE_CHECKING:
    from ironcurtain.session.events import EventLog


@click.command()
@click.option("--socket", type=UserPath(), help="Serve on this UNIX socket, for any number of clients.")
@click.option("--servers", type=UserPath(), help="The MCP servers (default: mcp-servers.json in the home).")
@click.option("--policy", type=UserPath(), help="The policy (default: policy.toml in the home).")
@click.option(
    "--workspace",
    type=UserPath(),
    help="The directory that agents see as /workspace (default: this one).",
)
@click.option("--session-dir", type=UserPath(), help="Directory for the audit log and the escalations.")
def mcp_proxy(
    socket: Path | None,
    servers: Path | None,
    policy: Path | None,
    workspace: Path | None,
    session_dir: Path | None,
) -> None:
    """
    Put MCP servers under policy, for any MCP client.

    Without --socket it uses standard input and output, so that a client can start it as its server:

    \b
      {"mcpServers": {"ironcurtain": {
          "command": "ironcurtain",
          "args": ["mcp-proxy", "--workspace", "/path/to/project"]}}}

    Standard error names servers that are down, with the reason. So do 'ironcurtain sessions' and 'ironcurtain doctor'
    in another terminal, and a log message that the client gets when it lists the tools.

    Answer escalations with 'ironcurtain approve N' in another terminal.
    """
    from ironcurtain.cli.run import run
    from ironcurtain.session.model import SessionRequest

    where = home()
    named = {"socket": socket, "servers": servers, "policy": policy}
    options = {name: str(absolute_path(path)) for name, path in named.items() if path is not None}
    directory = absolute_path(session_dir) if session_dir is not None else None
    request = SessionRequest("mcp-proxy", "", absolute_path(workspace or ""), options, directory)

    async def serve(reactor: Any) -> None:
        from ironcurtain.assembly import Application
        from ironcurtain.services.lifecycle import to_its_end

        application = Application.alone(reactor, where, os.environ)
        await application.start()
        try:
            session = await application.manager.create(request)
            _print_warnings(session.events)
            if socket is not None:
                print_lines(f"Session {session.number} serves MCP on {socket}. Ctrl-C ends it.", err=True)
            await session.ended()
        finally:
            await to_its_end(application.stop("the command ends"))

    run(serve)


def _print_warnings(log: EventLog) -> None:
    """Print messages for the user on standard error, from the beginning of the log on."""
    from ironcurtain.session.events import Notice
    from ironcurtain.session.server_events import ServerDown
    from ironcurtain.view.events import describe

    printed = 0

    def print_new() -> None:
        nonlocal printed
        for stamped in log.after(printed):
            printed = stamped.sequence
            if isinstance(stamped.event, Notice | ServerDown) and (words := describe(stamped.event)) is not None:
                with suppress(OSError):  # standard error was closed
                    print_lines(f"ironcurtain: {words.shown}", err=True)

    log.watch(print_new)
    print_new()
