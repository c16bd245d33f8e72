"""
Read ``mcp-servers.json``: the usual format of MCP clients, with additions.

.. code-block:: json

    {"mcpServers": {"lookup": {"command": "mcp-server-lookup", "args": ["$WORKSPACE"],
                               "sandbox": {"read": ["/srv/data"], "network": ["api.example.org"]},
                               "env_command": {"API_TOKEN": "pass show api"}},
                    "tickets": {"url": "https://tickets.example.org/mcp",
                                "headers_command": {"Authorization": "pass show tickets"}}}}
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal
from urllib.parse import urlsplit

import msgspec

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.faults import wrong
from ironcurtain.home.parsing import parse_json
from ironcurtain.home.structured import check_version, convert
from ironcurtain.http.addresses import keeps_secrets
from ironcurtain.secrets.redaction import Secret

SEPARATOR = "__"

NAME_LIMIT = 46
"""
Maximum length in characters of a public name: model APIs allow 64, of which agents use 18 for their own prefix
(``mcp__ironcurtain__``).
"""

DIGEST_LENGTH = 8
"""Number of hexadecimal characters that distinguish shortened names: 32 bits, for a few thousand names."""

BACKEND_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9-]|_(?=[a-zA-Z0-9-])){0,31}\Z")
"""Names of backends: no two adjacent underscores and none at the end, so that the separator is unambiguous."""

_ALLOWED = re.compile(rf"[a-zA-Z0-9_-]{{1,{NAME_LIMIT}}}\Z")
_ODD = re.compile(r"[^a-zA-Z0-9_-]")
_LOOKS_SHORTENED = re.compile(rf"_[0-9a-f]{{{DIGEST_LENGTH}}}\Z")


def public_name(backend: str, name: str) -> str:
    """
    :param backend: the backend's name.
    :param name: the backend's name of its tool or prompt.
    :returns: the public name. If the plain name is too long, ambiguous, or has characters that agents do not accept, it
        is cut and ends in a digest of both names.
    """
    plain = f"{backend}{SEPARATOR}{name}"
    if _ALLOWED.match(plain) and BACKEND_NAME.match(backend) and not _LOOKS_SHORTENED.search(plain):
        return plain
    digest = hashlib.sha256(f"{backend}\0{name}".encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_LENGTH]
    return f"{_ODD.sub('_', plain)[: NAME_LIMIT - DIGEST_LENGTH - 1]}_{digest}"


START_SECONDS = 60.0
"""Default time limit in seconds from a server's start until it is ready (some download themselves first)."""

FORMAT_VERSION = 1
"""The newest readable version of the file's format; a file without a version has this one."""

AgentRequest = Literal["sampling", "elicitation"]
"""Requests to the agent that a server's configuration can permit."""

URL = (
    "must look like https://host[:port]/path; without TLS only an address of this machine is reached, as in "
    "http://127.0.0.1:3000/mcp"
)
"""The error for an unusable ``url``."""

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
"""Headers that the transport sets, in lower case."""

_COMMAND_FIELDS = ("command", "args", "env", "env_command", "cwd", "sandbox")
_HTTP_FIELDS = ("url", "headers", "headers_command", "ca_file")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_VARIABLE = re.compile(r"\$(?:\{(WORKSPACE|HOME)\}|(WORKSPACE|HOME)(?![A-Za-z0-9_]))")


@dataclass(frozen=True, slots=True)
class SandboxConfig:
    """
    What a sandboxed server may access besides its program and the workspace.

    :param read: absolute host paths.
    :param write: absolute host paths.
    :param domains: hosts that it needs; empty for no network. The sandbox gives the complete network or none; the
        policy decides which hosts a call may name.
    """

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CommandServer:
    """
    One MCP server that runs as a child process.

    :param environment: its own variables, besides the few that every server gets.
    :param environment_commands: variable name to a shell command that prints its value.
    :param cwd: its working directory; ``None``: the workspace.
    :param sandbox: ``None`` for a server that runs outside any sandbox, with all rights of its account.
    :param agent_requests: which of its requests are forwarded to the agent; others never reach the agent.
    :param start_seconds: time limit in seconds from its start until it is ready.
    """

    name: str
    command: str
    args: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    environment_commands: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    sandbox: SandboxConfig | None = SandboxConfig()
    agent_requests: frozenset[AgentRequest] = frozenset()
    start_seconds: float = START_SECONDS


@dataclass(frozen=True, slots=True)
class HttpServer:
    """
    One MCP server that is reached by HTTP (MCP 2025-11-25 and 2026-07-28, "Streamable HTTP").

    :param url: URL of its endpoint; a secret, since it can contain a key.
    :param headers: sent with each request.
    :param header_commands: header name to a shell command that prints its value.
    :param ca_file: PEM certificates to trust besides the system's; empty for none.
    :param agent_requests: which of its requests are forwarded to the agent; others never reach the agent.
    :param start_seconds: time limit in seconds from its start until it is ready.
    """

    name: str
    url: Secret
    headers: Mapping[str, Secret] = field(default_factory=dict)
    header_commands: Mapping[str, str] = field(default_factory=dict)
    ca_file: str = ""
    agent_requests: frozenset[AgentRequest] = frozenset()
    start_seconds: float = START_SECONDS

    @property
    def host(self) -> str:
        """The part of the URL that may be shown: the host, and the port if given."""
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
    startup_timeout_sec: Annotated[float, msgspec.Meta(gt=0, le=86_400)] = START_SECONDS


class _File(msgspec.Struct, rename="camel"):
    mcp_servers: dict[str, _Server]


def read_servers(text: bytes, source: str, *, workspace: str, home: str) -> tuple[ServerConfig, ...]:
    """
    :param text: the file's content.
    :param source: the file's name, for messages.
    :param workspace: real path of the session's workspace, the value of ``$WORKSPACE``.
    :param home: the value of ``$HOME``.
    :returns: the servers in the file's order, without disabled ones.
    :raises ConfigurationError: a field is wrong; the message names it.
    """
    parsed = parse_json(source, text)
    written = text.decode()  # as JSON is
    check_version(source, parsed, FORMAT_VERSION, written)
    variables = {"WORKSPACE": workspace, "HOME": home}
    servers: dict[str, _Server] = convert(source, parsed, _File, written).mcp_servers
    return tuple(
        _Reader(name, server, source, written, variables).server()
        for name, server in servers.items()
        if not server.disabled
    )


def is_header_value(value: str) -> bool:
    """:returns: whether a text is valid as a header's value: visible ASCII, with spaces and tabs inside at most."""
    return bool(value) and value == value.strip() and value.isascii() and value.replace("\t", " ").isprintable()


@dataclass(frozen=True, slots=True)
class _Reader:
    """:param written: the file's content, to find the line of an error."""

    name: str
    entry: _Server
    source: str
    written: str
    variables: Mapping[str, str]

    def server(self) -> ServerConfig:
        if not BACKEND_NAME.match(self.name):
            raise self._wrong(
                "a server's name is 1 to 32 letters, digits, '-' and single '_', and starts with a letter or digit"
            )
        remote = self.entry.url is not None if self.entry.type is None else self.entry.type != "stdio"
        for member in _COMMAND_FIELDS if remote else _HTTP_FIELDS:
            if getattr(self.entry, member):
                way = "reached by HTTP" if remote else "run as a command"
                raise self._wrong(f"has no meaning for a server that is {way}", member)
        return self._http_server() if remote else self._command_server()

    def _command_server(self) -> CommandServer:
        entry = self.entry
        if not entry.command:
            raise self._wrong("needs a command, or a url")
        for member, values in (("env", entry.env), ("env_command", entry.env_command)):
            for name, value in values.items():
                if not name or "=" in name or "\0" in name + value:
                    raise self._wrong("cannot be an environment variable", member, name)
        return CommandServer(
            name=self.name,
            command=entry.command,
            args=tuple(map(self._expand, entry.args)),
            environment=entry.env,
            environment_commands=entry.env_command,
            cwd=None if entry.cwd is None else self._expand(entry.cwd),
            sandbox=self._sandbox(),
            agent_requests=frozenset(entry.agent_requests),
            start_seconds=entry.startup_timeout_sec,
        )

    def _http_server(self) -> HttpServer:
        entry = self.entry
        if entry.type == "sse":
            detail = "is the transport of 2024, which is not supported: give the server's URL for streamable HTTP"
            raise self._wrong(detail, "type")
        if not keeps_secrets(entry.url or ""):
            raise self._wrong(URL, "url")
        seen = set(RESERVED_HEADERS)
        for member, names in (("headers", entry.headers), ("headers_command", entry.headers_command)):
            for header in names:
                if not _HEADER_NAME.match(header) or header.lower() in seen:
                    raise self._wrong("cannot be set here, or not again", member, header)
                seen.add(header.lower())
        for header, value in entry.headers.items():
            if not is_header_value(value):
                raise self._wrong("its value cannot be sent", "headers", header)
        return HttpServer(
            name=self.name,
            url=Secret(entry.url or "", self.source),
            headers={header: Secret(value, self.source) for header, value in entry.headers.items()},
            header_commands=entry.headers_command,
            ca_file=self._expand(entry.ca_file),
            agent_requests=frozenset(entry.agent_requests),
            start_seconds=entry.startup_timeout_sec,
        )

    def _sandbox(self) -> SandboxConfig | None:
        sandbox = self.entry.sandbox or _Sandbox()
        if sandbox == "none":
            return None
        paths = {member: tuple(map(self._expand, getattr(sandbox, member))) for member in ("read", "write")}
        for member, expanded in paths.items():
            for index, path in enumerate(expanded):
                if not path.startswith("/"):
                    raise self._wrong(f"{path!r} is not an absolute path", "sandbox", member, index)
        return SandboxConfig(paths["read"], paths["write"], tuple(sandbox.network or ()))

    def _expand(self, text: str) -> str:
        return _VARIABLE.sub(lambda found: self.variables[found[1] or found[2]], text)

    def _wrong(self, detail: str, *place: str | int) -> ConfigurationError:
        return wrong(self.source, detail, self.written, ("mcpServers", self.name, *place))
