"""
Merge the lists of a session's backends into one catalogue for agents.

Tools and prompts get public names. Resources keep their URI and belong to the server that lists them, or whose template
matches. If two servers claim the same name or URI, the one configured first has it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from ironcurtain.jsonrpc import codec
from ironcurtain.mcp_proxy.backend import Backend, BackendFailed, RpcError, UnreadableAnswer
from ironcurtain.mcp_proxy.definitions import Listed, mended, once
from ironcurtain.mcp_proxy.names import public_name
from ironcurtain.mcp_proxy.pins import Pin, Reason, digest, has_hidden, visible, withheld

Definition = Mapping[str, Any]

_EXPRESSION = re.compile(r"\{[^{}]*\}")


class CatalogueKind(msgspec.Struct, frozen=True):
    """
    A kind of list that servers have.

    :param method: the method that returns the list.
    :param member: the member of the result with the list.
    :param capability: the capability of servers with such a list.
    :param changed: the notification of a change.
    :param identity: the member of each entry that must be a string.
    """

    method: str
    member: str
    capability: str
    changed: str
    identity: str


TOOLS = CatalogueKind("tools/list", "tools", "tools", "notifications/tools/list_changed", "name")
PROMPTS = CatalogueKind("prompts/list", "prompts", "prompts", "notifications/prompts/list_changed", "name")
RESOURCES = CatalogueKind("resources/list", "resources", "resources", "notifications/resources/list_changed", "uri")
TEMPLATES = CatalogueKind(
    "resources/templates/list", "resourceTemplates", "resources", RESOURCES.changed, "uriTemplate"
)
KINDS = (TOOLS, PROMPTS, RESOURCES, TEMPLATES)


class ToolDefinition(msgspec.Struct, frozen=True):
    """
    One tool that agents may call.

    :param name: the server's name for it.
    :param public_name: the agents' name for it.
    :param definition: name, description, ``inputSchema`` and the server's other members, mended where they would break
        clients, with hidden text made visible.
    :param digest: digest of the definition as the server sent it.
    :param held: why the tool must not be used, whatever the policy says; ``None`` if it may.
    """

    server: str
    name: str
    public_name: str
    definition: Definition
    digest: str = ""
    withheld: Reason | None = None

    @property
    def schema(self) -> Mapping[str, Any]:
        """The JSON schema of its arguments."""
        schema = self.definition.get("inputSchema")
        return schema if isinstance(schema, dict) else {}


class CatalogueEntry(msgspec.Struct, frozen=True):
    """
    A tool, a prompt, a resource or a template.

    :param identity: the server's name, URI or URI template for it.
    :param definition: as agents see it.
    :param sent: as the server sent it.
    """

    server: str
    identity: str
    definition: Definition
    sent: Definition


class Sighting(msgspec.Struct, frozen=True):
    """
    A definition in a server's list, if it changed.

    :param digest: SHA-256 of the definition in canonical form, in hex.
    :param held: why the tool must not be used; ``None`` if it may.
    :param by: who accepted this definition; empty if nobody did or had to.
    """

    tool: str
    digest: str
    withheld: Reason | None
    by: str


PinTools = Callable[[str, Sequence[Definition]], Mapping[str, Pin]]
"""Takes a server and its definitions of tools, and returns the pin of each; a tool without a pin must not be used."""


class Catalogue(msgspec.Struct):
    """
    The merged lists.

    :param servers: the backends' names in the order of their configuration.
    :param shown: returns a URI or URI template as agents see it.
    :param pin: decides which definitions of tools are in force.
    """

    servers: Sequence[str]
    shown: Callable[[str], str]
    pin: PinTools
    tools: dict[str, ToolDefinition] = msgspec.field(default_factory=dict)
    """By public name, including withheld tools."""
    offered: dict[str, ToolDefinition] = msgspec.field(default_factory=dict)
    """By public name, only tools that agents may use."""
    prompts: dict[str, CatalogueEntry] = msgspec.field(default_factory=dict)
    """By public name."""
    resources: dict[str, CatalogueEntry] = msgspec.field(default_factory=dict)
    """By URI, as agents see it."""
    templates: dict[str, CatalogueEntry] = msgspec.field(default_factory=dict)
    """By URI template, as agents see it."""
    faults: dict[tuple[str, str], list[str]] = msgspec.field(default_factory=dict)
    """What was wrong with a list, by server and method."""
    _sightings: dict[str, dict[str, Sighting]] = msgspec.field(default_factory=dict)
    _recorded: dict[tuple[str, str], Sighting] = msgspec.field(default_factory=dict)
    _tools_by_server: dict[tuple[str, str], ToolDefinition] = msgspec.field(default_factory=dict)
    _lists: dict[tuple[str, str], Sequence[Listed]] = msgspec.field(default_factory=dict)

    def take(self, server: str, kind: CatalogueKind, definitions: Iterable[Any]) -> list[Sighting]:
        """
        Replace one list of one server.

        :param definitions: as the server sent them. Agents see them mended; those that cannot be mended are left out.
        :returns: the changed tool definitions, for the audit log.
        """
        usable, faults = mended(kind.member, definitions)
        self._lists[server, kind.method], twice = once(usable, kind.identity, kind.member)
        self.faults[server, kind.method] = [*faults, *twice]
        if kind is TOOLS:
            return self.pin_again(server)
        self._rebuild(kind)
        return []

    def pin_again(self, server: str) -> list[Sighting]:
        """
        Look up the pins of a server's tools again.

        :returns: the changed tool definitions, for the audit log.
        """
        said = [listed.sent for listed in self._lists.get((server, TOOLS.method), ())]
        self._sightings[server] = {}
        try:
            pins = self.pin(server, said)
            self._sightings[server] = {d["name"]: _sighting(pins.get(d["name"]), d) for d in said}
        finally:  # a tool whose pin could not be read is withheld
            self._rebuild(TOOLS)
        news = [s for s in self._sightings[server].values() if self._recorded.get((server, s.tool)) != s]
        self._recorded |= {(server, sighting.tool): sighting for sighting in news}
        return news

    def tool(self, server: str, name: str) -> ToolDefinition | None:
        """:returns: a tool by the server's name for it."""
        return self._tools_by_server.get((server, name))

    def tools_of(self, server: str) -> list[ToolDefinition]:
        """:returns: the tools of one server, also withheld ones."""
        return [tool for tool in self.tools.values() if tool.server == server]

    def withholding(self) -> list[str]:
        """:returns: the servers with withheld tools."""
        return list(dict.fromkeys(tool.server for tool in self.tools.values() if tool.withheld is not None))

    def owner_of(self, uri: str) -> str | None:
        """:returns: the server that lists a resource, or whose template matches its URI."""
        if (entry := self.resources.get(uri)) is not None:
            return entry.server
        return next((entry.server for template, entry in self.templates.items() if fits(template, uri)), None)

    def _rebuild(self, kind: CatalogueKind) -> None:
        entries = [
            CatalogueEntry(server, listed.sent[kind.identity], listed.shown, listed.sent)
            for server in self.servers
            for listed in self._lists.get((server, kind.method), ())
        ]
        if kind is TOOLS:
            self._rebuild_tools(entries)
        elif kind is PROMPTS:
            self.prompts = _first((public_name(e.server, e.identity), e) for e in entries)
        elif kind is RESOURCES:
            self.resources = _first((self.shown(e.identity), e) for e in entries)
        else:
            self.templates = _first((self.shown(e.identity), e) for e in entries)

    def _rebuild_tools(self, entries: Iterable[CatalogueEntry]) -> None:
        self.tools = {}
        for entry in entries:
            name, found = public_name(entry.server, entry.identity), entry.definition
            sighting = self._sightings[entry.server].get(entry.identity) or _sighting(None, entry.sent)
            shown = visible(found) if has_hidden(found) else found
            tool = ToolDefinition(entry.server, entry.identity, name, shown, sighting.digest, sighting.withheld)
            self.tools.setdefault(name, tool)
        self.offered = {name: tool for name, tool in self.tools.items() if tool.withheld is None}
        self._tools_by_server = {(tool.server, tool.name): tool for tool in self.tools.values()}


def fits(template: str, uri: str) -> bool:
    """
    Return whether a URI template (RFC 6570) can expand to a URI, with any values.

    This only finds the server; the policy decides about the URI.
    """
    first, *rest = _EXPRESSION.split(template)
    if not uri.startswith(first):
        return False
    if not rest:
        return uri == first
    *middle, last = rest
    position = len(first)
    for literal in middle:
        found = uri.find(literal, position)
        if found < 0:
            return False
        position = found + len(literal)
    return uri.endswith(last) and len(uri) - len(last) >= position


def _sighting(pin: Pin | None, definition: Definition) -> Sighting:
    reason = withheld(pin, definition)
    return Sighting(
        definition["name"], digest(definition), reason, pin.by if pin is not None and reason is None else ""
    )


def _first(entries: Iterable[tuple[str, CatalogueEntry]]) -> dict[str, CatalogueEntry]:
    merged: dict[str, CatalogueEntry] = {}
    for name, entry in entries:
        merged.setdefault(name, entry)
    return merged


PAGES = 500
"""Maximum number of pages fetched of one list."""

ENTRIES = 20_000
"""Maximum number of entries used of one list."""

_REST = "what follows is left out"


async def fetch_all(backend: Backend, kind: CatalogueKind) -> tuple[list[Any], str]:
    """
    :returns: the entries, unchanged, and why there may be more; no entries if the server does not have such a list.
    :raises BackendFailed: the server does not answer, or its list does not end.
    """
    if backend.introduction is None or not _may_have(backend.introduction.capabilities, kind):
        return [], ""
    entries: list[Any] = []
    cursor: str | float | None = None
    seen: set[str | float] = set()
    for _ in range(PAGES):
        try:
            page = codec.decode(await backend.request(kind.method, None if cursor is None else {"cursor": cursor}))
        except RpcError:
            return entries, f"its answer to {kind.method} is an error; {_REST}" if entries else ""
        except (UnreadableAnswer, codec.InvalidMessage) as e:
            return entries, f"its answer to {kind.method} cannot be read: {e}"
        found = page.get(kind.member) if isinstance(page, dict) else None
        if not isinstance(found, list):
            return entries, f"its answer to {kind.method} has no list of {kind.member}"
        entries += found
        cursor = page.get("nextCursor")
        if not cursor:
            return entries, _undeclared(backend.introduction.capabilities, kind) if entries else ""
        if isinstance(cursor, bool) or not isinstance(cursor, str | int | float):
            return entries, f"nextCursor in its answer to {kind.method} must be a string; {_REST}"
        if cursor in seen:
            return entries, f"its answers to {kind.method} begin again; {_REST}"
        if len(entries) > ENTRIES:
            break
        seen.add(cursor)
    raise BackendFailed(f"MCP server {backend.name}: its answers to {kind.method} do not end")


def _may_have(capabilities: Mapping[str, Any], kind: CatalogueKind) -> bool:
    """:returns: whether a server may have a list: one that names no list at all may have tools all the same."""
    return kind.capability in capabilities or (
        kind is TOOLS and not any(each.capability in capabilities for each in KINDS)
    )


def _undeclared(capabilities: Mapping[str, Any], kind: CatalogueKind) -> str:
    declared = kind.capability in capabilities
    return "" if declared else f"it has {kind.member}, which its capabilities do not name"
