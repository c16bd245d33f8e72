"""
Judge a call of a tool without annotation: nobody has said what its arguments mean, so a person sees all of them.

Each text in the arguments can be a path, an address or any other value. So a protected path in them is denied, and so
is what a denial names. No rule can allow such a call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from ironcurtain.http.urls import UnclearAddress
from ironcurtain.policy.judgement import VALUES_LIMIT, Judgement, Refusal, Ruling
from ironcurtain.policy.matching import PreparedRule, Value
from ironcurtain.policy.pathmap import file_path
from ironcurtain.policy.paths import Places, UnresolvablePath
from ironcurtain.policy.protected import may_hold
from ironcurtain.policy.targets import web_target
from ironcurtain.policy.verdict import Automatic, Decision

RULE = "structural-unannotated"
"""The name of this check in results and records."""


def ask(judgement: Judgement, rules: Iterable[PreparedRule], places: Places) -> Ruling:
    """
    :param rules: those of the policy.
    :returns: an escalation.
    :raises Refusal: a text in the arguments is a protected path, or a rule denies the call.
    """
    call = judgement.call
    values = list(_values(call.arguments, places))
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
    reason = f"nobody has said what the arguments of {call.tool} mean (it has no annotation): look at all of them"
    judgement.note(RULE, "escalate", reason)
    return Ruling(Decision.ESCALATE, RULE, reason)


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
