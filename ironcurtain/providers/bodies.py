"""
Check the bodies of requests to model providers: a provider may answer, but not act.

A provider that fetches addresses, runs code or connects to servers for an agent bypasses the policy. Requests for that
are refused, and so are bodies that two parsers could read differently. Tools that the agent itself runs are allowed,
since their calls come to the MCP proxy.

The fields of the body itself are known by name, and so are types of tools and sources, because providers and gateways
add new ones: other fields are not sent. Keys inside are refused by name, because agents send many harmless ones. Those
are compared without case and underscores: Google's APIs accept two spellings of each, and some gateways accept any
case.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, Final, NamedTuple, NoReturn

import msgspec

from ironcurtain.providers.provider import KEY_LIMIT, BodyRules, Check, RequestRefusal, fold

_NESTED: Final = (dict, list)  # a union in isinstance would be built at each call

GATEWAYS: Final = {
    "apibase": "connect to another server",
    "baseurl": "connect to another server",
    "models": "use other models",
    "preset": "use stored settings, whose tools cannot be seen here",
    "provider": "choose another server",
}
"""Fields by which gateways choose where a request goes, folded, and what they make a gateway do."""

_ADDRESS: Final = re.compile(r"\s*(?!data:)[A-Za-z][A-Za-z0-9+.-]{0,31}:")
"""The beginning of an address; content in base64 has no colon."""

_CUT: Final = 60
"""Maximum length in characters of an agent's text in a reason."""

_HARMLESS: Final[tuple[Any, ...]] = (None, False, "", [])
"""Values that do not request anything; an empty object may."""


def cut(text: str) -> str:
    """:returns: a text of the agent, cut to fit in a reason."""
    return text if len(text) <= _CUT else f"{text[:_CUT]}..."


def quote(value: Any) -> str:
    """:returns: a value of the agent, or the name of its type, cut to fit in a reason."""
    return cut(value if isinstance(value, str) else type(value).__name__)


def never(deed: str) -> Check:
    """:returns: a rule that refuses every value that requests something; ``deed`` says what the provider would do."""
    return lambda value: None if value in _HARMLESS else deed


def only_data(deed: str) -> Check:
    """:returns: a rule that refuses every address but ``data:``, which contains its content."""

    def check(value: Any) -> str | None:
        address = value.get("url") if isinstance(value, dict) else value
        return None if address is None or (isinstance(address, str) and address.startswith("data:")) else deed

    return check


def content(deed: str) -> Check:
    """:returns: a rule that refuses an address in place of the content; ``data:`` contains it."""

    def check(value: Any) -> str | None:
        return deed if isinstance(value, str) and _ADDRESS.match(value) else None

    return check


def kinds(wanted: re.Pattern[str], members: frozenset[str], *, untyped: bool) -> Check:
    """
    :param wanted: types of tools that the agent runs.
    :param members: the known keys of such tools whose values are objects or lists. With an object under another key,
        gateways turn on a tool of theirs, whatever the type. Other new keys are flags of the agent's tools.
    :param untyped: whether the agent runs tools without a type.
    :returns: a rule that refuses lists with other tools.
    """

    def check(tools: Any) -> str | None:
        if tools is None:
            return None
        for tool in tools if isinstance(tools, list) else [tools]:
            kind = tool.get("type") if isinstance(tool, dict) else "?"
            if not (untyped and kind is None) and not (isinstance(kind, str) and wanted.fullmatch(kind)):
                return f"run a tool of type {quote(kind)}"
            for key, value in tool.items():
                if isinstance(value, _NESTED) and key not in members:
                    return f"turn on {cut(key)} for a tool"
        return None

    return check


def not_of_type(unwanted: re.Pattern[str]) -> Check:
    """:returns: a rule that refuses these types of content and of tools."""

    def check(kind: Any) -> str | None:
        return f"run {cut(kind)}" if isinstance(kind, str) and unwanted.fullmatch(kind) else None

    return check


BODY_LIMIT: Final = 32 * 1024 * 1024
"""Maximum size in bytes of a body: 32 MiB, the limit of Anthropic's Messages API."""

KEYS_KEPT: Final = 1024
"""Size of the cache of normalised keys. Most requests have the same keys as the one before."""

_rule = lru_cache(KEYS_KEPT)(BodyRules.check)
_JSON: Final = re.compile(r"application/(?:[a-z0-9.+-]+\+)?json(?: *; *charset=\"?utf-8\"?)?", re.IGNORECASE)


def is_json(content_type: str) -> bool:
    """:returns: whether a Content-Type means JSON in UTF-8."""
    return _JSON.fullmatch(content_type) is not None


def too_large(limit: int = BODY_LIMIT) -> RequestRefusal:
    """:returns: the refusal of a body over so many bytes."""
    return RequestRefusal(413, "body-too-large", f"the request is over {limit >> 20} MiB: send less in one request")


class JudgedBody(NamedTuple):
    """
    A body that may be sent.

    :ivar data: as it came, or without the dropped fields.
    :ivar dropped: names of fields that are not sent, as the agent wrote them.
    """

    data: bytes
    dropped: tuple[str, ...]


def judge_body(rules: BodyRules, body: bytes) -> JudgedBody | RequestRefusal:
    """
    Judge a request's body.

    :param rules: those of the provider for such a request.
    :param body: the complete body, without content coding.
    """
    value = read_json(body)
    if isinstance(value, RequestRefusal):
        return value
    if not isinstance(value, dict):
        return RequestRefusal(400, "malformed-body", "the request's body is not a JSON object")
    if (deed := _deed(rules, value)) is not None:
        return _acts(deed)
    if rules.fields is None or not (unknown := value.keys() - rules.fields):
        return JudgedBody(body, ())
    dropped = tuple(name for name in value if name in unknown)
    for name in dropped:
        if (deed := rules.acting.get(fold(name))) is not None and value[name] not in _HARMLESS:
            return _acts(deed)
    try:
        return JudgedBody(_without(unknown, body), dropped)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        return _malformed(cut(str(e)))


def read_json(body: bytes) -> Any | RequestRefusal:
    """:returns: what a body says, or its refusal if two parsers could read it differently."""
    try:
        return _decoder.decode(body.decode())
    except (ValueError, RecursionError) as e:
        return _malformed("nested too deeply" if isinstance(e, RecursionError) else cut(str(e)))


def _without(names: set[str], body: bytes) -> bytes:
    """The other members stay byte for byte."""
    members = _members_as_sent.decode(body)
    return msgspec.json.encode({name: member for name, member in members.items() if name not in names})


_members_as_sent: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


def _malformed(why: str) -> RequestRefusal:
    return RequestRefusal(400, "malformed-body", f"the request's body is not unambiguous JSON: {why}")


def _acts(deed: str) -> RequestRefusal:
    advice = "turn this off in the agent, or let it do so itself, by tools that are judged here"
    return RequestRefusal(
        403, "provider-acts", f"the request asks the provider to {deed}, which is not allowed: {advice}"
    )


def _deed(rules: BodyRules, body: dict[str, Any]) -> str | None:
    pending: list[Any] = [body]
    while pending:
        value = pending.pop()
        if isinstance(value, list):
            pending += [member for member in value if isinstance(member, _NESTED)]
            continue
        for key, member in value.items():
            check = _rule(rules, key) if len(key) <= KEY_LIMIT else None
            if check is False:
                continue
            if check is not None and (deed := check(member)) is not None:
                return deed
            if isinstance(member, _NESTED):
                pending.append(member)
    return None


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("an object has a key twice")
    return members


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


_decoder = json.JSONDecoder(object_pairs_hook=_members, parse_constant=_constant)
