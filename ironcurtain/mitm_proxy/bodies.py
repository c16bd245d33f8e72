"""
What a request's body may ask of a provider: to think, not to act.

A provider that fetches addresses, runs code or connects to servers on an agent's behalf is a way round everything that
this program judges. So requests for that are refused, and so is a body that two parsers could read differently. What
the model is given to call, and the agent itself runs, passes: those calls come to the MCP proxy.

Kinds of tools and sources are allowed by name, since new ones appear; other keys are refused by name, since agents send
many that are harmless. Keys are compared without case and underscores: Google's APIs take two spellings of each, and
some gateways any case.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal, NoReturn

from ironcurtain.mitm_proxy.refusals import Dialect, Refusal

KEY_LIMIT: Final = 64
"""Keys with more characters are none that matter here."""

_CUT: Final = 60
"""Most characters of a name of the agent's in a reason."""

_HARMLESS: Final[tuple[Any, ...]] = (None, False, "", [])
"""Values that leave out or turn off what a key stands for; an empty object may turn it on."""

Check = Callable[[Any], str | None]
"""Takes the value of a key; gives what the provider would do that it must not do, or nothing."""


@dataclass(frozen=True, slots=True)
class Shape:
    """
    :param checks: by folded key, wherever it stands.
    :param opaque: folded keys below which the provider acts on nothing: arguments, schemas, labels.
    """

    checks: Mapping[str, Check]
    opaque: frozenset[str]

    def rule(self, key: str) -> Check | Literal[False] | None:
        """:returns: what the value of a key has to pass; ``None``: nothing; ``False``: neither has what is in it."""
        folded = fold(key)
        return False if folded in self.opaque else self.checks.get(folded)


def fold(key: str) -> str:
    """:returns: the one spelling under which a key is looked up."""
    return key.casefold().replace("_", "") if len(key) <= KEY_LIMIT else ""


def cut(text: str) -> str:
    """:returns: a text of the agent's, short enough for a reason."""
    return text if len(text) <= _CUT else f"{text[:_CUT]}..."


def _quote(value: Any) -> str:
    return cut(value if isinstance(value, str) else type(value).__name__)


def _never(deed: str) -> Check:
    return lambda value: None if value in _HARMLESS else deed


def _only_data(deed: str) -> Check:
    def check(value: Any) -> str | None:
        address = value.get("url") if isinstance(value, dict) else value
        return None if address is None or (isinstance(address, str) and address.startswith("data:")) else deed

    return check


def _kinds(wanted: re.Pattern[str], *, untyped: bool) -> Check:
    """:param untyped: whether a tool without a type is one that the agent runs."""

    def check(tools: Any) -> str | None:
        if tools is None:
            return None
        for tool in tools if isinstance(tools, list) else [tools]:
            kind = tool.get("type") if isinstance(tool, dict) else "?"
            if not (untyped and kind is None) and not (isinstance(kind, str) and wanted.fullmatch(kind)):
                return f"run a tool of type {_quote(kind)}"
        return None

    return check


def _not_of_type(unwanted: re.Pattern[str]) -> Check:
    def check(kind: Any) -> str | None:
        return f"run {cut(kind)}" if isinstance(kind, str) and unwanted.fullmatch(kind) else None

    return check


def _anthropic_source(source: Any) -> str | None:
    if not isinstance(source, dict) or source.get("type") in ("base64", "text", "content"):
        return None  # in search results it is a title
    return f"get content from a source of type {_quote(source.get('type'))}"


_ANTHROPIC: Final = Shape(
    {
        "container": _never("run code in a container"),
        "fileid": _never("use a stored file"),
        "mcpservers": _never("connect to MCP servers"),
        "source": _anthropic_source,
        "tools": _kinds(
            re.compile(r"custom|(?:bash|computer|memory|text_editor|tool_search_tool_(?:bm25|regex))_\d{8}"),
            untyped=True,
        ),
        "type": _not_of_type(
            re.compile(r"(?i:container_upload|mcp_toolset|(?:code_execution|web_fetch|web_search)(?:_\d+)?)")
        ),
    },
    frozenset(("input", "inputexamples", "inputschema", "metadata", "schema")),
)


def _stored_prompt(prompt: Any) -> str | None:
    return "use a stored prompt, whose tools cannot be seen here" if isinstance(prompt, dict) else None


def _hosted_environment(environment: Any) -> str | None:
    hosted = isinstance(environment, dict) and environment.get("type") != "local"
    return "run commands in a container" if hosted else None


def _searching_model(model: Any) -> str | None:
    searches = isinstance(model, str) and re.search(r"(?i)-search|deep-research|:online", model)
    return f"search the web, as the model {cut(model)} always does" if searches else None


_OPENAI: Final = Shape(
    {
        "audiourl": _only_data("fetch an address"),
        "background": _never("work in the background, where the tokens cannot be counted"),
        "connectorid": _never("connect to a service"),
        "environment": _hosted_environment,
        "fileid": _never("use a stored file"),
        "fileids": _never("use stored files"),
        "fileurl": _never("fetch an address"),
        "imageurl": _only_data("fetch an address"),
        "model": _searching_model,
        "plugins": _never("run plugins"),
        "prompt": _stored_prompt,
        "serverurl": _never("connect to an MCP server"),
        "tools": _kinds(
            re.compile(
                r"function|custom|namespace|apply_patch|computer|computer_use_preview|image_generation|local_shell|shell"
                r"|tool_search"
            ),
            untyped=False,
        ),
        "type": _not_of_type(re.compile(r"(?i:code_interpreter|file_search|mcp|web_search(?!_call).{0,24})")),
        "vectorstoreids": _never("search stored files"),
        "videourl": _only_data("fetch an address"),
        "websearchoptions": _never("search the web"),
    },
    frozenset(("arguments", "clientmetadata", "metadata", "parameters", "schema")),
)

_GOOGLE_OWN: Final = frozenset(("functiondeclarations", "computeruse"))
"""Tools of Google's that the agent runs."""


def _google_tools(tools: Any) -> str | None:
    if tools is None:
        return None
    for tool in tools if isinstance(tools, list) else [tools]:
        for name, value in tool.items() if isinstance(tool, dict) else [("?", tool)]:
            if value is not None and fold(name) not in _GOOGLE_OWN:
                return f"run the tool {cut(name)}"
    return None


_GOOGLE: Final = Shape(
    {
        "cachedcontent": _never("use stored content, whose tools cannot be seen here"),
        "fileuri": _never("fetch an address or a stored file"),
        "tools": _google_tools,
        **{
            name: _never(deed)
            for name, deed in (
                ("codeexecution", "run code"),
                ("filesearch", "search stored files"),
                ("googlemaps", "ask Google Maps"),
                ("googlesearch", "search the web"),
                ("googlesearchretrieval", "search the web"),
                ("mcpservers", "connect to MCP servers"),
                ("urlcontext", "fetch addresses"),
            )
        },
    },
    frozenset(
        (
            "args",
            "labels",
            "parameters",
            "parametersjsonschema",
            "response",
            "responsejsonschema",
            "responseschema",
        )
    ),
)

SHAPES: Final[Mapping[Dialect, Shape]] = {"anthropic": _ANTHROPIC, "openai": _OPENAI, "google": _GOOGLE}
"""Of the providers whose requests are understood."""


BODY_LIMIT: Final = 32 * 1024 * 1024
"""Most bytes of a body that is inspected: 32 MiB, the most that Anthropic's Messages API takes."""

_CALLS: Final = (
    "/messages",
    "/count_tokens",
    "/responses",
    "/responses/compact",
    "/completions",
    "Content",
    ":countTokens",
)
"""How the paths of requests to a model end, whatever they say their content is."""

KEYS_KEPT: Final = 1024
"""How many keys are remembered with what they mean: those of one request are those of the one before."""

_RULES: Final = {dialect: lru_cache(KEYS_KEPT)(shape.rule) for dialect, shape in SHAPES.items()}
_NESTED: Final = (dict, list)  # to write it as a union would make that union each time
_JSON: Final = re.compile(r"application/(?:[a-z0-9.+-]+\+)?json(?: *; *charset=\"?utf-8\"?)?", re.IGNORECASE)


def is_inspected(dialect: Dialect, path: str, content_type: str) -> bool:
    """
    :param path: canonical, without the query.
    :returns: whether the body has to be held back, whole, until :func:`refusal` has judged it.
    """
    return dialect in SHAPES and (path.endswith(_CALLS) or is_json(content_type))


def is_json(content_type: str) -> bool:
    """:returns: whether a Content-Type means JSON in UTF-8."""
    return _JSON.fullmatch(content_type) is not None


def too_large() -> Refusal:
    """:returns: what to answer to a body over :data:`BODY_LIMIT`."""
    return Refusal(413, "body-too-large", f"the request is over {BODY_LIMIT >> 20} MiB: send less in one request")


def refusal(dialect: Dialect, body: bytes) -> Refusal | None:
    """
    Judge a body for which :func:`is_inspected` holds.

    :param body: whole, without any content coding.
    :returns: why it must not be sent, or ``None``.
    """
    try:
        value = _decoder.decode(body.decode())
    except (ValueError, RecursionError) as e:
        why = "nested too deeply" if isinstance(e, RecursionError) else cut(str(e))
        return Refusal(400, "malformed-body", f"the request's body is not JSON that can be read in one way only: {why}")
    if not isinstance(value, dict):
        return Refusal(400, "malformed-body", "the request's body is no JSON object")
    if (deed := _deed(_RULES[dialect], value)) is None:
        return None
    advice = "turn this off in the agent, or let it do so itself, by tools that are judged here"
    return Refusal(403, "provider-acts", f"the request asks the provider to {deed}, which is not allowed: {advice}")


def _deed(rule: Callable[[str], Check | Literal[False] | None], body: dict[str, Any]) -> str | None:
    pending: list[Any] = [body]
    while pending:
        value = pending.pop()
        if isinstance(value, list):
            pending += [member for member in value if isinstance(member, _NESTED)]
            continue
        for key, member in value.items():
            check = rule(key) if len(key) <= KEY_LIMIT else None
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
        raise ValueError("a key stands twice in one object")
    return members


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


_decoder = json.JSONDecoder(object_pairs_hook=_members, parse_constant=_constant)
