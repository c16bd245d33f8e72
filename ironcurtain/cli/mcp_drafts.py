"""What is known of the tools of a server, and drafts of annotations for the others: shown, and written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from ironcurtain.cli.mcp_candidates import NAME_LIMIT
from ironcurtain.cli.output import home
from ironcurtain.text.display import one_line
from ironcurtain.text.quantities import counted

if TYPE_CHECKING:
    from ironcurtain.policy.drafts import Draft
    from ironcurtain.policy.roles import Role
    from ironcurtain.policy.rules import Policy

LINE_LIMIT = 400
"""Maximum number of characters shown of why a tool has no draft."""

DRAFT_LIMIT = 4000
"""Maximum number of characters of a draft, which is shown whole: nobody can agree to what they have not seen."""


_DONE: Mapping[Role, str] = {"read-path": "read", "write-path": "created or changed", "delete-path": "removed"}
_USES: Mapping[Role, str] = {
    "write-history": "a repository whose history grows",
    "delete-history": "a repository that loses history",
    "fetch-url": "an address that is fetched",
    "git-remote-url": "a git remote",
    "github-owner": "an owner at GitHub",
    "github-repo": "a repository at GitHub",
    "proxy-domain": "a host",
    "app": "an application",
}
"""Roles that are judged each, in words."""


class Drafts(msgspec.Struct, frozen=True):
    """
    :param known: the tools that have an annotation, by name: their arguments' roles.
    :param drafted: the drafts for others.
    :param refused: why there is none for the rest.
    """

    server: str
    known: dict[str, str] = msgspec.field(default_factory=dict)
    drafted: dict[str, Draft] = msgspec.field(default_factory=dict)
    refused: dict[str, str] = msgspec.field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        """:returns: what is shown of each tool."""
        parts = ((self.known, "known"), (self.drafted, "drafted"), (self.refused, "without a draft"))
        counts = [f"{len(part)} {word}" for part, word in parts if part]
        every = sum(len(part) for part, _ in parts)
        yield ": ".join([f"{self.server} starts, and has {counted(every, 'tool')}", *filter(None, [", ".join(counts)])])
        for name in sorted({*self.known, *self.drafted, *self.refused}):
            if name in self.drafted:
                said = f"drafted: {one_line(_told(self.drafted[name]))}"
            elif name in self.known:
                said = f"known: {one_line(self.known[name])}"
            else:
                said = f"you are asked about each call, since {one_line(self.refused[name], LINE_LIMIT)}"
            yield f"  {one_line(name, NAME_LIMIT)}  {said}"


def drafts(server: str, tools: Mapping[str, Mapping[str, Any]], policy: Policy) -> Drafts:
    """
    :param tools: definitions by name.
    :param policy: the one in force.
    """
    from ironcurtain.policy.annotations import Conditional
    from ironcurtain.policy.drafts import draft
    from ironcurtain.policy.loading import default_annotations

    found, annotated = Drafts(server), default_annotations().merged(policy.annotations).table()
    for name, definition in tools.items():
        if (known := annotated.get((server, name))) is not None:
            roles = ((n, r.every if isinstance(r, Conditional) else r) for n, r in known.args.items())
            found.known[name] = _uses(roles)
        elif isinstance(made := draft(definition), str):
            found.refused[name] = made
        elif len(one_line(_told(made))) > DRAFT_LIMIT:
            found.refused[name] = "its draft would be too long to be read"
        else:
            found.drafted[name] = made
    return found


def write_drafts(found: Drafts, path: Path, policy: Policy) -> list[str]:
    """
    Add the drafts to the policy file, with a rule that asks about the server's calls if no rule names it.

    :param path: the policy file.
    :returns: sentences about what was done.
    :raises ConfigurationError: the file cannot be changed.
    """
    from ironcurtain.errors import ConfigurationError
    from ironcurtain.files.atomic import write_atomically
    from ironcurtain.home.layout import read_configuration
    from ironcurtain.policy.annotations import Annotations, ServerAnnotations
    from ironcurtain.policy.loading import DEFAULT_POLICY
    from ironcurtain.policy.rules import Conditions, Rule
    from ironcurtain.policy.written import extended

    if not found.drafted:
        return []
    if path.suffix == ".json":
        raise ConfigurationError(str(path), "a compiled policy in JSON is not changed")
    names = {rule.name for rule in policy.rules}
    rules = []
    if not any(found.server in (rule.conditions.server or ()) for rule in policy.rules):
        name = next(name for name in _names(f"ask-{found.server}") if name not in names)
        reason = f"you added the server {found.server}, and no other rule is about this call"
        rules = [Rule(name, Conditions(server=(found.server,)), "escalate", reason)]
    tools = ServerAnnotations(tuple(draft.tool for draft in found.drafted.values()))
    text = read_configuration(path)
    changed = extended(
        str(path), DEFAULT_POLICY.read_text() if text is None else text, Annotations({found.server: tools}), rules
    )
    home().prepare()
    write_atomically(path, changed.encode())
    rule = f", and the rule {rules[0].name}, which asks about the server's calls" if rules else ""
    return [f"{path}: {counted(len(found.drafted), 'new annotation')}{rule}"]


def _names(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}-{number}" for number in range(2, 10_000))


def _told(found: Draft) -> str:
    return _uses(((name, roles) for name, roles in found.tool.args.items() if isinstance(roles, tuple)), found.why)


def _uses(roles: Iterable[tuple[str, Iterable[Role]]], why: Mapping[str, str] = MappingProxyType({})) -> str:
    """:returns: what a tool does with its arguments; those of which nothing else is to be said together, and last."""
    said, rest = list[str](), list[str]()
    for name, each in roles:
        if words := use_of(each):
            said.append(f"{name} is {words} ({why[name]})" if name in why else f"{name} is {words}")
        else:
            rest.append(name)
    if rest:
        said.append(f"{', '.join(rest)}: neither path nor address")
    return "; ".join(said) or "no arguments"


def use_of(roles: Iterable[Role]) -> str:
    """:returns: roles of an argument in words; none for one that is not judged by its value."""
    given = dict.fromkeys(roles)
    done = [words for role, words in _DONE.items() if role in given]
    return ", and ".join([*([f"a path: {', '.join(done)}"] if done else []), *(_USES[r] for r in given if r in _USES)])
