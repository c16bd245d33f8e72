"""Where MCP clients keep their servers in a file, and what stands there: a table, a list, or the file itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ironcurtain.home.faults import wrong
from ironcurtain.home.lines import Place
from ironcurtain.home.structured import convert

SERVERS = (
    ("mcpServers",),
    ("servers",),
    ("mcp", "servers"),
    ("mcp", "mcpServers"),
    ("context_servers",),
    ("mcp_servers",),
    ("mcp.servers",),
    ("amp.mcpServers",),
    ("experimental", "modelContextProtocolServers"),
    ("mcp",),
    ("extensions",),
)
"""The first is ours, the next VS Code's; the last but one OpenCode's, the last Goose's."""

_SHARED = (("mcp",), ("extensions",))
"""Places that hold other things in the files of other programs."""

_STARTS = ("command", "cmd", "url", "uri", "httpUrl", "serverUrl", "transport")
"""Fields that say how a server is started or reached."""

_TYPES = ("stdio", "local", "http", "streamable-http", "streamableHttp", "streamable_http", "remote", "sse", None)
"""Values of ``type`` by which a table in no known place is taken for a server."""

_OF_CLIENTS = ("builtin", "platform", "frontend", "inline_python")
"""Values of ``type`` of what Goose has within itself."""

_BESIDE = frozenset(("version", "inputs"))
"""Members that can stand beside servers that have no table of their own."""

_COMMENTS = frozenset(("comment", "comments", "note", "notes", "description", "version"))
_MARKS = ("_", "#", "//", "$")
"""How members begin that are there for readers."""

_OFF = ("#", "//", "_disabled")
"""How the name of a server begins that is commented out."""


class Entry(msgspec.Struct, frozen=True):
    """
    One server as it is written.

    :param value: a table of fields, if nothing is wrong.
    :param place: the path of the entry in the file.
    """

    name: str
    value: Any
    place: Place


class ServerTable(msgspec.Struct, frozen=True):
    """:param place: the path of the table or list in the file."""

    place: Place
    entries: tuple[Entry, ...]


def read_table(source: str, parsed: Any, written: str) -> ServerTable | None:
    """
    :param parsed: a file of servers.
    :param written: its text, to find the line of an error.
    :returns: the servers in the file's order, without comments; ``None`` if the file has no place for servers.
    :raises ConfigurationError: there are two places with servers, or what stands there is neither a table nor a list.
    """
    file: dict[str, Any] = convert(source, parsed, dict[str, Any], written)
    places = [place for place in SERVERS if _at(file, place) is not None and _may_be(place, _at(file, place))]
    if len(places) > 1:
        places = [place for place in places if holds_servers(_at(file, place))] or places[:1]
    if len(places) > 1:
        detail = f'there are servers in "{".".join(places[0])}", too: keep one of the two'
        raise wrong(source, detail, written, places[1])
    if places:
        return ServerTable(places[0], tuple(_entries(source, _at(file, places[0]), written, places[0])))
    return ServerTable((), tuple(_entries(source, file, written, ()))) if _is_table(file) else None


def holds_servers(table: Any) -> bool:
    """:returns: whether an entry of a table or list says how a server is started or reached."""
    values = table.values() if isinstance(table, dict) else table if isinstance(table, list) else ()
    return any(map(_starts, values))


def is_part_of_client(entry: Mapping[str, Any]) -> bool:
    """:returns: whether an entry names what a client has within itself, rather than a server."""
    return entry.get("type") in _OF_CLIENTS and not _starts(entry)


def _entries(source: str, table: Any, written: str, place: Place) -> Iterator[Entry]:
    if isinstance(table, list):
        for index, value in enumerate(table):
            fields = value if isinstance(value, dict) else {}
            key = next((key for key in ("name", "id") if fields.get(key) and isinstance(fields[key], str)), None)
            name = f"server-{index + 1}" if key is None else fields[key]
            yield Entry(name, {k: v for k, v in fields.items() if k != key} if fields else value, (*place, index))
        return
    members: dict[str, Any] = convert(source, table, dict[str, Any], written, place)
    for name, value in members.items():
        if value is not None and not _is_comment(name, value) and (place or name not in _BESIDE):
            is_off = isinstance(value, dict) and name.startswith(_OFF)
            yield Entry(name, {**value, "disabled": True} if is_off else value, (*place, name))


def _at(file: Mapping[str, Any], place: tuple[str, ...]) -> Any:
    found: Any = file
    for key in place:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _may_be(place: tuple[str, ...], table: Any) -> bool:
    return place not in _SHARED or holds_servers(table)


def _starts(value: Any) -> bool:
    return isinstance(value, dict) and any(value.get(field) is not None for field in _STARTS)


def _is_comment(name: str, value: Any) -> bool:
    marked = name.startswith(_MARKS) or name.casefold() in _COMMENTS
    return marked and not _starts(value)


def _is_table(file: Mapping[str, Any]) -> bool:
    """:returns: whether servers stand in the file itself, and nothing else."""
    rest = [value for name, value in file.items() if name not in _BESIDE and not _is_comment(name, value)]
    return bool(rest) and all(_starts(value) and value.get("type") in _TYPES for value in rest)
