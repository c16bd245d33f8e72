"""Find probable mistakes in a policy: rules that never match, and rules that allow too much."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Literal

import msgspec
from msgspec.structs import replace

from ironcurtain.home.faults import wrong
from ironcurtain.home.lines import Place
from ironcurtain.policy import network
from ironcurtain.policy.annotations import Annotations
from ironcurtain.policy.engine import RESOURCE_TOOL
from ironcurtain.policy.lists import expand, pattern_problem, split_port
from ironcurtain.policy.matching import why_irrelevant
from ironcurtain.policy.pathmap import AGENT_WORKSPACE
from ironcurtain.policy.paths import Root
from ironcurtain.policy.roles import RESOURCE_ROLES
from ironcurtain.policy.rules import Conditions, Policy, Rule

_NETWORK_TOOLS = " and ".join(network.SCHEMAS)

Severity = Literal["error", "warning"]


class PolicyFinding(msgspec.Struct, frozen=True):
    """
    A probable mistake.

    :param severity: ``error`` for what cannot be intended: no session starts with it.
    :param code: a stable identifier for programs.
    :param rule: the name of the rule or list.
    :param place: where it is in the file.
    """

    severity: Severity
    code: str
    rule: str
    message: str
    place: Place = ()


def check(
    policy: Policy, annotations: Annotations, servers: Collection[str] = (), home: str = ""
) -> list[PolicyFinding]:
    """
    Check a policy.

    :param annotations: those of the servers in use, besides those of the policy.
    :param servers: the names of all servers that the person configured, if they are known.
    :param home: real path of the user's home directory, if it is known.
    """
    known = annotations.merged(policy.annotations)
    checker = _Checker(policy, known, servers, home)
    places: list[Place] = [*(tuple(rule.name.split(".")) for rule in policy.tables)]
    places += [("rules", index) for index in range(len(policy.rules))]
    each = (
        replace(finding, place=place)
        for number, (place, rule) in enumerate(zip(places, policy.every_rule, strict=True))
        for finding in checker.rule(number, rule)
    )
    return [*checker.names(), *checker.lists(), *checker.own_server(), *each]


def require_right(policy: Policy, annotations: Annotations, servers: Collection[str], text: str) -> Policy:
    """
    :param annotations: as for :func:`check`.
    :param servers: as for :func:`check`.
    :param text: the text of its file, to find lines.
    :returns: the same policy.
    :raises ConfigurationError: :func:`check` finds an error in it.
    """
    for finding in check(policy, annotations, servers):
        if finding.severity == "error":
            detail = f"rule {finding.rule}: {finding.message} ('ironcurtain policy check' lists all mistakes)"
            raise wrong(policy.source, detail, text, finding.place)
    return policy


class _Checker:
    def __init__(self, policy: Policy, annotations: Annotations, servers: Collection[str], home: str) -> None:
        self._policy, self._home = policy, home
        self._tools = {key: tool.roles for key, tool in annotations.table().items()}
        self._servers = {server for server, _ in self._tools}
        self._unannotated = frozenset(servers) - self._servers
        # Every server may have resources: of a file, of an address, or of a kind that has no role.
        self._tools |= {(server, RESOURCE_TOOL): frozenset(("read-path", "fetch-url")) for server in self._servers}
        self._rules = [(rule, self._concerned(rule)) for rule in policy.every_rule]

    def names(self) -> Iterator[PolicyFinding]:
        """Find rules that share a name: a verdict would not identify the rule."""
        seen = {rule.name for rule in self._policy.tables}
        for index, rule in enumerate(self._policy.rules):
            if rule.name in seen:
                yield PolicyFinding(
                    "error", "duplicate-name", rule.name, "another rule has this name", ("rules", index)
                )
            seen.add(rule.name)

    def lists(self) -> Iterator[PolicyFinding]:
        """Find lists that no rule names."""
        named = {
            entry[1:] for rule in self._policy.every_rule for entry in _allowed(rule.conditions) if entry[:1] == "@"
        }
        for name in self._policy.lists.keys() - named:
            yield PolicyFinding("warning", "unused-list", name, "no rule names this list")

    def own_server(self) -> Iterator[PolicyFinding]:
        """Find annotations of the built-in server: its arguments would be judged as something else."""
        if (name := network.SERVER) in self._policy.annotations.servers:
            message = f"the server {name} is IronCurtain's own, and its tools are annotated: remove these annotations"
            yield PolicyFinding("error", "own-server", name, message, ("tools", name))

    def rule(self, index: int, rule: Rule) -> Iterator[PolicyFinding]:
        """
        Find the mistakes in one rule.

        :param index: its number among all rules.
        """
        yield from self._unknown(rule)
        yield from self._empty(rule)
        yield from self._broad(rule)
        _, concerned = self._rules[index]
        # What nobody has annotated is denied by rules, too.
        named = rule.then != "allow" and not self._unannotated.isdisjoint(rule.conditions.server or ())
        if not concerned and not named and RESOURCE_TOOL not in (rule.conditions.tool or ()):
            yield PolicyFinding("error", "never-matches", rule.name, "no annotated tool matches its conditions")
            return
        for earlier, of_earlier in self._rules[:index]:
            if concerned <= of_earlier and _covers(earlier, rule):
                message = f"the earlier rule {earlier.name} matches every call that this rule matches"
                yield PolicyFinding("warning", "shadowed", rule.name, message)
                return

    def _concerned(self, rule: Rule) -> frozenset[tuple[str, str, str]]:
        """:returns: each (server, tool, role) that the rule can decide."""
        return frozenset(
            (server, tool, role)
            for (server, tool), roles in self._tools.items()
            for role in (roles & RESOURCE_ROLES or ("",))
            if not why_irrelevant(rule, server, tool, role, roles)
        )

    def _unknown(self, rule: Rule) -> Iterator[PolicyFinding]:
        conditions = rule.conditions
        for server in conditions.server or ():
            if server not in self._servers:
                yield PolicyFinding("warning", "unknown-server", rule.name, f"the server {server} has no annotations")
        servers = set(conditions.server or self._servers) & self._servers
        for tool in conditions.tool or ():
            if servers and not any((server, tool) in self._tools for server in servers):
                message = f"the tool {tool} has no annotations"
                if servers == {network.SERVER}:
                    message = f"the server {network.SERVER} has no tool {tool}; its tools are {_NETWORK_TOOLS}"
                yield PolicyFinding("warning", "unknown-tool", rule.name, message)

    def _empty(self, rule: Rule) -> Iterator[PolicyFinding]:
        conditions = rule.conditions
        sets = (("server", conditions.server), ("tool", conditions.tool), ("roles", conditions.roles))
        for name, values in sets:
            if values == ():
                yield PolicyFinding(
                    "error", "empty-condition", rule.name, f"{name} is empty, so the rule never matches"
                )
        for entry in _allowed(conditions):
            if entry.startswith("@") and entry[1:] not in self._policy.lists:
                yield PolicyFinding("error", "missing-list", rule.name, f"the list {entry} does not exist")
        for each in (*((conditions.domains,) if conditions.domains else ()), *conditions.lists):
            if not expand(each.allowed, self._policy.lists):
                yield PolicyFinding("error", "empty-list", rule.name, "a list has no values, so the rule never matches")
        of_hosts = [each for each in conditions.lists if each.match_type == "domains"]
        for each in (*((conditions.domains,) if conditions.domains else ()), *of_hosts):
            for pattern in expand(each.allowed, self._policy.lists):
                why = pattern_problem(pattern)
                if not why and "/" in pattern and "git-remote-url" not in each.roles:
                    why = "only git remotes (role git-remote-url) are compared with repositories"
                if not why and split_port(pattern)[1] is not None and network.SERVER not in (conditions.server or ()):
                    why = f"only rules for the server {network.SERVER} compare ports"
                if why:
                    yield PolicyFinding("error", "no-domain", rule.name, f"{pattern!r} matches nothing: {why}")

    def _broad(self, rule: Rule) -> Iterator[PolicyFinding]:
        conditions = rule.conditions
        if rule.then != "allow":
            return
        if conditions.names_no_role and conditions.server is None and conditions.tool is None:
            yield PolicyFinding("error", "allows-everything", rule.name, "it allows every call to every tool")
        elif conditions.names_no_role and conditions.tool is None:
            yield PolicyFinding("warning", "allows-server", rule.name, "it allows every tool of a server")
        for pattern in expand(_allowed(conditions), self._policy.lists):
            host, _ = split_port(pattern)
            if host == "*":
                yield PolicyFinding("warning", "wildcard", rule.name, "it allows every host name")
            elif host.startswith("*.") and "." not in host.removeprefix("*.").removesuffix("."):
                yield PolicyFinding("warning", "wildcard", rule.name, f"it allows every host name in {host[1:]}")
        if conditions.paths is not None and is_broad(conditions.paths.directory, self._home):
            yield PolicyFinding(
                "warning", "broad-path", rule.name, f"it allows everything within {conditions.paths.within}"
            )


def is_broad(directory: str, home: str) -> bool:
    """
    :param directory: as :func:`~ironcurtain.policy.named_paths.directory_of` reads it.
    :param home: real path of the user's home directory; empty if it is not known.
    :returns: whether it is the whole file system, a directory right below its root, or a home or what contains it.
    """
    if directory == "~" or (home and Root(directory).holds(home)):
        return True
    return directory != AGENT_WORKSPACE and not directory.startswith("~") and directory.count("/") < 2


def _allowed(conditions: Conditions) -> list[str]:
    domains = conditions.domains.allowed if conditions.domains else ()
    return [*domains, *(entry for condition in conditions.lists for entry in condition.allowed)]


def _covers(before: Rule, after: Rule) -> bool:
    """Whether the conditions of the earlier rule hold for all values for which those of the later rule hold."""
    earlier, later = before.conditions, after.conditions
    if earlier.has_memory:
        return False
    if before.then == "allow" and earlier.names_no_role and later.names("git-remote-url"):
        return False  # a rule that allows a remote must name the role: see PreparedRule.fails
    if before.then == "allow" != after.then and (earlier.lists or earlier.domains is not None):
        return False  # it needs all values to match, and the later one any of them
    if earlier.lists and earlier.lists != later.lists:
        return False
    if earlier.domains is not None and earlier.domains != later.domains:
        return False
    if earlier.paths is None:
        return True
    if later.paths is None:
        return False
    outer, inner = earlier.paths.directory.rstrip("/"), later.paths.directory.rstrip("/")
    return inner == outer or inner.startswith(f"{outer}/")
