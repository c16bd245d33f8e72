"""Where other MCP clients keep their lists of servers, and what stands in them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ironcurtain.home.json_comments import plain_json
from ironcurtain.home.parsing import as_json, parse_json, parse_toml, parse_yaml
from ironcurtain.mcp_proxy.client_fields import NESTED, is_table_of_values
from ironcurtain.mcp_proxy.server_fields import RIGHTS
from ironcurtain.mcp_proxy.server_tables import SERVERS, Entry, ServerTable, read_table
from ironcurtain.secrets.redaction import Secret, may_be_secret

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


def table(text: str, source: str, directory: Path | None = None) -> ServerTable:
    """
    :param text: JSON, also with comments; TOML or YAML, if the file's name ends so.
    :param source: the file's name.
    :param directory: the project; ``None``: no server is for one only.
    :returns: the servers as the client writes them, first those for the project only; none if the file has no place for
        servers.
    :raises ConfigurationError: it is not valid.
    """
    if source.endswith((".yaml", ".yml")):
        parsed, written = parse_yaml(source, text), ""
    elif source.endswith(".toml"):
        parsed, written = parse_toml(source, text), text
    else:
        written = plain_json(source, text)
        parsed = parse_json(source, written)
    found = read_table(source, as_json(parsed), written) or ServerTable(SERVERS[0], ())
    own = () if directory is None else _of_project(parsed, directory)
    return replace(found, entries=(*own, *found.entries))


def _of_project(file: Any, directory: Path) -> Iterator[Entry]:
    """:returns: the servers that Claude Code has for a project only, which ``claude mcp add`` makes."""
    projects = file.get("projects") if isinstance(file, dict) else None
    if not isinstance(projects, dict):
        return
    root = next((above for above in (directory, *directory.parents) if (above / ".git").exists()), directory)
    for path in map(str, dict.fromkeys((directory, root))):
        project = projects.get(path)
        servers = project.get("mcpServers") if isinstance(project, dict) else None
        for name, value in servers.items() if isinstance(servers, dict) else ():
            yield Entry(name, value, ("projects", path, "mcpServers", name))


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
    for name in ("command", *NESTED):
        if isinstance(nested := entry.get(name), dict):  # its members count as those of the entry
            result[name], further = without_rights(nested)
            taken |= frozenset(further)
    return result, sorted(taken)


def with_references(entry: Mapping[str, Any], environ: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, Secret]]:
    """
    :param entry: a server as a client writes it.
    :returns: the entry, in which secrets that the environment has, too, are references to it; and the values that are
        still secrets, by the names of their variables and headers.
    """
    result, kept = dict(entry), dict[str, Secret]()
    for member, table in entry.items():
        if member in ("command", *NESTED) and isinstance(table, dict):
            result[member], further = with_references(table, environ)
            kept |= further
        elif is_table_of_values(member) and isinstance(table, dict):
            result[member] = {name: _reference(name, value, environ) for name, value in table.items()}
            kept |= _secrets(result[member])
    return result, kept


def _reference(name: str, value: Any, environ: Mapping[str, str]) -> Any:
    is_same = isinstance(value, str) and may_be_secret(name, value) and environ.get(name) == value
    return f"${{{name}}}" if is_same else value


def _secrets(table: Mapping[str, Any]) -> dict[str, Secret]:
    return {
        name: Secret(value)
        for name, value in table.items()
        if isinstance(value, str) and not _PLAIN_REFERENCE.search(value) and may_be_secret(name, value)
    }
