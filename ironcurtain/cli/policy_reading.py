"""Show a person what a model proposes, one by one, and ask."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ironcurtain.cli.output import print_lines
from ironcurtain.cli.questions import chosen
from ironcurtain.text.display import one_line, paragraphs
from ironcurtain.text.quantities import counted

if TYPE_CHECKING:
    from ironcurtain.policy.annotations import Annotations
    from ironcurtain.policy.rules import Policy
    from ironcurtain.policy_compiler.changes import RuleChange
    from ironcurtain.policy_compiler.parts import Part, ServerTools

DESCRIPTION_LIMIT = 2000
"""Maximum number of characters shown of a tool's description; 'ironcurtain tools show' shows all."""

_T = TypeVar("_T")


class Reading:
    """The questions to a person. After ``q`` nothing more is asked."""

    def __init__(self) -> None:
        self._stopped = False

    def accepted(self, each: Iterable[_T], shown: Callable[[_T], str]) -> list[_T]:
        """:returns: what the person accepts, after it was shown."""
        found: list[_T] = []
        for item in each:
            if self._stopped:
                break
            print_lines(shown(item))
            answer = chosen("Accept?", ("y", "n", "q"), default="n")
            self._stopped = answer == "q"
            found += [item] if answer == "y" else []
        return found


def read_annotations(reading: Reading, parts: Sequence[Part], servers: Sequence[ServerTools]) -> Annotations:
    """:returns: the annotations that the person accepts."""
    from ironcurtain.policy.annotations import Annotations, ServerAnnotations

    definitions = {server.name: server.definitions for server in servers}
    proposed = [(part.server, tool) for part in parts for tool in part.annotated.tools.values()]
    accepted = Annotations()
    for server, tool in reading.accepted(proposed, lambda each: _annotation(*each, definitions[each[0]][each[1].name])):
        accepted = accepted.merged(Annotations({server: ServerAnnotations((tool,))}))
    return accepted


def read_changes(
    reading: Reading, differing: Sequence[RuleChange], annotations: Annotations, policy: Policy
) -> list[RuleChange]:
    """
    :param annotations: those that are in force with what the person accepted.
    :returns: the changes that the person accepts.
    """
    from msgspec.structs import replace

    from ironcurtain.policy.check import check

    offered = []
    for change in differing:
        alone = () if change.new is None else (change.new,)
        if any(each.code == "never-matches" for each in check(replace(policy, rules=alone), annotations)):
            print_lines(f"Not offered: {one_line(change.name)}, which needs annotations that are not accepted.")
        else:
            offered.append(change)
    return reading.accepted(offered, _rule)


def tell(parts: Sequence[Part], sentences: Sequence[str]) -> None:
    """Print on standard error what came of a compilation."""
    for line in _told(parts, sentences):
        print_lines(line, err=True)


def _told(parts: Sequence[Part], sentences: Sequence[str]) -> Iterator[str]:
    from ironcurtain.policy_compiler.parts import Skipped
    from ironcurtain.policy_compiler.rounds import Compiled, GaveUp

    concerned: set[int] = set()
    for part in parts:
        name = part.server or "all servers"
        if part.annotated.tools:
            yield f"{name}: {counted(len(part.annotated.tools), 'annotated tool')}"
        for tool, why in part.annotated.refused.items():
            asked = "has no annotation, so that you are asked about each of its calls"
            yield f"{name}: {one_line(tool, 64)} {asked}: {one_line(why, 300)}"
        match part.outcome:
            case Skipped() if not part.annotated.refused:
                yield f"{name}: skipped, since no definition of its tools is pinned: start a session with it first"
            case GaveUp(why):
                yield f"{name}: the model proposed nothing that is valid: {one_line(why, 300)}"
            case Compiled(proposal):
                concerned |= {each.sentence for each in proposal.rules}
                rules, scenarios = counted(len(proposal.rules), "rule"), counted(len(proposal.scenarios), "scenario")
                yield f"{name}: {rules}, {scenarios}: none failed"
    for number, sentence in enumerate(sentences, 1):
        if number not in concerned:
            yield f"no rule comes from: {one_line(sentence)}"


def _annotation(server: str, tool: Any, definition: Mapping[str, Any]) -> str:
    from ironcurtain.policy.written import annotation_toml
    from ironcurtain.policy_compiler.annotating import doubts

    said = str(definition.get("description", ""))
    lines = [f"\n{server}.{one_line(tool.name)}, of which the server says:"]
    lines += [f"| {line}" for line in paragraphs(said[:DESCRIPTION_LIMIT]).splitlines()]
    if len(said) > DESCRIPTION_LIMIT:
        lines.append(f"(and {len(said) - DESCRIPTION_LIMIT} more characters: 'ironcurtain tools show' has them)")
    lines += [f"+ {line}" for line in paragraphs(annotation_toml(server, tool)).splitlines()]
    lines += [
        f"Look closely: {one_line(name, 64)} may be a path or an address, but no rule would judge it as one."
        for name in doubts(definition, tool)
    ]
    return "\n".join(lines)


def _rule(change: RuleChange) -> str:
    from ironcurtain.policy.written import rule_toml

    rule = change.new or change.old
    assert rule is not None
    lines = [f"\n{rule.principle}"]
    lines += [f"- {line}" for line in rule_toml(change.old).splitlines()] if change.old is not None else []
    lines += [f"+ {line}" for line in rule_toml(change.new).splitlines()] if change.new is not None else []
    return paragraphs("\n".join(lines))
