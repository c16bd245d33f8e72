"""Annotations that a model proposes for the tools of one server: what is refused, and the rounds until none is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.structured import convert
from ironcurtain.policy.annotations import Conditional, ToolAnnotation
from ironcurtain.policy.drafts import meaning
from ironcurtain.policy.loading import tool_annotations
from ironcurtain.policy.roles import RESOURCE_ROLES
from ironcurtain.policy_compiler import prompt
from ironcurtain.policy_compiler.proposal import hidden_text, json_answer
from ironcurtain.policy_compiler.rounds import ROUNDS, Say
from ironcurtain.text.display import json_line, shorten

BATCH_CHARACTERS = 64 * 1024
"""Maximum length of the definitions in one conversation, unless a single one is longer."""

COMMENT_LIMIT = 200
"""Maximum length in characters of a comment; the rest is cut off."""

Definitions = Mapping[str, Mapping[str, Any]]
"""Pinned definitions by name of tool."""

_TELLING = re.compile(r"path|file|dir|folder|url|uri|host|domain|repo|remote", re.IGNORECASE)
"""More than a draft of an annotation goes by: a person is only told to look closely."""


class _Answer(Struct, frozen=True, forbid_unknown_fields=True):
    tools: tuple[dict[str, Any], ...]


class Annotated(msgspec.Struct, frozen=True):
    """
    :param tools: the valid annotations, by name of tool.
    :param refused: why each other tool has none. A person is asked about each call of such a tool.
    """

    tools: Mapping[str, ToolAnnotation]
    refused: Mapping[str, str]


def parse_annotations(text: str, server: str, wanted: Definitions) -> Annotated:
    """
    :param text: the model's answer: one JSON object, alone or in a fenced block.
    :param wanted: the tools to annotate. Annotations of others are ignored, so that none can replace an existing one.
    """
    try:
        answer: _Answer = convert("answer", json_answer(text), _Answer)
    except ConfigurationError as e:
        return Annotated({}, dict.fromkeys(wanted, f"the answer is not valid: {e}"))
    tools: dict[str, ToolAnnotation] = {}
    refused = dict.fromkeys(wanted, "the answer has no annotation of it")
    for raw in answer.tools:
        name = raw.get("toolName")
        if not isinstance(name, str) or name not in wanted:
            continue
        try:
            tool = _checked(server, raw, _properties(wanted[name]))
        except ConfigurationError as e:
            refused[name] = str(e)
            continue
        if tools.setdefault(name, tool) != tool:
            refused[name] = "the answer has two different annotations of it"
            continue
        refused.pop(name, None)
    return Annotated({name: tool for name, tool in tools.items() if name not in refused}, refused)


def batches(server: str, definitions: Definitions) -> Iterator[AnnotationRounds]:
    """:returns: rounds over all definitions, so few in each that they fit into the window of a model."""
    batch: dict[str, Mapping[str, Any]] = {}
    size = 0
    for name, definition in definitions.items():
        size += (length := len(json_line(definition)))
        if batch and size > BATCH_CHARACTERS:
            yield AnnotationRounds(server, batch)
            batch, size = {}, length
        batch[name] = definition
    if batch:
        yield AnnotationRounds(server, batch)


def doubts(definition: Mapping[str, Any], tool: ToolAnnotation) -> list[str]:
    """:returns: the arguments that look like paths or addresses, but are not judged in each call."""
    found = []
    for name, schema in _properties(definition).items():
        roles = tool.args.get(name, ())
        variants = (roles.default, *(case.roles for case in roles.when)) if isinstance(roles, Conditional) else (roles,)
        judged = all(not RESOURCE_ROLES.isdisjoint(each) for each in variants)
        if not judged and (_TELLING.search(name) or meaning(name, schema) is not None):
            found.append(name)
    return found


@dataclass(slots=True)
class AnnotationRounds:
    """
    The rounds between the model and the checks.

    :param definitions: those of the tools that need an annotation.
    """

    server: str
    definitions: Definitions
    _answers: int = field(default=0, init=False)
    _valid: dict[str, ToolAnnotation] = field(default_factory=dict, init=False)

    def begin(self) -> Say:
        """:returns: the first message."""
        return Say(prompt.annotation_request(self.server, self.definitions.values()))

    def answered(self, text: str) -> Say | Annotated:
        """
        Take an answer of the model.

        :returns: what to do next. When the rounds are used up, the valid annotations.
        """
        self._answers += 1
        left = {name: each for name, each in self.definitions.items() if name not in self._valid}
        found = parse_annotations(text, self.server, left)
        self._valid |= found.tools
        if found.refused and self._answers < ROUNDS:
            return Say(prompt.annotations_refused(found.refused))
        return Annotated(self._valid, found.refused)


def as_answer(tool: ToolAnnotation) -> str:
    """:returns: the answer that has this annotation only."""
    return msgspec.json.encode({"tools": [tool]}).decode()


def _checked(server: str, raw: Mapping[str, Any], properties: Mapping[str, Any]) -> ToolAnnotation:
    """:raises ConfigurationError: the annotation is not valid, or does not fit the tool's arguments."""
    if hidden_text(dict(raw)) is not None:
        raise ConfigurationError("answer", "it has invisible characters")
    [tool] = tool_annotations({"servers": {server: {"tools": [raw]}}}, "answer").servers[server].tools
    if missing := sorted(properties.keys() - tool.args.keys()):
        raise ConfigurationError("answer", f"these arguments have no roles: {', '.join(missing)}")
    if unknown := sorted(tool.args.keys() - properties.keys()):
        raise ConfigurationError("answer", f"the tool has no such arguments: {', '.join(unknown)}")
    for name, roles in tool.args.items():
        cases = roles.when if isinstance(roles, Conditional) else ()
        if not all((roles.default, *(case.roles for case in cases)) if isinstance(roles, Conditional) else (roles,)):
            raise ConfigurationError("answer", f'{name} needs a role: ["none"] if no other fits')
        for case in cases:
            if case.condition.arg not in properties:
                raise ConfigurationError("answer", f"{name} depends on {case.condition.arg}, which is no argument")
    return replace(tool, comment=shorten(tool.comment, COMMENT_LIMIT))


def _properties(definition: Mapping[str, Any]) -> Mapping[str, Any]:
    """:param definition: one that suits (:func:`~ironcurtain.policy.drafts.unsuited`)."""
    found: Mapping[str, Any] = definition["inputSchema"].get("properties", {})
    return found
