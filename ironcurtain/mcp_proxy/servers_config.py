"""
Read ``mcp-servers.json``: the field's usual shape, with our additions.

.. code-block:: json

    {"mcpServers": {"lookup": {"command": "mcp-server-lookup", "args": ["$WORKSPACE"],
                               "sandbox": {"read": ["/srv/data"], "network": ["api.example.org"]},
                               "env_command": {"API_TOKEN": "pass show api"}},
                    "tickets": {"url": "https://tickets.example.org/mcp",
                                "headers_command": {"Authorization": "pass show tickets"}}}}
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.settings import keeps_secrets
from ironcurtain.home.structured import check_version, convert, parse_json
from ironcurtain.mcp_proxy.names import BACKEND_NAME
from ironcurtain.secrets.redaction import Secret

FORMAT_VERSION = 1
"""The newest version of the file's format that we read; a file without one is of this version."""

AgentRequest = Literal["sampling", "elicitation"]
"""What a server may ask the agent itself, if its configuration says so."""

URL = (
    "must look like https://host[:port]/path; without TLS only an address of this machine is reached, as in "
    "http://127.0.0.1:3000/mcp"
)
"""What is said of a ``url`` that does not."""

RESERVED_HEADERS = frozenset(
    {
        "accept",
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "host",
        "last-event-id",
        "mcp-protocol-version",
        "mcp-session-id",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that the transport itself sets, in lower case."""

_COMMAND_FIELDS = ("command", "args", "env", "env_command", "cwd", "sandbox")
_HTTP_FIELDS = ("url", "headers", "headers_command", "ca_file")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_VARIABLE = re.compile(r"\$(?:\{(WORKSPACE|HOME)\}|(WORKSPACE|HOME)(?![A-Za-z0-9_]))")


@dataclass(frozen=True, slots=True)
class SandboxConfig:
    """
    What a sandboxed server may reach besides its own program and the workspace.

    :param read: absolute host paths.
    :param write: absolute host paths.
    :param domains: hosts for which it needs the network; empty for no network at all. The sandbox gives the whole
        network or none: which of the hosts a call may name is up to the policy.
    """

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CommandServer:
    """
    One MCP server that runs as our child.

    :param environment: for it alone, besides the few variables that every server gets.
    :param environment_commands: variable name to a shell command that prints its value.
    :param cwd: where it starts; the workspace if ``None``.
    :param sandbox: ``None`` for a server that runs outside any sandbox, with all that its account may do.
    :param agent_requests: which of its requests are passed on to the agent; all others never reach it.
    """

    name: str
    command: str
    args: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    environment_commands: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    sandbox: SandboxConfig | None = SandboxConfig()
    agent_requests: frozenset[AgentRequest] = frozenset()


@dataclass(frozen=True, slots=True)
class HttpServer:
    """
    One MCP server that is reached by HTTP (MCP 2025-11-25, "Streamable HTTP").

    :param url: of its endpoint; a secret, since some hold a key.
    :param headers: sent with each request to it.
    :param header_commands: header name to a shell command that prints its value.
    :param ca_file: certificates (PEM) to trust besides the system's; empty for none.
    :param agent_requests: which of its requests are passed on to the agent; all others never reach it.
    """

    name: str
    url: Secret
    headers: Mapping[str, Secret] = field(default_factory=dict)
    header_commands: Mapping[str, str] = field(default_factory=dict)
    ca_file: str = ""
    agent_requests: frozenset[AgentRequest] = frozenset()

    @property
    def host(self) -> str:
        """What of the address may be shown: host, and port if it is named."""
        return urlsplit(self.url.reveal()).netloc


ServerConfig = CommandServer | HttpServer


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
    sandbox: _Sandbox | Literal["none"] | None = None
    env_command: dict[str, str] = {}
    headers_command: dict[str, str] = {}
    ca_file: str = ""
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
    remote = server.url is not None if server.type is None else server.type != "stdio"
    for field_name in _COMMAND_FIELDS if remote else _HTTP_FIELDS:
        if getattr(server, field_name):
            way = "reached by HTTP" if remote else "run as a command"
            raise ConfigurationError(
                source, f"has no meaning for a server that is {way}", field=f"{place}.{field_name}"
            )

    def expand(text: str) -> str:
        return _VARIABLE.sub(lambda found: variables[found[1] or found[2]], text)

    return _http_server(name, server, source, expand) if remote else _command_server(name, server, source, expand)


def _command_server(name: str, server: _Server, source: str, expand: Callable[[str], str]) -> CommandServer:
    place = f"mcpServers.{name}"
    if not server.command:
        raise ConfigurationError(source, "needs a command, or a url", field=place)
    _check_environment({**server.env, **server.env_command}, source, place)
    return CommandServer(
        name=name,
        command=server.command,
        args=tuple(map(expand, server.args)),
        environment=server.env,
        environment_commands=server.env_command,
        cwd=None if server.cwd is None else expand(server.cwd),
        sandbox=_sandbox(server.sandbox or _Sandbox(), expand, source, place),
        agent_requests=frozenset(server.agent_requests),
    )


def _http_server(name: str, server: _Server, source: str, expand: Callable[[str], str]) -> HttpServer:
    place = f"mcpServers.{name}"
    if server.type == "sse":
        detail = "is the transport of 2024, which is not spoken here: name the server's address for streamable HTTP"
        raise ConfigurationError(source, detail, field=f"{place}.type")
    if not keeps_secrets(server.url or ""):
        raise ConfigurationError(source, URL, field=f"{place}.url")
    seen = set(RESERVED_HEADERS)
    for member, names in (("headers", server.headers), ("headers_command", server.headers_command)):
        for header in names:
            if not _HEADER_NAME.match(header) or header.lower() in seen:
                raise ConfigurationError(
                    source, f"{header!r} cannot be set here, or not again", field=f"{place}.{member}"
                )
            seen.add(header.lower())
    for header, value in server.headers.items():
        if not is_header_value(value):
            raise ConfigurationError(source, f"what stands for {header} cannot be sent", field=f"{place}.headers")
    return HttpServer(
        name=name,
        url=Secret(server.url or "", source),
        headers={header: Secret(value, source) for header, value in server.headers.items()},
        header_commands=server.headers_command,
        ca_file=expand(server.ca_file),
        agent_requests=frozenset(server.agent_requests),
    )


def is_header_value(value: str) -> bool:
    """:returns: whether a text can be sent as a header's value: visible ASCII, with spaces and tabs inside at most."""
    return bool(value) and value == value.strip() and value.isascii() and value.replace("\t", " ").isprintable()


def _sandbox(
    sandbox: _Sandbox | Literal["none"], expand: Callable[[str], str], source: str, place: str
) -> SandboxConfig | None:
    if sandbox == "none":
        return None
    read, write = tuple(map(expand, sandbox.read)), tuple(map(expand, sandbox.write))
    for path in (*read, *write):
        if not path.startswith("/"):
            raise ConfigurationError(source, f"{path!r} is not an absolute path", field=f"{place}.sandbox")
    return SandboxConfig(read, write, tuple(sandbox.network or ()))


def _check_environment(environment: Mapping[str, str], source: str, place: str) -> None:
    for name, value in environment.items():
        if not name or "=" in name or "\0" in name + value:
            raise ConfigurationError(source, f"{name!r} cannot be an environment variable", field=f"{place}.env")
