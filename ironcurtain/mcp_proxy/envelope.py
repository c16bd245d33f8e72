"""
The wire format of revision 2026-07-28, which has no handshake.

Each request carries an envelope in its ``_meta``: the revision, and the client's capabilities. Each result says whether
it is complete. Notifications of changes are sent for the filter of a ``subscriptions/listen`` request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from ironcurtain import __version__
from ironcurtain.errors import ProtocolViolation
from ironcurtain.jsonrpc import codec

MODERN_VERSION = "2026-07-28"
"""The revision without a handshake."""

UNSUPPORTED_PROTOCOL_VERSION = -32022
"""JSON-RPC error code of the protocol (revision 2026-07-28)."""

DISCOVER, LISTEN = "server/discover", "subscriptions/listen"

MODERN_ONLY = frozenset((DISCOVER, LISTEN))
"""The methods that came with revision 2026-07-28."""

HANDSHAKE_ONLY = frozenset(("initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"))
"""The methods that ended with it."""

SUBSCRIPTIONS_LIMIT = 1000
"""Maximum number of resources in one filter."""

_PREFIX = "io.modelcontextprotocol/"
VERSION_KEY, CAPABILITIES_KEY, CLIENT_KEY, LEVEL_KEY, SERVER_KEY, SUBSCRIPTION_KEY = (
    _PREFIX + name
    for name in ("protocolVersion", "clientCapabilities", "clientInfo", "logLevel", "serverInfo", "subscriptionId")
)
_ENVELOPE = frozenset((VERSION_KEY, CAPABILITIES_KEY, CLIENT_KEY, LEVEL_KEY))

_CACHEABLE = frozenset(
    (DISCOVER, "tools/list", "resources/list", "resources/templates/list", "resources/read", "prompts/list")
)
"""The methods whose results must say how long they may be kept."""

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""Levels of log messages by severity, lowest first (RFC 5424)."""

IDENTITY: Mapping[str, str] = {"name": "ironcurtain", "title": "IronCurtain", "version": __version__}
"""What the proxy sends about itself."""

_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_meta = msgspec.json.Decoder(dict[str, msgspec.Raw] | None)


class BadEnvelope(ProtocolViolation):
    """
    A request does not fit the revision of its connection.

    :param code: the JSON-RPC error code to answer with.
    :param data: the error's ``data``.
    """

    def __init__(self, code: int, detail: str, data: Any = None) -> None:
        super().__init__("mcp", detail)
        self.code_number, self.detail, self.data = code, detail, data


class ChangeFilter(NamedTuple):
    """Which notifications a ``subscriptions/listen`` request asked for: methods, and resources by their URI."""

    methods: frozenset[str]
    uris: frozenset[str]

    def accepts(self, method: str, uri: str) -> bool:
        """:param uri: of the resource that changed, for ``notifications/resources/updated``."""
        return uri in self.uris if method == "notifications/resources/updated" else method in self.methods


_FILTER_METHODS = {
    f"{list_}ListChanged": f"notifications/{list_}/list_changed" for list_ in ("tools", "prompts", "resources")
}


def read_filter(params: Mapping[str, Any]) -> ChangeFilter:
    """
    :param params: of a ``subscriptions/listen`` request.
    :raises BadEnvelope: the filter is invalid.
    """
    value = params.get("notifications")
    wanted: dict[str, Any] = value if isinstance(value, dict) else {"resourceSubscriptions": value or "missing"}
    uris = wanted.get("resourceSubscriptions") or []
    if not isinstance(uris, list) or len(uris) > SUBSCRIPTIONS_LIMIT or not all(isinstance(uri, str) for uri in uris):
        detail = f"notifications must be an object; its resourceSubscriptions at most {SUBSCRIPTIONS_LIMIT} URIs"
        raise BadEnvelope(codec.INVALID_PARAMS, detail)
    methods = frozenset(method for name, method in _FILTER_METHODS.items() if wanted.get(name) is True)
    return ChangeFilter(methods, frozenset(uris))


def written_filter(accepted: ChangeFilter) -> dict[str, Any]:
    """:returns: a filter as in ``notifications/subscriptions/acknowledged``."""
    written: dict[str, Any] = {name: True for name, method in _FILTER_METHODS.items() if method in accepted.methods}
    return {**written, "resourceSubscriptions": sorted(accepted.uris)} if accepted.uris else written


def is_enveloped(params: Mapping[str, Any]) -> bool:
    """Whether a request carries an envelope."""
    meta = params.get("_meta")
    return isinstance(meta, dict) and VERSION_KEY in meta


def opened(params: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """
    Check and remove the envelope of a request.

    :returns: the parameters without it, and the level of the log messages that the request asks for; empty: none.
    :raises BadEnvelope: it is missing, names another revision, or answers questions: the proxy does not ask any.
    """
    if not is_enveloped(params):
        raise BadEnvelope(codec.INVALID_PARAMS, f"_meta needs {VERSION_KEY} and {CAPABILITIES_KEY} in each request")
    meta = params["_meta"]
    if meta[VERSION_KEY] != MODERN_VERSION:
        raise unsupported(meta[VERSION_KEY])
    if not isinstance(meta.get(CAPABILITIES_KEY), dict):
        raise BadEnvelope(codec.INVALID_PARAMS, f"_meta needs the object {CAPABILITIES_KEY}")
    if "inputResponses" in params or "requestState" in params:
        raise BadEnvelope(codec.INVALID_PARAMS, "no input was requested: call again without inputResponses")
    rest = {name: value for name, value in meta.items() if name not in _ENVELOPE}
    level = meta.get(LEVEL_KEY)
    remaining = {name: value for name, value in params.items() if name != "_meta"}
    return ({**remaining, "_meta": rest} if rest else remaining), level if level in LEVELS else ""


def unsupported(requested: Any) -> BadEnvelope:
    """:returns: the error for a revision that cannot be used on a connection of revision 2026-07-28."""
    data = {"supported": [MODERN_VERSION], "requested": requested if isinstance(requested, str) else ""}
    return BadEnvelope(UNSUPPORTED_PROTOCOL_VERSION, f"this connection uses revision {MODERN_VERSION}", data)


def enveloped(params: Mapping[str, Any] | None, capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """:returns: the parameters of a request to a server, with an envelope."""
    params = dict(params or {})
    own = {VERSION_KEY: MODERN_VERSION, CAPABILITIES_KEY: capabilities, CLIENT_KEY: IDENTITY}
    return {**params, "_meta": {**params.get("_meta", {}), **own}}


class InputRequired(NamedTuple):
    """
    A server needs answers before it can complete a request.

    :ivar questions: by their keys, method and parameters.
    :ivar state: to be sent back unchanged.
    """

    questions: Mapping[str, tuple[str, bytes | None]]
    state: Any


def input_required(result: bytes) -> InputRequired | None:
    """
    :param result: raw JSON of a server's result.
    :returns: what the server needs; ``None`` if the result is complete.
    :raises InvalidMessage: it cannot be parsed.
    """
    if b'"input_required"' not in result:
        return None
    value = codec.decode(result)
    if not isinstance(value, dict) or value.get("resultType") != "input_required":
        return None
    requests = value.get("inputRequests") or {}
    if not isinstance(requests, dict) or not all(isinstance(each, dict) for each in requests.values()):
        raise codec.InvalidMessage(codec.INTERNAL_ERROR, "inputRequests must be an object of requests")
    questions = {
        key: (str(each.get("method")), codec.encode(each["params"]) if "params" in each else None)
        for key, each in requests.items()
    }
    return InputRequired(questions, value.get("requestState"))


def completed(method: str, result: bytes) -> bytes:
    """
    :param result: raw JSON of an earlier revision. Whatever it says, it is complete: servers ask the proxy, not the
        agent.
    :returns: the same result for revision 2026-07-28. Its other members are unchanged.
    :raises InvalidMessage: it is not an object.
    """
    try:
        members = _members.decode(result)
        meta = _meta.decode(members.get("_meta", msgspec.Raw(b"null"))) or {}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        raise codec.InvalidMessage(codec.INTERNAL_ERROR, f"the result is not an object: {e}") from None
    meta[SERVER_KEY] = msgspec.Raw(codec.encode(IDENTITY))
    defaults: dict[str, Any] = {"ttlMs": 0, "cacheScope": "private"} if method in _CACHEABLE else {}
    return codec.encode({**defaults, **members, "resultType": "complete", "_meta": meta})


def subscribed(params: bytes | None, subscription: codec.Id) -> dict[str, Any]:
    """:returns: a notification's parameters, marked with the id of the ``subscriptions/listen`` request for it."""
    try:
        value = codec.decode(params or b"{}")
    except codec.InvalidMessage:  # the change is known by its method
        value = {}
    value = value if isinstance(value, dict) else {}
    meta = value.get("_meta")
    return {**value, "_meta": {**(meta if isinstance(meta, dict) else {}), SUBSCRIPTION_KEY: subscription}}
