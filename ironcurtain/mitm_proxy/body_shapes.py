"""
What each provider's requests can make it do, told by their keys.

Kinds of tools and sources are allowed by name, since new ones appear; other keys are refused by name, since agents send
many that are harmless. Keys are compared without case and underscores: Google's APIs take two spellings of each, and
some gateways any case.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from ironcurtain.mitm_proxy.refusals import Dialect

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
