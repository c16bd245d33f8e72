"""
Why a server cannot start, as far as it can be known before.

The start itself, ``ironcurtain doctor`` and ``ironcurtain config check`` ask here, so that they agree.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

from ironcurtain.errors import ConfigurationError, Unavailable
from ironcurtain.mcp_proxy.launch import OWN_SERVERS, Ground, is_own, needed_download, program_of
from ironcurtain.mcp_proxy.needed_download import installer
from ironcurtain.mcp_proxy.servers_config import CommandServer, ServerConfig
from ironcurtain.sandbox import programs
from ironcurtain.sandbox.spec import Kind, Listener, Sandbox

_CONTAINERS = frozenset(("docker", "docker-compose", "podman", "podman-compose", "nerdctl"))
"""Programs that start containers, by name."""

_SHELLS = frozenset(("sh", "bash", "dash", "zsh"))
_BEFORE = frozenset(("exec", "env", "command", "sudo"))
"""Words that can precede a program's name in a simple command."""

_SHARES = "it seems to start a browser, which needs /dev/shm and /proc"
_LISTS = "it seems to look at processes, which are in /proc"
_WATCHES = "it seems to watch files, which needs inotify"
_NEEDS = {
    **dict.fromkeys(("browser", "chrome", "chromium", "electron", "firefox", "playwright", "puppeteer"), _SHARES),
    **dict.fromkeys(("selenium", "webdriver", "webkit"), _SHARES),
    **dict.fromkeys(("htop", "lsof", "pgrep", "process", "processes", "ps", "psutil", "top"), _LISTS),
    **dict.fromkeys(("chokidar", "nodemon", "reload", "watch", "watchexec"), _WATCHES),
}
"""What a program needs by a word of its command line. These are guesses, on which nothing depends but a hint."""

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")

_ANY = (Listener("127.0.0.1", 1),)
"""What a sandbox has that can connect to something."""


def obstacle(server: ServerConfig, ground: Ground) -> str | None:
    """
    :param ground: as for :func:`~ironcurtain.mcp_proxy.launch.prepare`.
    :returns: why a server cannot start, and what to do, in words for people; ``None`` if nothing is known.
    """
    if server.reading.problems:
        return "; ".join(server.reading.problems)
    if not isinstance(server, CommandServer):
        return _unusable(server.ca_file)
    if server.sandbox is not None and (program := container_program(server)) is not None:
        return (
            f'{program} needs its engine, which no sandbox reaches: write "sandbox": "none" for this server in '
            "mcp-servers.json (each of its calls is asked then), or run the server's own program instead of its "
            'container, or let the container serve HTTP and give its "url"'
        )
    try:
        if is_own(server) and server.args[:3] == OWN_SERVERS[1]:
            programs.kind_of(Sandbox(account=ground.account, listeners=_ANY, kind=ground.kind))  # for git
        download = needed_download(server, ground)
        fetching = download is not None and ground.downloads is not None and not download.is_installed(ground.downloads)
        if fetching or (server.sandbox is not None and server.sandbox.access):
            programs.kind_of(Sandbox(account=ground.account, listeners=_ANY, kind=ground.kind))
        if sockets := _sockets(server, ground.workspace):
            programs.kind_of(Sandbox(read=sockets, account=ground.account, kind=ground.kind))
        if download is not None:
            installer(download, server, ground.environ)
        elif "PATH" not in server.environment_commands:
            program_of(server, ground)
    except Unavailable as e:
        return str(e).removeprefix(f"MCP server {server.name}: ")
    return None


def doubt(server: ServerConfig, kind: Kind | None) -> str | None:
    """
    :param kind: what implements its sandbox.
    :returns: why a server that starts may fail later, in words for people; ``None`` if nothing is known.
    """
    if kind is not Kind.LANDLOCK or not isinstance(server, CommandServer) or server.sandbox is None or is_own(server):
        return None
    words = re.findall(r"[a-z]+", " ".join((os.path.basename(server.command), *server.args)).lower())
    if (need := next((_NEEDS[word] for word in words if word in _NEEDS), None)) is None:
        return None
    return f"{need}: sandboxes of Landlock do not have that. 'ironcurtain doctor' says why no stronger ones are made"


def _sockets(server: CommandServer, workspace: str) -> tuple[str, ...]:
    """:returns: the sockets outside the workspace that a server's sandbox names, such as that of an ssh-agent."""
    named = () if server.sandbox is None else (*server.sandbox.read, *server.sandbox.write)
    return tuple(path for path in named if Path(path).is_socket() and not Path(path).is_relative_to(workspace))


def _unusable(ca_file: str) -> str | None:
    """:returns: why no certificate of a file can be trusted; ``None`` if they can, or if there is no file."""
    if not ca_file:
        return None
    from ironcurtain.http.trust import ssl_context  # slow to import, and few servers need it

    try:
        ssl_context(ca_file)
    except ConfigurationError as e:
        return f"ca_file {ca_file} {e.detail}"
    return None


def container_program(server: CommandServer) -> str | None:
    """:returns: name of the program by which a server's command line starts a container; ``None`` if it does not."""
    words = [server.command, *server.args]
    if os.path.basename(words[0]) in _SHELLS and len(words) > 2 and re.fullmatch("-[a-z]*c", words[1]):
        try:
            words = shlex.split(words[2])
        except ValueError:
            return None
    while words and (os.path.basename(words[0]) in _BEFORE or _ASSIGNMENT.match(words[0])):
        words = words[1:]
    name = os.path.basename(words[0]) if words else ""
    return name if name in _CONTAINERS else None
