"""What it takes to run a server as our child: its command line, its environment, its sandbox."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass

from ironcurtain import bubblewrap
from ironcurtain.errors import Unavailable
from ironcurtain.mcp_proxy.servers_config import SandboxConfig, ServerConfig

INHERITED = ("PATH", "HOME", "LANG", "TERM", "TZ", "USER", "TMPDIR")
"""The variables, besides ``LC_*``, that a server gets from us. Others may hold our keys."""

CAUTIOUS = {
    "PYTHONSAFEPATH": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_CONFIG_COUNT": "3",
    "GIT_CONFIG_KEY_0": "core.hooksPath",
    "GIT_CONFIG_VALUE_0": "/dev/null",
    "GIT_CONFIG_KEY_1": "core.fsmonitor",
    "GIT_CONFIG_VALUE_1": "false",
    "GIT_CONFIG_KEY_2": "protocol.ext.allow",
    "GIT_CONFIG_VALUE_2": "never",
}
"""
Servers start in the workspace, where agents write: Python must not find modules there (``python -m`` looks), and git
must not run what a repository's own settings name. A server's configured environment wins over these.
"""


@dataclass(frozen=True, slots=True)
class Launch:
    """
    :param argv: the command line; its first part is a path.
    :param uid: as whom it runs, and in which group; ``None`` for our own.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    cwd: str
    uid: int | None = None
    gid: int | None = None


def small_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """:returns: of our environment, the little that servers get."""
    return {name: value for name, value in environ.items() if name in INHERITED or name.startswith("LC_")}


def prepare(
    server: ServerConfig,
    environ: Mapping[str, str],
    secrets: Mapping[str, str],
    *,
    workspace: str,
    user: tuple[int, int] | None = None,
) -> Launch:
    """
    :param environ: our environment.
    :param secrets: the values that the server's ``env_command`` gave.
    :param workspace: where it starts, unless it is configured otherwise.
    :param user: uid and gid as whom it runs, if not ours.
    :raises Unavailable: its command, or what its sandbox needs, is not there.
    """
    environment = {**small_environment(environ), **CAUTIOUS, **server.environment, **secrets}
    cwd = server.cwd or workspace
    argv = [_program(server, environment, cwd), *server.args]
    if server.sandbox is not None:
        argv = _boxed(server.name, server.sandbox, argv, environment, cwd)
    if (setsid := shutil.which("setsid")) is None:
        raise Unavailable("the program setsid is missing (Debian: apt-get install util-linux)")
    uid, gid = user or (None, None)
    return Launch((setsid, *argv), environment, cwd, uid, gid)


def _program(server: ServerConfig, environment: Mapping[str, str], cwd: str) -> str:
    command = os.path.join(cwd, server.command) if "/" in server.command else server.command
    if (found := shutil.which(command, path=environment.get("PATH", os.defpath))) is None:
        raise Unavailable(f"MCP server {server.name}: there is no program {server.command!r} in its PATH")
    return found


def _boxed(name: str, config: SandboxConfig, argv: list[str], environment: Mapping[str, str], cwd: str) -> list[str]:
    if (problem := bubblewrap.available()) is not None:
        raise Unavailable(f"MCP server {name} is to run in a sandbox: {problem}")
    sandbox = bubblewrap.Sandbox(config.read, config.write, bool(config.domains), cwd)
    program, *rest = sandbox.command(argv)
    if (found := shutil.which(program, path=environment.get("PATH", os.defpath))) is None:
        raise Unavailable(f"MCP server {name}: {program} is not in its PATH")
    return [found, *rest]
