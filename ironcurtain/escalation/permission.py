"""
Kept approvals: a permission for calls of the same kind, in the same place, until the session ends.

A scope is narrow on purpose. It consists of the tool's definition, the rules that escalated, the policy's version, the
places where the call acts, and for each other argument the bound that the schema sets, or its exact value. The approval
shows what can differ. A call with another rule, role, place or argument is escalated.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from posixpath import dirname, normpath
from typing import Any

import msgspec

from ironcurtain.escalation.bounds import bounds, named
from ironcurtain.policy.judgement import NO_RULE
from ironcurtain.policy.network import ASK_RULE
from ironcurtain.policy.paths import Root
from ironcurtain.policy.roles import PATH_ROLES, UNKNOWN_ROLE
from ironcurtain.policy.targets import is_certain_remote, web_origin
from ironcurtain.policy.unannotated import RULE as UNANNOTATED
from ironcurtain.policy.verdict import Resource, Verdict

HOST_RULES = {"structural-domain-escalate": "fetch-url", ASK_RULE: "proxy-domain"}
"""The invariants whose approval can be kept, as they depend on the host alone, and the role of the host."""

VALUE_LIMIT = 200
"""Maximum length, in characters, of a value in the description of a scope."""

_encoder = msgspec.json.Encoder(order="deterministic")


class Location(msgspec.Struct, frozen=True):
    """
    A place where a call acts.

    :param role: what the call does there.
    :param value: a real path, the scheme, host and port of a URL, or the exact value for any other role.
    :param below: whether it is a directory and everything below it.
    """

    role: str
    value: str
    below: bool = False

    def holds(self, other: Location) -> bool:
        """Whether another place is entirely inside this one, and has the same role."""
        if self.role != other.role or not self.below:
            return self == other
        if other.value == self.value and not other.below:  # the directory was replaced by something else
            return False
        return is_normalized(other.value) and Root(self.value).holds(other.value)


@dataclass(frozen=True, slots=True)
class Scope:
    """
    The calls that a kept approval covers.

    :param definition: digest of the tool's definition.
    :param rules: every rule that escalates.
    :param fixed: the arguments that must keep their value, and this value as JSON; a digest for a long value.
    :param bounds: the arguments whose value may differ, and a description of the possible values.
    :param places: the places that the call's resources are in; empty for a call without resources.
    :param words: the description for people. It contains text of the agent, so it must be escaped for display.
    """

    server: str
    tool: str
    definition: str
    rules: frozenset[str]
    policy_version: str
    fixed: tuple[tuple[str, str], ...]
    bounds: tuple[tuple[str, str], ...]
    places: tuple[Location, ...]
    words: str = field(compare=False)

    def covers(self, other: Scope) -> bool:
        """
        Whether an approval with this scope covers a call with another scope.

        Both must have the same roles, so that an approval with places never covers a call without.
        """
        return (
            (self.server, self.tool, self.definition) == (other.server, other.tool, other.definition)
            and other.rules <= self.rules
            and (self.policy_version, self.fixed, self.bounds) == (other.policy_version, other.fixed, other.bounds)
            and {place.role for place in self.places} == {place.role for place in other.places}
            and all(any(place.holds(each) for place in self.places) for each in other.places)
        )


class Permission(msgspec.Struct, frozen=True):
    """
    A kept approval.

    :param number: the number of the approved escalation.
    :param by: who approved it.
    :param since: seconds since the epoch.
    :param used: the number of further calls that it has permitted.
    """

    number: int
    scope: Scope
    by: str
    since: float
    used: int = 0


def make_scope(
    server: str,
    tool: str,
    verdict: Verdict,
    *,
    definition: str,
    schema: Mapping[str, Any],
    policy_version: str,
    home: str,
    is_directory: Callable[[str], bool],
    shown: Callable[[str], str],
) -> Scope | None:
    """
    Make the scope of an escalated call.

    :param verdict: the verdict of the call, which is to escalate.
    :param definition: digest of the tool's definition.
    :param schema: the tool's input schema.
    :param home: the user's home directory. A scope never includes it as a whole, or a directory that contains it.
    :param is_directory: whether a real path is a directory now.
    :param shown: returns the display name of a path.
    :returns: the scope; ``None`` for a call whose approval cannot be kept.
    """
    rules = frozenset((verdict.rule, *verdict.asking))
    if not all(_can_be_kept(rule, verdict.resources) for rule in rules):
        return None
    places: list[Location] = []
    for resource in verdict.resources:
        if (place := _place(resource, home, is_directory)) is None:
            return None
        if place not in places:
            places.append(place)
    placed = {resource.argument for resource in verdict.resources if resource.role != UNKNOWN_ROLE}
    guessed = {resource.argument for resource in verdict.resources if resource.role == UNKNOWN_ROLE}
    others = {name: verdict.arguments[name] for name in sorted(verdict.arguments) if name not in placed}
    may = bounds({name: value for name, value in others.items() if name not in guessed}, schema)
    fixed = tuple((name, _fixed(value)) for name, value in others.items() if name not in may)
    words = _words(f"{server}.{tool}", fixed, may, places, shown)
    return Scope(server, tool, definition, rules, policy_version, fixed, tuple(may.items()), tuple(places), words)


def is_normalized(path: str) -> bool:
    """Whether a path is absolute and normalized, without ``..``, ``.`` and repeated slashes."""
    return path.startswith("/") and not path.startswith("//") and normpath(path) == path


def _can_be_kept(rule: str, resources: Iterable[Resource]) -> bool:
    if rule in (UNANNOTATED, NO_RULE):
        return True
    if (role := HOST_RULES.get(rule)) is not None:  # other roles would be judged by rules, which the first precedes
        return all(resource.role == role for resource in resources)
    return not rule.startswith("structural-")


def _place(resource: Resource, home: str, is_directory: Callable[[str], bool]) -> Location | None:
    role, value = resource.role, resource.value
    if role in PATH_ROLES:
        if not is_normalized(value):
            return None
        directory = value if is_directory(value) else dirname(value)
        return Location(role, value) if Root(directory).holds(home) else Location(role, directory, below=True)
    if role == "fetch-url":
        return None if (origin := web_origin(value)) is None else Location(role, origin)
    if role == "git-remote-url" and not is_certain_remote(value):
        return None
    return Location(role, value)


def _fixed(value: Any) -> str:
    text = _encoder.encode(value).decode()
    if len(text) <= VALUE_LIMIT:
        return text
    return f"the {len(text)} characters that were shown (sha256 {hashlib.sha256(text.encode()).hexdigest()})"


def _words(
    name: str,
    fixed: Iterable[tuple[str, str]],
    may: Mapping[str, str],
    places: Iterable[Location],
    shown: Callable[[str], str],
) -> str:
    where: dict[tuple[str, bool], list[str]] = {}
    for place in places:
        if place.role != UNKNOWN_ROLE:  # the value of its argument is fixed, and shown
            value = shown(place.value) if place.role in PATH_ROLES else place.value
            where.setdefault((value, place.below), []).append(place.role)
    described = [f"{named(argument)}={value}" for argument, value in fixed]
    described += [f"{named(argument)}: {values}" for argument, values in may.items()]
    how = f" with {', '.join(described)}" if described else ""
    if not where:
        return f"every call of {name}{how or ' without arguments'}"
    if len(where) == 1:
        return f"{name} {_where(*next(iter(where)))}{how}"
    each = (f"{' and '.join(roles)} {_where(value, below)}" for (value, below), roles in where.items())
    return f"{name}, {', '.join(each)}{how}"


def _where(value: str, below: bool) -> str:
    named = _encoder.encode(value).decode() if " " in value else value
    return f"in {named} and below" if below else f"at {named}"
