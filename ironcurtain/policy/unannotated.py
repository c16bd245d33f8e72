"""
Judge a call of a tool without annotation: nobody has said what its arguments mean, so a person sees all of them.

Each text in the arguments can be a path, an address or any other value. So a protected path in them is denied, and so
is what a denial names. No rule can allow such a call.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from ironcurtain.http.urls import UnclearAddress
from ironcurtain.policy.drafts import Kind, meaning
from ironcurtain.policy.judgement import VALUES_LIMIT, Judgement, Refusal, Ruling
from ironcurtain.policy.matching import PreparedRule, Value
from ironcurtain.policy.pathmap import AGENT_WORKSPACE, file_path
from ironcurtain.policy.paths import Places, Root, UnresolvablePath
from ironcurtain.policy.protected import may_hold
from ironcurtain.policy.roles import UNKNOWN_ROLE
from ironcurtain.policy.targets import web_target
from ironcurtain.policy.verdict import Automatic, Decision, Resource, ToolCall
from ironcurtain.text.display import json_line
from ironcurtain.text.quantities import noun

RULE = "structural-unannotated"
"""The name of this check in results and records."""

_ARTICLES: Mapping[Kind, str] = {"path": "a", "address": "an"}

NAMED, NAME_LIMIT = 5, 200
"""Maximum number of arguments and of paths that the reason names, and maximum length in characters of each."""

_PLAIN = re.compile(rf"[\w./-]{{1,{NAME_LIMIT}}}")


def ask(
    judgement: Judgement,
    arguments: Mapping[str, Any],
    rules: Iterable[PreparedRule],
    places: Places,
    schema: Mapping[str, Any],
    reach: Sequence[Root] | None,
) -> Ruling:
    """
    Paths that the tool's schema declares are forwarded as they were judged if they begin at the workspace or the home.

    :param arguments: those of the call about which nobody has said anything.
    :param rules: those of the policy.
    :param schema: the tool's input schema.
    :param reach: everything that the server can reach; ``None`` if that is not known.
    :returns: an escalation.
    :raises Refusal: a text in the arguments is a protected path, or a rule denies the call.
    """
    kinds, values = _kinds(arguments, schema), list(_values(arguments, places))
    for value in values:
        if value.path:
            judgement.refuse_protected(value.path)
    judgement.asking.append(RULE)
    judgement.automatic = Automatic.NEVER
    for rule in rules:
        if rule.permits or not _may_concern(rule, judgement, values):
            continue
        if rule.decision is Decision.DENY:
            raise Refusal(rule.name, rule.reason)
        judgement.asking.append(rule.name)
        judgement.approvals = max(judgement.approvals, rule.rule.approvals)
    paths, addresses = [value for value in values if _is_path(value, kinds)], [v for v in values if v.targets]
    judgement.guessed = [Resource(UNKNOWN_ROLE, value.argument, *_shown(value, places)) for value in paths]
    judgement.guessed += [Resource(UNKNOWN_ROLE, value.argument, value.text) for value in addresses]
    for name in (name for name, kind in kinds.items() if kind == "path"):
        judgement.arguments[name] = _forwarded(arguments[name], places)
    looks = {name: kind for name, kind in kinds.items() if kind is not None}
    for value in (*paths, *addresses):
        looks[value.argument] = "address" if value.targets else "path"
    reason = "; ".join(_reasons(judgement.call, arguments, looks, paths, reach))
    judgement.note(RULE, "escalate", reason)
    return Ruling(Decision.ESCALATE, RULE, reason)


def _kinds(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Kind | None]:
    """:returns: for each argument, what it seems to be by the tool's schema."""
    declared = schema.get("properties")
    properties: Mapping[str, Any] = declared if isinstance(declared, Mapping) else {}
    found = ((name, meaning(name, properties[name]) if name in properties else None) for name in arguments)
    return {name: None if guess is None else guess.kind for name, guess in found}


def _shown(value: Value, places: Places) -> tuple[str, str]:
    """:returns: the real path, and the path as written if it leads through a link."""
    written = file_path(value.text) or value.text
    return value.path, written if places.named(written) != value.path else ""


def _reasons(
    call: ToolCall,
    arguments: Mapping[str, Any],
    looks: Mapping[str, Kind],
    paths: Sequence[Value],
    reach: Sequence[Root] | None,
) -> Iterator[str]:
    if len(arguments) == len(call.arguments):
        yield f"nobody has said what the arguments of {call.tool} mean (it has no annotation): look at all of them"
    else:
        names, many = _some(map(_quoted, arguments)), len(arguments)
        means, each = noun(many, "means", "mean"), noun(many, "it", "them")
        yield f"nobody has said what {names} of {call.tool} {means} (its annotation does not name {each})"
    if looks:
        like = (f"{_quoted(name)} looks like {_ARTICLES[kind]} {kind}" for name, kind in looks.items())
        yield f"{_some(like)}, but what {call.tool} does with it is not known"
    if unknown := [name for name in arguments if name not in looks]:
        yield f"not known at all: {_some(map(_quoted, unknown))}"
    if lost := {v.path: None for v in paths if reach is not None and not any(root.holds(v.path) for root in reach)}:
        yield f"the server cannot reach {_some(map(_quoted, lost))}"


def _some(texts: Iterable[str]) -> str:
    every = list(texts)
    return f"{', '.join(every[:NAMED])}{', ...' if len(every) > NAMED else ''}"


def _quoted(name: str) -> str:
    """:returns: a name or path for a sentence that the agent must not be able to continue."""
    return name if _PLAIN.fullmatch(name) else json_line(name, NAME_LIMIT)


def _forwarded(written: Any, places: Places) -> Any:
    """:returns: a value in which the agent's names of directories, which the server does not know, are real paths."""
    if isinstance(written, list):
        return [_forwarded(item, places) for item in written]
    if isinstance(written, str) and (written == AGENT_WORKSPACE or written.startswith((f"{AGENT_WORKSPACE}/", "~/"))):
        with suppress(UnresolvablePath):
            return places.real(written)
    return written


def _may_concern(rule: PreparedRule, judgement: Judgement, values: list[Value]) -> bool:
    """Whether a rule can be about the call. A rule about roles alone is not: any tool could have them."""
    call, conditions = judgement.call, rule.rule.conditions
    if conditions.server is not None and call.server not in conditions.server:
        return False
    if conditions.tool is not None and call.tool not in conditions.tool:
        return False
    if rule.fails_by(judgement.history):
        return False
    if conditions.names_no_role:
        return True
    paths, addresses = filter(_is_like_path, values), [value for value in values if value.targets]
    if (root := rule.within) is not None and not any(may_hold(root, value.path, judgement.files) for value in paths):
        return False
    if rule.domains is not None and not any(map(rule.may_cover, addresses)):
        return False
    texts = [value for value in values if not value.targets]
    listed = (any(map(each.has, texts)) or any(map(each.may_have, addresses)) for each in rule.lists)
    return (root is not None or rule.domains is not None or bool(rule.lists)) and all(listed)


def _is_path(value: Value, kinds: Mapping[str, Kind | None]) -> bool:
    """Whether a value is a path, by the tool's schema or by its own form."""
    if not value.path or value.targets:
        return False
    return kinds.get(value.argument) == "path" or value.text.startswith(("/", "~/")) or bool(file_path(value.text))


def _is_like_path(value: Value) -> bool:
    return bool(value.path) and not value.targets and ("/" in value.text or value.text.startswith(("~", ".")))


def _values(arguments: Mapping[str, Any], places: Places) -> Iterator[Value]:
    """
    :returns: each text in the arguments, as a path and an address where it can be one.
    :raises Refusal: there are too many.
    """
    waiting, left = list(arguments.items()), VALUES_LIMIT
    while waiting:
        left -= 1
        if left < 0:
            raise Refusal("invalid-arguments", f"the arguments have more than {VALUES_LIMIT} values")
        name, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [(name, member) for pair in value.items() for member in pair]
        elif isinstance(value, list):
            waiting += [(name, member) for member in value]
        elif isinstance(value, str):
            yield _value(name, value, places)


def _value(name: str, text: str, places: Places) -> Value:
    value = Value(name, text, written=text)
    with suppress(UnresolvablePath):
        value.path = places.real(file_path(text) or text)
    with suppress(UnclearAddress):
        value.targets = (web_target(text),)
    return value
