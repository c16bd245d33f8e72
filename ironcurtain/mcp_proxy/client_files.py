"""Where other MCP clients keep their lists of servers, and what stands in them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ironcurtain.home.faults import wrong
from ironcurtain.home.json_comments import plain_json
from ironcurtain.home.lines import Place
from ironcurtain.home.parsing import parse_json, parse_toml
from ironcurtain.home.structured import convert
from ironcurtain.mcp_proxy.client_fields import SERVERS, FieldError, servers_place
from ironcurtain.secrets.redaction import may_be_secret

_OF_PROJECT: Mapping[str, str] = {
    "claude-code": ".mcp.json",
    "vscode": ".vscode/mcp.json",
    "cursor": ".cursor/mcp.json",
}
_AT_HOME: Mapping[str, str] = {
    "claude-code": ".claude.json",
    "cursor": ".cursor/mcp.json",
    "codex": ".codex/config.toml",
}
_SETTINGS: Mapping[str, tuple[str, ...]] = {
    "claude-desktop": ("Claude/claude_desktop_config.json",),
    "vscode": ("Code/User/mcp.json", "Code/User/settings.json"),
}
"""Below the directory where the system keeps settings of programs."""

CLIENTS = ("claude-desktop", "claude-code", "vscode", "cursor", "codex")
"""The clients whose files are found by their name."""

OURS = "ironcurtain"
"""The program that clients start as a server of theirs to use IronCurtain."""

RIGHTS = frozenset(
    ("sandbox", "install_scripts", "env_command", "headers_command", "ca_file", "agent_requests")
)  # fmt: skip
"""Fields of ours that give a server more than it gets without them, or run commands outside its sandbox."""

_PLAIN_REFERENCE = re.compile(r"\$\{(?:env:)?[A-Za-z_][A-Za-z0-9_]*\}")


def places(client: str, home: Path, directory: Path, environ: Mapping[str, str], mac: bool) -> list[Path]:
    """
    :param client: one of :data:`CLIENTS`.
    :param directory: the project, whose own files come first.
    :param mac: whether this is macOS.
    :returns: where the files of a client usually are.
    """
    known = environ.get("XDG_CONFIG_HOME", "")
    settings = home / "Library" / "Application Support" if mac else Path(known) if known else home / ".config"
    found = [directory / _OF_PROJECT[client]] if client in _OF_PROJECT else []
    found += [settings / name for name in _SETTINGS.get(client, ())]
    if client == "codex" and environ.get("CODEX_HOME"):
        return [Path(environ["CODEX_HOME"], "config.toml")]
    return [*found, home / _AT_HOME[client]] if client in _AT_HOME else found


def table(text: str, source: str) -> tuple[Place, dict[str, dict[str, Any]]]:
    """
    :param text: JSON, also with comments; or TOML, if the file's name ends so.
    :param source: the file's name.
    :returns: the path of the table of servers in a client's file, and the servers as the client writes them; none if it
        has no such table.
    :raises ConfigurationError: it is not valid.
    """
    written = text if source.endswith(".toml") else plain_json(source, text)
    parsed = parse_toml(source, written) if source.endswith(".toml") else parse_json(source, written)
    found: Any = convert(source, parsed, dict[str, Any], written)
    try:
        place = servers_place(found)
    except FieldError as e:
        raise wrong(source, e.detail, written, tuple(e.field.split("."))) from None
    if place is None:
        return SERVERS[0], {}
    for key in place:
        found = found[key]
    servers: dict[str, dict[str, Any]] = convert(source, found, dict[str, dict[str, Any]], written, place)
    return place, servers


def is_ours(entry: Mapping[str, Any]) -> bool:
    """Whether a client's server is IronCurtain itself."""
    command = entry.get("command")
    return isinstance(command, str) and os.path.basename(command) == OURS


def without_rights(entry: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """
    Take away what only the person can give a server, since whoever wrote a project's file of servers is not trusted.

    :param entry: a server as a file that is not ours has it.
    :returns: the entry without :data:`RIGHTS`, and the names of those that it had.
    """
    result, taken = {name: value for name, value in entry.items() if name not in RIGHTS}, RIGHTS & entry.keys()
    if isinstance(command := entry.get("command"), dict):  # its members count as those of the entry
        result["command"], further = without_rights(command)
        taken |= frozenset(further)
    return result, sorted(taken)


def with_references(entry: Mapping[str, Any], environ: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """
    :param entry: a server as a client writes it.
    :returns: the entry, in which secrets that the environment has, too, are references to it; and the names of the
        variables and headers whose values are still secrets.
    """
    result, kept = dict(entry), list[str]()
    for member, table in entry.items():
        if member.lower() not in ("env", "environment", "headers", "http_headers") or not isinstance(table, dict):
            continue
        result[member] = {name: _reference(name, value, environ) for name, value in table.items()}
        kept += _secrets(result[member])
    return result, kept


def _reference(name: str, value: Any, environ: Mapping[str, str]) -> Any:
    is_same = isinstance(value, str) and may_be_secret(name, value) and environ.get(name) == value
    return f"${{{name}}}" if is_same else value


def _secrets(table: Mapping[str, Any]) -> Iterator[str]:
    for name, value in table.items():
        if isinstance(value, str) and not _PLAIN_REFERENCE.search(value) and may_be_secret(name, value):
            yield name
