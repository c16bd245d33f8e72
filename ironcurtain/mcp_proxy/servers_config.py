"""
Read ``mcp-servers.json``: the field's usual shape, with our additions. Pure.

.. code-block:: json

    {"mcpServers": {"files": {"command": "mcp-server-files", "args": ["$WORKSPACE"],
                              "sandbox": {"write": ["$WORKSPACE"]},
                              "env_command": {"API_TOKEN": "pass show api"}}}}
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from ironcurtain.errors import ConfigurationError
from ironcurtain.mcp_proxy.names import BACKEND_NAME
from ironcurtain.structured import check_version, convert, parse_json

FORMAT_VERSION = 1
"""The newest version of the file's format that we read; a file without one is of this version."""

AgentRequest = Literal["sampling", "elicitation"]
"""What a server may ask the agent itself, if its configuration says so."""

_VARIABLE = re.compile(r"\$(?:\{(WORKSPACE|HOME)\}|(WORKSPACE|HOME)(?![A-Za-z0-9_]))")


@dataclass(frozen=True, slots=True)
class SandboxConfig:
    """
    What a server in bubblewrap may reach.

    :param read: absolute host paths.
    :param write: absolute host paths.
    :param domains: hosts for which it needs the network; empty for no network at all. Bubblewrap gives the whole
        network or none: which of the hosts a call may name is up to the policy.
    """

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """
    One MCP server that runs as our child.

    :param environment: for it alone, besides the few variables that every server gets.
    :param environment_commands: variable name to a shell command that prints its value.
    :param cwd: where it starts; the workspace if ``None``.
    :param agent_requests: which of its requests are passed on to the agent; all others never reach it.
    """

    name: str
    command: str
    args: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    environment_commands: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    sandbox: SandboxConfig | None = None
    agent_requests: frozenset[AgentRequest] = frozenset()


class _Sandbox(msgspec.Struct, forbid_unknown_fields=True):
    read: list[str] = []
    write: list[str] = []
    network: Literal[False] | list[str] = False


class _Server(msgspec.Struct, forbid_unknown_fields=True):
    command: str | None = None
    args: list[str] = []
    env: dict[str, str] = {}
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str] = {}
    type: Literal["stdio", "http", "sse", "streamable-http"] | None = None
    disabled: bool = False
    sandbox: _Sandbox | None = None
    env_command: dict[str, str] = {}
    agent_requests: list[AgentRequest] = []


class _File(msgspec.Struct, rename="camel"):
    mcp_servers: dict[str, _Server]


def read_servers(text: bytes, source: str, *, workspace: str, home: str) -> tuple[ServerConfig, ...]:
    """
    :param text: the file's content.
    :param source: the file's name, for messages.
    :param workspace: real path of the session's workspace: what ``$WORKSPACE`` stands for.
    :param home: what ``$HOME`` stands for.
    :returns: the servers in the file's order, without those that are disabled.
    :raises ConfigurationError: naming the field that is wrong.
    """
    parsed = parse_json(source, text)
    check_version(source, parsed, FORMAT_VERSION)
    variables = {"WORKSPACE": workspace, "HOME": home}
    servers: dict[str, _Server] = convert(source, parsed, _File).mcp_servers
    return tuple(_server(name, server, source, variables) for name, server in servers.items() if not server.disabled)


def _server(name: str, server: _Server, source: str, variables: Mapping[str, str]) -> ServerConfig:
    place = f"mcpServers.{name}"
    if not BACKEND_NAME.match(name):
        raise ConfigurationError(
            source,
            "a server's name is 1 to 32 letters, digits, '-' and single '_', and starts with a letter or digit",
            field=place,
        )
    if server.url is not None or server.type not in (None, "stdio"):
        detail = "servers reached by HTTP are not supported in this version: run one as a command"
        raise ConfigurationError(source, detail, field=f"{place}.url")
    if not server.command:
        raise ConfigurationError(source, "needs a command", field=place)
    _check_environment({**server.env, **server.env_command}, source, place)

    def expand(text: str) -> str:
        return _VARIABLE.sub(lambda found: variables[found[1] or found[2]], text)

    return ServerConfig(
        name=name,
        command=server.command,
        args=tuple(map(expand, server.args)),
        environment=server.env,
        environment_commands=server.env_command,
        cwd=None if server.cwd is None else expand(server.cwd),
        sandbox=None if server.sandbox is None else _sandbox(server.sandbox, expand, source, place),
        agent_requests=frozenset(server.agent_requests),
    )


def _sandbox(sandbox: _Sandbox, expand: Callable[[str], str], source: str, place: str) -> SandboxConfig:
    read, write = tuple(map(expand, sandbox.read)), tuple(map(expand, sandbox.write))
    for path in (*read, *write):
        if not path.startswith("/"):
            raise ConfigurationError(source, f"{path!r} is not an absolute path", field=f"{place}.sandbox")
    return SandboxConfig(read, write, tuple(sandbox.network or ()))


def _check_environment(environment: Mapping[str, str], source: str, place: str) -> None:
    for name, value in environment.items():
        if not name or "=" in name or "\0" in name + value:
            raise ConfigurationError(source, f"{name!r} cannot be an environment variable", field=f"{place}.env")
