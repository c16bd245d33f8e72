"""
Read ``mcp-servers.json``: the usual format of MCP clients, with additions.

.. code-block:: json

    {"mcpServers": {"lookup": {"command": "mcp-server-lookup", "args": ["$WORKSPACE"],
                               "sandbox": {"read": ["/srv/data"], "network": ["db.example.org:5432"]},
                               "env_command": {"API_TOKEN": "pass show api"}},
                    "tickets": {"url": "https://tickets.example.org/mcp",
                                "headers_command": {"Authorization": "pass show tickets"}}}}
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import msgspec

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.faults import wrong
from ironcurtain.home.json_comments import plain_json
from ironcurtain.home.lines import Place
from ironcurtain.home.parsing import parse_json
from ironcurtain.home.structured import check_version, convert, refuse_zeros
from ironcurtain.http.addresses import keeps_secrets, literal
from ironcurtain.mcp_proxy.client_fields import FieldError, translated
from ironcurtain.mcp_proxy.names import taken, usable_name
from ironcurtain.mcp_proxy.references import References
from ironcurtain.mcp_proxy.server_fields import RIGHTS, START_SECONDS, AgentRequest, SandboxFields, ServerFields
from ironcurtain.mcp_proxy.server_tables import SERVERS, Entry, ServerTable, read_table
from ironcurtain.mcp_proxy.windows_words import is_windows_path, split_words, without_cmd
from ironcurtain.network.access import Access, read_access
from ironcurtain.secrets.redaction import Secret

FORMAT_VERSION = 1
"""The newest readable version of the file's format; a file without a version has this one."""

URL = (
    "must look like https://host[:port]/path; without TLS only an address of this machine is reached, as in "
    "http://127.0.0.1:3000/mcp"
)
"""The error for an unusable ``url``."""

SSE = "sse is the transport of 2024, which is not supported: give the server's URL for streamable HTTP"
"""The problem of a server with the ``type`` of the former transport."""

TYPES = 'it is "stdio" for a command, and "http" for a url'
"""The possible values of ``type``."""

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

_COMMAND_FIELDS = ("command", "args", "env", "env_command", "cwd", "sandbox", "install_scripts")
_HTTP_FIELDS = ("url", "headers", "headers_command", "ca_file")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "fish")


class SandboxConfig(msgspec.Struct, frozen=True):
    """
    What a sandboxed server may access besides its program and the workspace.

    :param read: absolute host paths.
    :param write: absolute host paths.
    :param access: what it may connect to; its sandbox has no other way out.
    """

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    access: Access = msgspec.field(default_factory=Access)

    @property
    def domains(self) -> tuple[str, ...]:
        """The patterns of the hosts that its calls may name; empty: policy alone decides."""
        return () if self.access.anything else tuple(entry.text for entry in self.access.entries)


class Reading(msgspec.Struct, frozen=True):
    """
    What was noticed while a server's entry was read.

    :param problems: why it cannot start, in words for people.
    :param notes: what was passed over or interpreted, in words for people.
    :param variables: names of the variables of the environment that it gets.
    :param secrets: their values, if they can be secret.
    :param error: the fault of its entry, if that could not be read; also among the problems.
    """

    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    secrets: tuple[Secret, ...] = ()
    error: ConfigurationError | None = None


@dataclass(frozen=True, slots=True)
class CommandServer:
    """
    One MCP server that runs as a child process.

    :param environment: its own variables, besides the few that every server gets.
    :param environment_commands: variable name to a shell command that prints its value.
    :param cwd: its working directory, relative to the workspace; ``None``: the workspace, or elsewhere if it has
        secrets or a network.
    :param sandbox: ``None`` for a server that runs outside any sandbox, with all rights of its account.
    :param agent_requests: which of its requests are forwarded to the agent; others never reach the agent.
    :param start_seconds: time limit in seconds from its start until it is ready.
    :param call_seconds: time limit in seconds for an answer or a sign of progress; ``None``: the usual one.
    :param install_scripts: whether packages that are downloaded for it may run programs while they are installed.
    """

    name: str
    command: str
    args: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    environment_commands: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    sandbox: SandboxConfig | None = SandboxConfig()
    agent_requests: frozenset[AgentRequest] = frozenset()
    start_seconds: float = START_SECONDS
    call_seconds: float | None = None
    install_scripts: bool = False
    reading: Reading = Reading()


class HttpServer(msgspec.Struct, frozen=True):
    """
    One MCP server that is reached by HTTP (MCP 2025-11-25 and 2026-07-28, "Streamable HTTP").

    :param url: URL of its endpoint; a secret, since it can contain a key.
    :param headers: sent with each request.
    :param header_commands: header name to a shell command that prints its value.
    :param ca_file: PEM certificates to trust besides the system's; empty for none.
    :param agent_requests: which of its requests are forwarded to the agent; others never reach the agent.
    :param start_seconds: time limit in seconds from its start until it is ready.
    :param call_seconds: as for :class:`CommandServer`.
    """

    name: str
    url: Secret
    headers: Mapping[str, Secret] = msgspec.field(default_factory=dict)
    header_commands: Mapping[str, str] = msgspec.field(default_factory=dict)
    ca_file: str = ""
    agent_requests: frozenset[AgentRequest] = frozenset()
    start_seconds: float = START_SECONDS
    call_seconds: float | None = None
    reading: Reading = Reading()

    @property
    def host(self) -> str:
        """The part of the URL that may be shown: the host, and the port if given."""
        return urlsplit(self.url.reveal()).netloc


ServerConfig = CommandServer | HttpServer


def read_servers(
    text: str, source: str, *, workspace: str, home: str, environ: Mapping[str, str]
) -> tuple[ServerConfig, ...]:
    """
    :param text: the file's content, with comments.
    :param source: the file's name, for messages.
    :param workspace: real path of the session's workspace, the value of ``$WORKSPACE``.
    :param home: the value of ``$HOME``.
    :param environ: the environment to which the file refers.
    :returns: the servers in the file's order, without disabled ones. One whose entry is wrong cannot start, and says
        why.
    :raises ConfigurationError: there is no table of servers.
    """
    written = plain_json(source, text)
    parsed = parse_json(source, written)
    table = _table(source, parsed, written)
    if table.place == SERVERS[0]:
        check_version(source, parsed, FORMAT_VERSION, written)
    found = dict[str, ServerConfig]()
    for entry in table.entries:
        name = usable_name(entry.name)
        try:
            server = _server(source, entry, written, name, (environ, workspace, home))
            if server is not None and (why := taken(name, found)):
                raise wrong(source, why, written, entry.place)
        except ConfigurationError as e:
            while taken(name, found):
                name = f"{name[:28]}-{len(found)}"
            server = CommandServer(name, "", reading=Reading((str(e),), error=e))
        if server is not None:
            found[name] = server
    return tuple(found.values())


def _server(
    source: str, entry: Entry, written: str, name: str, context: tuple[Mapping[str, str], str, str]
) -> ServerConfig | None:
    """:returns: one server; ``None`` for a disabled one."""
    table: dict[str, Any] = convert(source, entry.value, dict[str, Any], written, entry.place)
    try:
        fields, ignored = translated(table, ServerFields.__struct_fields__)
    except FieldError as e:
        raise wrong(source, e.detail, written, (*entry.place, e.field)) from None
    refuse_zeros(source, fields, written, entry.place)
    server: ServerFields = convert(source, fields, ServerFields, written, entry.place)
    if server.disabled:
        return None
    references = References(*context, {*server.env, *server.env_command})
    notes = [f"ignored: {', '.join(names)} ({reason})" for reason, names in ignored.items()]
    if name != entry.name:
        notes.append(f"is called {name} here, since names are letters, digits, '-' and single '_'")
    return _Reader(name, server, source, written, entry.place, references, notes).server()


def _table(source: str, parsed: Any, written: str) -> ServerTable:
    """:raises ConfigurationError: there is none."""
    if (found := read_table(source, parsed, written)) is None:
        detail = 'is missing: the servers stand in {"mcpServers": {"NAME": {"command": ...}}}'
        raise wrong(source, detail, written, SERVERS[0])
    return found


def is_header_value(value: str) -> bool:
    """:returns: whether a text is valid as a header's value: visible ASCII, with spaces and tabs inside at most."""
    return bool(value) and value == value.strip() and value.isascii() and value.replace("\t", " ").isprintable()


def server_names(text: str, source: str) -> frozenset[str]:
    """
    :param text: the file's content, with comments.
    :returns: the names that the servers of the file have here, the disabled ones too.
    :raises ConfigurationError: the file has no table of servers.
    """
    written = plain_json(source, text)
    return frozenset(usable_name(each.name) for each in _table(source, parse_json(source, written), written).entries)


class _Reader(msgspec.Struct, frozen=True):
    """
    :param written: the file's content, to find the line of an error.
    :param place: the path of the server in the file.
    :param notes: gets what is passed over.
    """

    name: str
    entry: ServerFields
    source: str
    written: str
    place: Place
    references: References
    notes: list[str]

    def server(self) -> ServerConfig:
        entry = self.entry
        remote = entry.url is not None if entry.type is None else entry.type != "stdio"
        way = "reached by HTTP" if remote else "run as a command"
        needless = [member for member in (_COMMAND_FIELDS if remote else _HTTP_FIELDS) if getattr(entry, member)]
        for member in needless:
            if member in RIGHTS or (entry.type is None and member == "command"):
                raise self._wrong(f"has no meaning for a server that is {way}", member)
        if needless:
            self.notes.append(f"ignored: {', '.join(needless)} (the server is {way})")
        return self._http_server() if remote else self._command_server()

    def _command_server(self) -> CommandServer:
        entry = self.entry
        if not entry.command:
            raise self._wrong("needs a command, or a url")
        for member, values in (("env", entry.env), ("env_command", entry.env_command)):
            for name in values:
                if not name or "=" in name:
                    raise self._wrong("cannot be an environment variable", member, name)
        command, *args = self._command_line(entry.command, entry.args)
        environment = {name: self.references.value(value, f"env.{name}") for name, value in entry.env.items()}
        return CommandServer(
            name=self.name,
            command=command,
            args=tuple(args),
            environment=environment,
            environment_commands=entry.env_command,
            cwd=None if entry.cwd is None else self.references.word(entry.cwd, "cwd"),
            sandbox=self._sandbox(),
            agent_requests=frozenset(entry.agent_requests),
            start_seconds=entry.startup_timeout_sec,
            call_seconds=entry.timeout or None,
            install_scripts=entry.install_scripts,
            reading=self._reading(),
        )

    def _command_line(self, command: str, args: list[str]) -> list[str]:
        references = self.references
        command = references.word(command, "command")
        is_line = re.search(r"\s", command) is not None and not is_windows_path(command)
        if is_line and not os.path.exists(os.path.join(references.workspace, command)):
            try:
                command, *first = split_words(command) or [command]
            except ValueError as e:
                raise self._wrong(f"cannot be read as a command line: {e}", "command") from None
            self.notes.append(f"command: the program is {command}; what follows is taken for arguments")
            args = [*first, *args]
        written, (command, *args) = [command, *args], without_cmd([command, *args])
        if written != [command, *args]:
            self.notes.append(f"command: {written[0]} is of Windows; the program is {command}")
        self._look_for_paths_of_windows(command, args)
        if os.path.basename(command) in _SHELLS and any(re.fullmatch("-[a-z]*c", word) for word in args):
            return [command, *map(self.references.path, args)]  # the shell expands its variables
        return [command, *(self.references.word(word, f"args[{index}]") for index, word in enumerate(args))]

    def _look_for_paths_of_windows(self, command: str, args: list[str]) -> None:
        places = {
            "command": command,
            "cwd": self.entry.cwd or "",
            **{f"args[{i}]": word for i, word in enumerate(args)},
        }
        for place, word in places.items():
            # Where Linux runs programs of Windows, these take such paths.
            if is_windows_path(word) and (place == "command" or not command.casefold().endswith(".exe")):
                self.references.problems.append(f"{place}: {word} is a path of Windows: write the one that it has here")

    def _reading(self) -> Reading:
        found = self.references
        if self.entry.timeout:
            self.notes.append(f"timeout: calls may take {self.entry.timeout:g} seconds without a sign of progress")
        return Reading(tuple(found.problems), tuple(self.notes), tuple(found.used), tuple(found.secrets))

    def _http_server(self) -> HttpServer:
        entry = self.entry
        url = literal(self.references.value(entry.url or "", "url").strip())
        if entry.type == "sse" and not urlsplit(url).path.rstrip("/").endswith("/sse"):
            self.notes.append('type: "sse" is not supported; the URL is taken for one of streamable HTTP')
        elif entry.type not in (None, "http"):
            self.references.problems.append(SSE if entry.type == "sse" else f"there is no type {entry.type!r}: {TYPES}")
        headers = {name: self.references.value(value, f"headers.{name}") for name, value in entry.headers.items()}
        if not self.references.problems and not keeps_secrets(url):
            raise self._wrong(URL, "url")
        seen = set(RESERVED_HEADERS)
        for member, names in (("headers", entry.headers), ("headers_command", entry.headers_command)):
            for header in names:
                if not _HEADER_NAME.match(header) or header.lower() in seen:
                    raise self._wrong("cannot be set here, or not again", member, header)
                seen.add(header.lower())
        for header, value in headers.items():
            if not self.references.problems and not is_header_value(value):
                raise self._wrong("its value cannot be sent", "headers", header)
        return HttpServer(
            name=self.name,
            url=Secret(url, self.source),
            headers={header: Secret(value, self.source) for header, value in headers.items()},
            header_commands=entry.headers_command,
            ca_file=self.references.path(entry.ca_file),
            agent_requests=frozenset(entry.agent_requests),
            start_seconds=entry.startup_timeout_sec,
            call_seconds=entry.timeout or None,
            reading=self._reading(),
        )

    def _sandbox(self) -> SandboxConfig | None:
        sandbox = self.entry.sandbox or SandboxFields()
        if sandbox == "none":
            return None
        paths = {member: tuple(map(self.references.path, getattr(sandbox, member))) for member in ("read", "write")}
        for member, expanded in paths.items():
            for index, path in enumerate(expanded):
                if not path.startswith("/"):
                    raise self._wrong(f"{path!r} is not an absolute path", "sandbox", member, index)
        try:
            return SandboxConfig(paths["read"], paths["write"], read_access(sandbox.network))
        except ValueError as e:
            raise self._wrong(e.args[0], "sandbox", "network", *e.args[1:]) from None

    def _wrong(self, detail: str, *place: str | int) -> ConfigurationError:
        return wrong(self.source, detail, self.written, (*self.place, *place))
