"""
What a request's body may ask of a provider: to think, not to act.

A provider that fetches addresses, runs code or connects to servers on an agent's behalf is a way round everything that
this program judges. So requests for that are refused, and so is a body that two parsers could read differently. What
the model is given to call, and the agent itself runs, passes: those calls come to the MCP proxy.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, Literal, NoReturn

from ironcurtain.mitm_proxy.body_shapes import KEY_LIMIT, SHAPES, Check, cut
from ironcurtain.mitm_proxy.refusals import Dialect, Refusal

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
