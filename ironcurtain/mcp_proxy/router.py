"""
The handler of each method of the protocol. Requests with other methods never reach a server.

All servers appear as one: their lists are merged, and requests are routed by name, URI or template.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from typing import Any, NoReturn, Protocol

from twisted.internet.defer import Deferred, DeferredList

from ironcurtain.jsonrpc import codec
from ironcurtain.mcp_proxy.backend import BackendFailed, OnProgress, RpcError
from ironcurtain.mcp_proxy.backends import Backends
from ironcurtain.mcp_proxy.calls import CallResult, PathRewriter
from ironcurtain.mcp_proxy.catalogue import PROMPTS, RESOURCES, TEMPLATES, TOOLS, CatalogueKind
from ironcurtain.mcp_proxy.connected_agents import ConnectedAgent
from ironcurtain.mcp_proxy.envelope import (
    DISCOVER,
    IDENTITY,
    LISTEN,
    MODERN_VERSION,
    BadEnvelope,
    ChangeFilter,
    read_filter,
)
from ironcurtain.mcp_proxy.gate import Gate
from ironcurtain.text.display import paragraphs

START_SECONDS = 5.0
"""
Seconds after the start of the servers that an agent's first request waits for them. Servers in Node and Python need
two; some agents time out after ten.
"""

PAGE = 5000
"""Maximum number of entries in one page of a list (not every agent requests a second page)."""

INSTRUCTIONS_LIMIT = 16 * 1024
"""Maximum length in characters of one server's instructions."""

RESOURCE_NOT_FOUND = -32002
"""JSON-RPC error code of the protocol's revisions with a handshake (2025-11-25, resources)."""

Params = dict[str, Any]
Handler = Callable[["ConnectedAgent", "Params", "ProgressSink"], Coroutine[Any, Any, bytes]]


class ProgressSink(Protocol):
    """Receives a request's progress."""

    def waiting(self, message: str) -> None:
        """The request waits for a person."""

    def listen(self, accepted: ChangeFilter) -> None:
        """Confirm a ``subscriptions/listen`` request, and send notifications for it until it ends."""

    @property
    def relay(self) -> OnProgress | None:
        """:returns: called with the server's progress reports; ``None`` if the agent did not ask for them."""


class Router:
    """The router for all agents of a session."""

    def __init__(self, gate: Gate, backends: Backends, rewriter: PathRewriter) -> None:
        self._gate, self._backends, self._rewriter = gate, backends, rewriter
        self._pages: dict[str, _Pages] = {}
        self._table: Mapping[str, Handler] = {
            "initialize": self._initialize,
            DISCOVER: self._discover,
            LISTEN: self._listen,
            "tools/list": self._list_tools,
            "tools/call": self._call,
            "resources/list": self._list_resources,
            "resources/templates/list": self._list_templates,
            "resources/read": self._read,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
            "prompts/list": self._list_prompts,
            "prompts/get": self._prompt,
            "completion/complete": self._complete,
            "logging/setLevel": self._set_level,
        }
        self.methods = frozenset(self._table)
        """The methods that have a handler."""

    def handle(
        self, agent: ConnectedAgent, method: str, params: Params, sink: ProgressSink
    ) -> Coroutine[Any, Any, bytes]:
        """
        :param method: one of :attr:`methods`.
        :returns: the raw JSON result.
        :raises RpcError: the answer is an error.
        """
        handler = self._table[method]
        if agent in self._backends.agents:
            return handler(agent, params, sink)
        return self._first(handler, agent, params, sink)

    async def _first(self, handler: Handler, agent: ConnectedAgent, params: Params, sink: ProgressSink) -> bytes:
        self._backends.join(agent)
        await self._backends.settled(START_SECONDS)
        return await handler(agent, params, sink)

    async def _initialize(self, agent: ConnectedAgent, params: Params, sink: ProgressSink) -> bytes:
        return self._introduction({"protocolVersion": agent.version, "serverInfo": IDENTITY})

    async def _discover(self, agent: ConnectedAgent, params: Params, sink: ProgressSink) -> bytes:
        return self._introduction({"supportedVersions": [MODERN_VERSION]})

    def _introduction(self, members: Mapping[str, Any]) -> bytes:
        result = {**members, "capabilities": self._capabilities()}
        if instructions := self._instructions():
            result["instructions"] = instructions
        return self._rewriter.raw(codec.encode(result))

    def _capabilities(self) -> dict[str, Any]:
        having, unknown = self._backends.having, not self._backends.complete
        claimed: dict[str, Any] = {"tools": {"listChanged": True}, "logging": {}}
        if having("resources") or unknown:
            claimed["resources"] = {"listChanged": True, "subscribe": True}
        if having("prompts") or unknown:
            claimed["prompts"] = {"listChanged": True}
        if having("completions") or unknown:
            claimed["completions"] = {}
        return claimed

    def _instructions(self) -> str:
        texts = (
            f"# {backend.name}\n\n{paragraphs(backend.introduction.instructions[:INSTRUCTIONS_LIMIT])}"
            for backend in self._backends.up()
            if backend.introduction is not None and backend.introduction.instructions
        )
        return "\n\n".join(texts)

    async def _list_tools(self, agent: ConnectedAgent, params: Params, sink: ProgressSink) -> bytes:
        self._backends.lists.look_again()
        self._backends.tell_failures(agent)
        tools = self._backends.catalogue.offered
        return self._list(TOOLS, tools, lambda: ({**t.definition, "name": name} for name, t in tools.items()), params)

    async def _list_prompts(self, agent: ConnectedAgent, params: Params, sink: ProgressSink) -> bytes:
        found = self._backends.catalogue.prompts
        return self._list(PROMPTS, found, lambda: ({**p.definition, "name": name} for name, p in found.items()), params)

    async def _list_resources(self, agent: ConnectedAgent, params: Params, sink: ProgressSink) -> bytes:
        found = self._backends.catalogue.resources
        return self._list(RESOURCES, found, lambda: (entry.definition for entry in found.values()), params)

    async def _list_templates(self, agent: ConnectedAgent, params: Params, sink: ProgressSink) -> bytes:
        found = self._backends.catalogue.templates
        return self._list(TEMPLATES, found, lambda: (entry.definition for entry in found.values()), params)

    def _list(
        self, kind: CatalogueKind, source: object, entries: Callable[[], Iterable[Mapping[str, Any]]], params: Params
    ) -> bytes:
        pages = self._pages.get(kind.method)
        if pages is None or pages.source is not source:
            generation = 0 if pages is None else pages.generation + 1
            pages = _Pages(source, generation, kind.member, list(entries()), self._rewriter)
            self._pages[kind.method] = pages
        return pages.get(params.get("cursor"))

    async def _call(self, agent: ConnectedAgent, params: Params, sink: ProgressSink) -> bytes:
        name, arguments = params.get("name"), params.get("arguments", {})
        if not isinstance(name, str) or not isinstance(arguments, dict):
            _refuse(codec.INVALID_PARAMS, "tools/call needs a name, and arguments that are an object")
        tool = self._backends.catalogue.tools.get(name)
        server, own_name = ("", name) if tool is None else (tool.server, tool.name)
        self._backends.agents.calling(server, agent)
        result = await self._gate.call(
            server,
            own_name,
            arguments,
            extra=params,
            progress=sink.waiting,
            on_progress=sink.relay,
            client=agent,
        )
        if tool is None:
            _refuse(codec.INVALID_PARAMS, f"Unknown tool: {name[:200]}")
        return _result_or_error(result)

    async def _read(self, agent: ConnectedAgent, params: Params, sink: ProgressSink) -> bytes:
        server = self._resource_owner(agent, params)
        self._backends.agents.calling(server, agent)
        raw, _ = await self._gate.request(
            server, "resources/read", params, progress=sink.waiting, on_progress=sink.relay
        )
        return raw

    async def _subscribe(self, agent: ConnectedAgent, params: Params, sink: ProgressSink) -> bytes:
        server = self._resource_owner(agent, params)
        raw, sent = await self._gate.request(server, "resources/subscribe", params, progress=sink.waiting)
        agent.subscriptions[params["uri"]] = (server, sent["uri"])
        return raw

    async def _unsubscribe(self, agent: ConnectedAgent, params: Params, sink: ProgressSink) -> bytes:
        uri = params.get("uri")
        subscribed = agent.subscriptions.pop(uri, None) if isinstance(uri, str) else None
        if subscribed is not None:
            await self._backends.unsubscribe(*subscribed)
        return b"{}"

    async def _listen(self, agent: ConnectedAgent, params: Params, sink: ProgressSink) -> bytes:
        """Send notifications until the agent cancels the request; what cannot be subscribed to is left out."""
        try:
            wanted = read_filter(params)
        except BadEnvelope as e:
            _refuse(e.code_number, e.detail)
        subscribed: set[str] = set()
        try:
            for uri in sorted(wanted.uris):
                with suppress(RpcError, BackendFailed):
                    if uri not in agent.subscriptions:
                        await self._subscribe(agent, {"uri": uri}, sink)
                    subscribed.add(uri)
            sink.listen(ChangeFilter(wanted.methods, frozenset(subscribed)))
            return await Deferred[bytes]()
        finally:
            for uri in subscribed:
                if not agent.listens_to(uri):
                    await self._unsubscribe(agent, {"uri": uri}, sink)

    async def _prompt(self, agent: ConnectedAgent, params: Params, sink: ProgressSink) -> bytes:
        name = params.get("name")
        prompt = self._backends.catalogue.prompts.get(name) if isinstance(name, str) else None
        if prompt is None:
            _refuse(codec.INVALID_PARAMS, "Unknown prompt")
        self._backends.agents.calling(prompt.server, agent)
        raw, _ = await self._gate.request(
            prompt.server,
            "prompts/get",
            {**params, "name": prompt.identity},
            progress=sink.waiting,
            on_progress=sink.relay,
        )
        return raw

    async def _complete(self, agent: ConnectedAgent, params: Params, sink: ProgressSink) -> bytes:
        catalogue, reference = self._backends.catalogue, params.get("ref")
        reference = reference if isinstance(reference, dict) else {}
        member, found = ("name", catalogue.prompts) if "name" in reference else ("uri", catalogue.templates)
        identity = reference.get(member)
        entry = found.get(identity) if isinstance(identity, str) else None
        if entry is None:
            _refuse(codec.INVALID_PARAMS, "Unknown prompt or resource template")
        reference = {**reference, member: entry.identity}
        raw, _ = await self._gate.request(entry.server, "completion/complete", {**params, "ref": reference})
        return raw

    async def _set_level(self, agent: ConnectedAgent, params: Params, sink: ProgressSink) -> bytes:
        level = params.get("level")
        if not isinstance(level, str):
            _refuse(codec.INVALID_PARAMS, "level must be a string")
        self._backends.agents.level = level
        await DeferredList([self._backends.set_level(backend) for backend in self._backends.having("logging")])
        return b"{}"

    def _resource_owner(self, agent: ConnectedAgent, params: Params) -> str:
        uri = params.get("uri")
        if not isinstance(uri, str):
            _refuse(codec.INVALID_PARAMS, "uri must be a string")
        server = self._backends.catalogue.owner_of(uri)
        if server is None:
            code = codec.INVALID_PARAMS if agent.version == MODERN_VERSION else RESOURCE_NOT_FOUND
            _refuse(code, "Resource not found", {"uri": uri})
        return server


class _Pages:
    """One list, encoded once: in one page, or in several with cursors."""

    def __init__(
        self, source: object, generation: int, member: str, entries: list[Mapping[str, Any]], rewriter: PathRewriter
    ) -> None:
        self.source, self.generation = source, generation
        self._encoded: dict[str, bytes] = {}
        for start in range(0, max(len(entries), 1), PAGE):
            page: dict[str, Any] = {member: entries[start : start + PAGE]}
            if start + PAGE < len(entries):
                page["nextCursor"] = self._cursor(start + PAGE)
            self._encoded[self._cursor(start)] = rewriter.raw(codec.encode(page))

    def get(self, cursor: Any) -> bytes:
        page = self._encoded.get(self._cursor(0) if cursor is None else str(cursor))
        if page is None:
            _refuse(codec.INVALID_PARAMS, "unknown cursor: ask for the list from its start")
        return page

    def _cursor(self, start: int) -> str:
        return f"{self.generation}:{start}"


def _result_or_error(result: CallResult) -> bytes:
    if result.error is not None:
        raise RpcError(result.error)
    return result.raw


def _refuse(code: int, message: str, data: Any = None) -> NoReturn:
    body = {"code": code, "message": message}
    raise RpcError(codec.encode(body if data is None else {**body, "data": data}))
