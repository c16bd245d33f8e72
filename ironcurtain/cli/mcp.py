"""``ironcurtain mcp``."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from ironcurtain.cli.mcp_servers import add, annotate, list_, remove, test
from ironcurtain.cli.output import home, print_lines, settings
from ironcurtain.cli.paths import use_host_programs
from ironcurtain.home.user_paths import current_directory

if TYPE_CHECKING:
    from ironcurtain.mcp_proxy.logins import LoginFile
    from ironcurtain.mcp_proxy.servers_config import HttpServer


@click.group()
def mcp() -> None:
    """
    Add, list, test and remove MCP servers, and log in at those that are reached by HTTP.

    A server that wants OAuth is down, with the reason "needs a login", until you run: ironcurtain mcp login NAME
    """


for command in (add, list_, test, annotate, remove):
    mcp.add_command(command)


@mcp.command()
@click.argument("name")
def login(name: str) -> None:
    """
    Log in at the server NAME of mcp-servers.json, with OAuth.

    The command prints an address. Open it in a browser and agree within five minutes. If the browser is on another
    machine, its last page cannot be loaded: paste that page's address here. Running sessions connect by themselves.
    """
    from ironcurtain.cli.run import run
    from ironcurtain.mcp_proxy.logins import LoginFiles

    where = home()
    server, file = _server(name), LoginFiles(where.oauth).of(name)

    async def main(reactor: Any) -> None:
        await _log_in(reactor, server, file)

    run(main)
    print_lines(f"Logged in at {name}.")


@mcp.command()
@click.argument("name")
def logout(name: str) -> None:
    """
    Remove the tokens of the server NAME from this machine.

    The authorization server is not told.
    """
    from ironcurtain.mcp_proxy.logins import LoginFiles

    removed = LoginFiles(home().oauth).of(name).remove()
    print_lines(f"Logged out of {name}." if removed else f"There is no login at {name}.")


def _server(name: str) -> HttpServer:
    from ironcurtain.errors import ConfigurationError, NotFound, UsageError
    from ironcurtain.home.user_paths import person_home
    from ironcurtain.mcp_proxy.servers_config import HttpServer
    from ironcurtain.session.tool_files import ToolFiles

    where = home()
    user_home = person_home(os.environ, os.geteuid())
    servers = ToolFiles.chosen(where, {}).load_servers(str(current_directory()), user_home, os.environ)
    found = next((server for server in servers if server.name == name), None)
    if found is None:
        raise NotFound(f"there is no MCP server {name!r} in {where.mcp_servers}")
    if not isinstance(found, HttpServer):
        raise UsageError(f"MCP server {name} runs as a command: only servers with a url have a login")
    if found.reading.problems:
        raise ConfigurationError(str(where.mcp_servers), found.reading.problems[0], field=name)
    if any(header.lower() == "authorization" for header in (*found.headers, *found.header_commands)):
        raise UsageError(f"MCP server {name} has a configured Authorization header: it needs no login")
    return found


async def _log_in(reactor: Any, server: HttpServer, file: LoginFile) -> None:
    from twisted.internet.stdio import StandardIO
    from twisted.protocols.basic import LineOnlyReceiver

    from ironcurtain.http.trust import ssl_context
    from ironcurtain.http.upstream_proxies import UpstreamProxies
    from ironcurtain.mcp_proxy.oauth import log_in
    from ironcurtain.mcp_proxy.redirects import RedirectListener
    from ironcurtain.services.asyncio_bridge import from_asyncio, to_asyncio

    listener = RedirectListener(reactor)

    class Pasted(LineOnlyReceiver):
        delimiter = b"\n"

        def lineReceived(self, line: bytes) -> None:
            if line.strip():
                listener.enter(line.decode("utf-8", "replace"))

    def show(url: str) -> None:
        click.echo(f"Open this address in a browser:\n\n{url}\n")
        print_lines("If the browser is on another machine, paste the address of its last page here.")
        if sys.stdout.isatty() and (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
            import webbrowser

            use_host_programs()
            webbrowser.open(url)

    StandardIO(Pasted(), reactor=reactor)
    try:
        context = ssl_context(server.ca_file)
        proxies = UpstreamProxies(reactor, settings(home()).settings.network, os.environ)
        await from_asyncio(
            log_in(server, file, context, proxies, reactor, listener.uri, show, lambda: to_asyncio(listener.received))
        )
    finally:
        await listener.stop()
