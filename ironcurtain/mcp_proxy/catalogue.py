"""
What the backends of a session offer, merged into one catalogue for agents. Pure.

Tools and prompts get public names; resources keep their URI and belong to the server that lists them, or whose template
fits. Where two servers claim the same, the one configured first has it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ironcurtain.mcp_proxy.names import public_name
from ironcurtain.mcp_proxy.pins import Pins, Reason, Sighting

Definition = Mapping[str, Any]

_EXPRESSION = re.compile(r"\{[^{}]*\}")


@dataclass(frozen=True, slots=True)
class Kind:
    """
    A kind of list that servers have.

    :param method: lists them.
    :param member: where the list stands in the result.
    :param capability: what a server that has such a list claims.
    :param changed: the notification that the list is another now.
    :param identity: the member of each entry that must be a text.
    """

    method: str
    member: str
    capability: str
    changed: str
    identity: str


TOOLS = Kind("tools/list", "tools", "tools", "notifications/tools/list_changed", "name")
PROMPTS = Kind("prompts/list", "prompts", "prompts", "notifications/prompts/list_changed", "name")
RESOURCES = Kind("resources/list", "resources", "resources", "notifications/resources/list_changed", "uri")
TEMPLATES = Kind("resources/templates/list", "resourceTemplates", "resources", RESOURCES.changed, "uriTemplate")
KINDS = (TOOLS, PROMPTS, RESOURCES, TEMPLATES)


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """
    One tool that agents may call.

    :param name: what its server calls it.
    :param public_name: what agents call it.
    :param definition: name, description, ``inputSchema`` and all else that the server says of it.
    :param digest: of what the server says of it now, which is the definition unless that is held.
    :param held: why each call of it needs a person, whatever the policy says; ``None`` if it does not.
    """

    server: str
    name: str
    public_name: str
    definition: Definition
    digest: str = ""
    held: Reason | None = None

    @property
    def schema(self) -> Mapping[str, Any]:
        """The JSON schema of its arguments."""
        schema = self.definition.get("inputSchema")
        return schema if isinstance(schema, dict) else {}


@dataclass(frozen=True, slots=True)
class Entry:
    """
    A prompt, a resource or a template.

    :param identity: what its server calls it: a name, a URI or a URI template.
    """

    server: str
    identity: str
    definition: Definition


@dataclass(slots=True)
class Catalogue:
    """
    The merged lists.

    :param servers: the backends' names in the order of their configuration.
    :param shown: a URI or URI template as agents see it.
    """

    servers: Sequence[str]
    shown: Callable[[str], str]
    tools: dict[str, ToolDefinition] = field(default_factory=dict)
    """By public name."""
    prompts: dict[str, Entry] = field(default_factory=dict)
    """By public name."""
    resources: dict[str, Entry] = field(default_factory=dict)
    """By URI, as agents see it."""
    templates: dict[str, Entry] = field(default_factory=dict)
    """By URI template, as agents see it."""
    _pins: Pins = field(default_factory=Pins)
    _tools_by_server: dict[tuple[str, str], ToolDefinition] = field(default_factory=dict)
    _lists: dict[tuple[str, str], Sequence[Definition]] = field(default_factory=dict)

    def take(self, server: str, kind: Kind, definitions: Iterable[Any]) -> list[Sighting]:
        """
        Replace one list of one server.

        :param definitions: as they came; what is no definition is left out.
        :returns: for tools, what has to be recorded of those that were not seen like this before.
        """
        sound = [d for d in definitions if isinstance(d, dict) and isinstance(d.get(kind.identity), str)]
        self._lists[server, kind.method] = list({d[kind.identity]: d for d in reversed(sound)}.values())[::-1]
        sightings = [self._pins.see(server, d) for d in self._lists[server, kind.method]] if kind is TOOLS else []
        self._rebuild(kind)
        return [sighting for sighting in sightings if sighting is not None]

    def tool(self, server: str, name: str) -> ToolDefinition | None:
        """:returns: a tool by its server's own name for it."""
        return self._tools_by_server.get((server, name))

    def accept(self, server: str, tool: str) -> None:
        """A person accepted a held definition."""
        self._pins.accept(server, tool)
        self._rebuild(TOOLS)

    def owner_of(self, uri: str) -> str | None:
        """:returns: the server that lists a resource, or whose template fits its URI."""
        if (entry := self.resources.get(uri)) is not None:
            return entry.server
        return next((entry.server for template, entry in self.templates.items() if fits(template, uri)), None)

    def _rebuild(self, kind: Kind) -> None:
        entries = [
            Entry(server, definition[kind.identity], definition)
            for server in self.servers
            for definition in self._lists.get((server, kind.method), ())
        ]
        if kind is TOOLS:
            self._rebuild_tools(entries)
        elif kind is PROMPTS:
            self.prompts = _first((public_name(e.server, e.identity), e) for e in entries)
        elif kind is RESOURCES:
            self.resources = _first((self.shown(e.identity), e) for e in entries)
        else:
            self.templates = _first((self.shown(e.identity), e) for e in entries)

    def _rebuild_tools(self, entries: Iterable[Entry]) -> None:
        self.tools = {}
        for entry in entries:
            pinned = self._pins.pinned(entry.server, entry.identity)
            name = public_name(entry.server, entry.identity)
            tool = ToolDefinition(entry.server, entry.identity, name, pinned.definition, pinned.latest, pinned.held)
            self.tools.setdefault(name, tool)
        self._tools_by_server = {(tool.server, tool.name): tool for tool in self.tools.values()}


def fits(template: str, uri: str) -> bool:
    """
    Whether a URI could come from a URI template (RFC 6570), whatever stands for its expressions.

    What a URI may be used for is up to the policy; this only finds the server to ask.
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


def _first(entries: Iterable[tuple[str, Entry]]) -> dict[str, Entry]:
    merged: dict[str, Entry] = {}
    for name, entry in entries:
        merged.setdefault(name, entry)
    return merged
