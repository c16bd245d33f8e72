"""
What an approval that is kept permits: the same kind of call, in the same place, while the session lasts.

A scope is narrow on purpose. It holds the tool as it was defined, the rules that asked, the policy's version, where the
call acts, and for each other argument the bound that the schema sets, or else its very value. The person is told what
may differ. Another rule, role, place or argument is asked about as before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from posixpath import dirname, normpath
from typing import Any

import msgspec

from ironcurtain.escalation.bounds import bounds, named
from ironcurtain.policy.paths import Root
from ironcurtain.policy.roles import PATH_ROLES
from ironcurtain.policy.targets import is_certain_remote, web_origin
from ironcurtain.policy.verdict import Resource, Verdict

DOMAIN_RULE = "structural-domain-escalate"
"""The one check of the engine's own whose escalation can be kept: it looks at nothing but the host."""

VALUE_LIMIT = 200
"""Most characters of a value that are repeated where it is said for which calls an approval stands."""

_encoder = msgspec.json.Encoder(order="deterministic")


@dataclass(frozen=True, slots=True)
class Place:
    """
    Where a call acts.

    :param role: what is done there.
    :param value: a real path, the scheme, host and port of an address, or the exact value of anything else.
    :param below: whether it is a directory with everything below it.
    """

    role: str
    value: str
    below: bool = False

    def holds(self, other: Place) -> bool:
        """Whether all of another place lies in this one, and has its role."""
        if self.role != other.role or not self.below:
            return self == other
        if other.value == self.value and not other.below:  # what lies now where the directory was is something else
            return False
        return is_plain(other.value) and Root(self.value).holds(other.value)


@dataclass(frozen=True, slots=True)
class Scope:
    """
    The calls for which an approval can stand.

    :param definition: digest of the tool's definition.
    :param rules: every rule that asks.
    :param ways: the arguments that keep the value they have, with it as JSON; of a long one with its digest.
    :param bounds: the arguments that may have other values, and which, in words.
    :param places: empty for a call that names nothing that is judged; they bound the arguments that name them.
    :param words: says it to people; agents chose some of it, so it is escaped where it is shown.
    """

    server: str
    tool: str
    definition: str
    rules: frozenset[str]
    policy_version: str
    ways: tuple[tuple[str, str], ...]
    bounds: tuple[tuple[str, str], ...]
    places: tuple[Place, ...]
    words: str = field(compare=False)

    def covers(self, other: Scope) -> bool:
        """
        Whether an approval of this also permits a call of another scope.

        It must have the same roles, so that a call that names nothing is never covered by one that named a place.
        """
        return (
            (self.server, self.tool, self.definition) == (other.server, other.tool, other.definition)
            and other.rules <= self.rules
            and (self.policy_version, self.ways, self.bounds) == (other.policy_version, other.ways, other.bounds)
            and {place.role for place in self.places} == {place.role for place in other.places}
            and all(any(place.holds(each) for place in self.places) for each in other.places)
        )


@dataclass(frozen=True, slots=True)
class Permission:
    """
    An approval that was kept.

    :param number: the escalation's that was approved.
    :param by: who approved it.
    :param since: seconds since the epoch.
    :param used: how many calls it permitted besides that one.
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
    :param verdict: that a person is to be asked.
    :param definition: digest of the tool's definition.
    :param schema: of the tool's arguments.
    :param home: the user's home. It is never permitted as a whole, nor is a directory that holds it.
    :param is_directory: whether a real path is a directory now.
    :param shown: gives the name by which people know a path.
    :returns: ``None`` for a call whose approval cannot be kept.
    """
    rules = frozenset((verdict.rule, *verdict.asking))
    if not all(_can_be_kept(rule, verdict.resources) for rule in rules):
        return None
    places: list[Place] = []
    for resource in verdict.resources:
        if (place := _place(resource, home, is_directory)) is None:
            return None
        if place not in places:
            places.append(place)
    placed = {resource.argument for resource in verdict.resources}
    others = {name: verdict.arguments[name] for name in sorted(verdict.arguments) if name not in placed}
    may = bounds(others, schema)
    ways = tuple((name, _fixed(value)) for name, value in others.items() if name not in may)
    words = _words(f"{server}.{tool}", ways, may, places, shown)
    return Scope(server, tool, definition, rules, policy_version, ways, tuple(may.items()), tuple(places), words)


def is_plain(path: str) -> bool:
    """Whether a path is absolute and means what it says, without ``..`` and the like."""
    return path.startswith("/") and not path.startswith("//") and normpath(path) == path


def _can_be_kept(rule: str, resources: Iterable[Resource]) -> bool:
    if rule == DOMAIN_RULE:  # it comes before the rules, which have nothing else to say about the same host
        return all(resource.role == "fetch-url" for resource in resources)
    return not rule.startswith("structural-")


def _place(resource: Resource, home: str, is_directory: Callable[[str], bool]) -> Place | None:
    role, value = resource.role, resource.value
    if role in PATH_ROLES:
        if not is_plain(value):
            return None
        directory = value if is_directory(value) else dirname(value)
        return Place(role, value) if Root(directory).holds(home) else Place(role, directory, below=True)
    if role == "fetch-url":
        return None if (origin := web_origin(value)) is None else Place(role, origin)
    if role == "git-remote-url" and not is_certain_remote(value):
        return None
    return Place(role, value)


def _fixed(value: Any) -> str:
    text = _encoder.encode(value).decode()
    if len(text) <= VALUE_LIMIT:
        return text
    return f"the {len(text)} characters that were shown (sha256 {hashlib.sha256(text.encode()).hexdigest()})"


def _words(
    name: str,
    ways: Iterable[tuple[str, str]],
    may: Mapping[str, str],
    places: Iterable[Place],
    shown: Callable[[str], str],
) -> str:
    where: dict[tuple[str, bool], list[str]] = {}
    for place in places:
        where.setdefault((shown(place.value) if place.role in PATH_ROLES else place.value, place.below), []).append(
            place.role
        )
    said = [f"{named(argument)}={value}" for argument, value in ways]
    said += [f"{named(argument)}: {values}" for argument, values in may.items()]
    how = f" with {', '.join(said)}" if said else ""
    if not where:
        return f"every call of {name}{how or ' without arguments'}"
    if len(where) == 1:
        return f"{name} {_where(*next(iter(where)))}{how}"
    each = (f"{' and '.join(roles)} {_where(value, below)}" for (value, below), roles in where.items())
    return f"{name}, {', '.join(each)}{how}"


def _where(value: str, below: bool) -> str:
    named = _encoder.encode(value).decode() if " " in value else value
    return f"in {named} and below" if below else f"at {named}"
