"""
Suggest rules that would have answered what a person approved again and again.

A suggestion is narrow by construction: one tool, and a condition on each role that was asked. The engine must confirm
it: with the rules, all these calls are allowed, and no call that was denied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from os.path import commonpath, dirname
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from ironcurtain.policy.engine import PolicyEngine
from ironcurtain.policy.named_paths import written
from ironcurtain.policy.network import ASK_RULE, CONNECT, REQUEST, SERVER
from ironcurtain.policy.pathmap import AGENT_WORKSPACE
from ironcurtain.policy.recorded import NotRecorded, RecordedCall
from ironcurtain.policy.replay import judge_again
from ironcurtain.policy.roles import DOMAIN_ROLES, METHOD_ROLE, PARTY_ROLE, PATH_ROLES, Role
from ironcurtain.policy.rules import Conditions, DomainsCondition, ListCondition, PathsCondition, Policy, Rule
from ironcurtain.policy.targets import git_target, web_target
from ironcurtain.policy.verdict import Decision, Trace, Verdict
from ironcurtain.text.quantities import counted

EXACT_LIMIT = 5
"""Maximum number of different paths, hosts or names in a suggestion; more are no habit."""

EngineFor = Callable[[Policy], Callable[[str], PolicyEngine]]
"""Returns, for a policy, what makes the engine for a workspace."""


class Answered(NamedTuple):
    """
    A call that a person was asked about, or that the policy denied.

    :param session: the session's name for people.
    :param approved: whether it was allowed.
    :param number: of the escalation; 0 if the policy denied it.
    :param by: who decided.
    """

    session: str
    call: RecordedCall
    approved: bool
    number: int
    by: str


class Suggestion(msgspec.Struct, frozen=True):
    """
    Rules that belong together, for one tool.

    :param evidence: the calls that a person approved.
    :param denied: number of denied calls that were judged again, and are not allowed.
    """

    server: str
    tool: str
    rules: tuple[Rule, ...]
    evidence: tuple[Answered, ...]
    denied: int


class Declined(msgspec.Struct, frozen=True):
    """
    A tool for which no rule is suggested, though its calls were approved often enough.

    :param why: the reason, for people.
    """

    server: str
    tool: str
    approved: int
    why: str


class _Unsuited(Exception):
    """There is no narrow rule; the message says why."""


def answered_calls(
    session: str, records: Iterable[Mapping[str, Any]], calls_of: Callable[[Iterable[Any]], Iterable[RecordedCall]]
) -> list[Answered]:
    """
    :param records: the records of a session's audit log.
    :param calls_of: :meth:`~ironcurtain.policy.recorded.SessionRecords.calls`.
    :returns: the calls that a person decided on, without those that a kept approval answered, and those that the policy
        denied.
    """
    decisions: dict[str, Mapping[str, Any]] = {}

    def watched() -> Iterable[Mapping[str, Any]]:
        for record in records:
            if record.get("kind") == "decision" and not record.get("permission"):
                decisions[str(record.get("callId"))] = record
            yield record

    found = []
    for call in list(calls_of(watched())):
        decision = decisions.get(call.id, {})
        outcome, number = decision.get("outcome"), decision.get("number")
        if outcome in ("approved", "denied"):
            shown = number if isinstance(number, int) else 0
            found.append(Answered(session, call, outcome == "approved", shown, str(decision.get("by", ""))))
        elif call.decision == "deny":
            found.append(Answered(session, call, False, 0, "the policy"))
    return found


def suggest(
    policy: Policy, answered: Sequence[Answered], engines: EngineFor, least: int, since: str = ""
) -> list[Suggestion | Declined]:
    """
    :param policy: the policy in force, before whose rules the suggested ones belong.
    :param answered: from all sessions.
    :param least: how often a person must have approved.
    :param since: UTC in ISO 8601; approvals before it do not count, denials do.
    """
    tools: dict[tuple[str, str], list[Answered]] = {}
    for each in answered:
        if each.approved and each.call.time >= since:
            tools.setdefault((each.call.server, each.call.tool), []).append(each)
    found: list[Suggestion | Declined] = []
    for (server, tool), approved in tools.items():
        if len(approved) < least:
            continue
        try:
            found.append(_suggested(policy, server, tool, approved, answered, engines, least))
        except _Unsuited as e:
            found.append(Declined(server, tool, len(approved), str(e)))
    return found


def _suggested(
    policy: Policy,
    server: str,
    tool: str,
    approved: Sequence[Answered],
    answered: Sequence[Answered],
    engines: EngineFor,
    least: int,
) -> Suggestion:
    for each in answered:
        if not each.approved and each.number and (each.call.server, each.call.tool) == (server, tool):
            raise _Unsuited(
                f"{each.by or 'a person'} denied a call in session {each.session} (escalation {each.number})"
            )
    asked = _asked(approved, engines(policy))
    if len(asked) < least:
        raise _Unsuited(f"only {len(asked)} of the calls are recorded whole and would still be asked")
    rules = _rules(server, tool, asked, {rule.name for rule in policy.rules})
    changed = engines(replace(policy, rules=(*rules, *policy.rules)))
    evidence = tuple(each for each, _, _ in asked)
    for each in evidence:
        verdict = judge_again(changed, each.call)
        if verdict.decision is not Decision.ALLOW:
            raise _Unsuited(f"no such rule can allow it: {verdict.decision} by {verdict.rule}")
    return Suggestion(server, tool, rules, evidence, _still_denied(changed, answered))


def _asked(
    approved: Sequence[Answered], engine_for: Callable[[str], PolicyEngine]
) -> list[tuple[Answered, Verdict, frozenset[str]]]:
    """:returns: the calls that would be asked today, with the roles that are asked about."""
    found = []
    for each in approved:
        trace = Trace()
        try:
            verdict = judge_again(engine_for, each.call, trace)
        except NotRecorded:
            continue
        if verdict.decision is Decision.ESCALATE:
            asking = (
                step for step in trace.steps if step.outcome == "escalate" and (step.rule or step.check == ASK_RULE)
            )
            roles = frozenset(step.role for step in asking)
            found.append((each, verdict, roles))
    return found


def _still_denied(engine_for: Callable[[str], PolicyEngine], answered: Sequence[Answered]) -> int:
    """:raises _Unsuited: a denied call would be allowed."""
    count = 0
    for each in answered:
        if each.approved:
            continue
        try:
            verdict = judge_again(engine_for, each.call)
        except NotRecorded:
            continue
        if verdict.decision is Decision.ALLOW:
            raise _Unsuited(f"it would allow a call that {each.by or 'a person'} denied in session {each.session}")
        count += 1
    return count


_LIMITED: Final[Mapping[str, tuple[tuple[Role, str], ...]]] = {
    CONNECT: ((PARTY_ROLE, "party"),),
    REQUEST: ((PARTY_ROLE, "party"), (METHOD_ROLE, "method")),
}
"""By tool of the network, roles and arguments that limit what is approved."""


def _rules(
    server: str, tool: str, asked: Sequence[tuple[Answered, Verdict, frozenset[str]]], taken: set[str]
) -> tuple[Rule, ...]:
    roles = sorted(frozenset().union(*(its for _, _, its in asked)))
    rules: list[Rule] = []
    limits = [
        ListCondition(
            (limiting,), tuple(sorted({str(call.call.arguments.get(name)) for call, _, _ in asked})), "identifiers"
        )
        for limiting, name in _LIMITED.get(tool, ())
        if server == SERVER
    ]
    for role in roles:
        values = [
            (each.value, call.call.workspace)
            for call, verdict, _ in asked
            for each in verdict.resources
            if each.role == role
        ]
        if not values:
            raise _Unsuited("a rule could not be limited to what was approved: the calls name no path, host or name")
        for conditions in _conditions(role, values):
            name = _unused(f"approved-{server}-{tool}-{role}", taken)
            taken.add(name)
            rules.append(
                Rule(
                    name,
                    replace(
                        conditions,
                        roles=(role,),
                        server=(server,),
                        tool=(tool,),
                        lists=(*conditions.lists, *limits),
                    ),
                    "allow",
                    reason=f"approved {counted(len(asked), 'time')}",
                )
            )
    if not rules:
        raise _Unsuited("it is asked for a reason that no rule can change")
    return tuple(rules)


def _unused(name: str, taken: set[str]) -> str:
    return next(
        each
        for number in range(1, len(taken) + 2)
        if (each := name if number == 1 else f"{name}-{number}") not in taken
    )


def _conditions(role: Any, values: Sequence[tuple[str, str]]) -> list[Conditions]:
    """
    :param values: each value, and the workspace of its call.
    :returns: the conditions of one rule each.
    """
    if role in PATH_ROLES:
        try:
            return [Conditions(paths=PathsCondition(roles=(role,), within=written(path))) for path in _places(values)]
        except ValueError as e:
            raise _Unsuited(f"a rule cannot name a path: {e}") from None
    if role in DOMAIN_ROLES:
        hosts = _few(frozenset(_host(role, value) for value, _ in values))
        return [Conditions(domains=DomainsCondition(roles=(role,), allowed=hosts))]
    names = _few(frozenset(value for value, _ in values))
    if any(name.startswith("@") for name in names):
        raise _Unsuited("a name begins with @, which a rule would read as a list")
    return [Conditions(lists=(ListCondition(roles=(role,), allowed=names, match_type="identifiers"),))]


def _places(values: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """:returns: the common directory in the workspace, or the exact paths outside it."""
    inside = [path.removeprefix(place) for path, place in values if f"{path}/".startswith(f"{place}/")]
    if len(inside) < len(values):
        return _few(frozenset(path for path, _ in values))
    different = frozenset(inside)
    common = next(iter(different)) if len(different) == 1 else commonpath([dirname(path) or "/" for path in different])
    return (f"{AGENT_WORKSPACE}{common}".rstrip("/"),)


def _host(role: str, value: str) -> str:
    if role == "proxy-domain":
        return value
    try:
        target = git_target(value) if role == "git-remote-url" else web_target(value)
    except ValueError:  # of both readers: the record is of a version that took it
        raise _Unsuited("an address is ambiguous") from None
    if target.host is None or (role == "git-remote-url" and not target.repository):
        raise _Unsuited("an address is ambiguous")
    return target.repository or target.host.name


def _few(values: frozenset[str]) -> tuple[str, ...]:
    if len(values) > EXACT_LIMIT:
        raise _Unsuited(f"the calls are about {len(values)} different places or names, more than {EXACT_LIMIT}")
    return tuple(sorted(values))
