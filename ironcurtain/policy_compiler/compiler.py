"""Ask the model about each server until the rounds are over, and keep its answers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from ironcurtain.files.atomic import write_atomically
from ironcurtain.home.layout import private_directory
from ironcurtain.llm.conversation import Conversation
from ironcurtain.llm.model import ModelRequest, TextBlock
from ironcurtain.llm.registry import Chosen
from ironcurtain.policy.annotations import Annotations, ToolAnnotation
from ironcurtain.policy.drafts import unsuited
from ironcurtain.policy.engine import PolicyEngine
from ironcurtain.policy.rules import Rule
from ironcurtain.policy_compiler import prompt
from ironcurtain.policy_compiler.annotating import Annotated, as_answer, batches, parse_annotations
from ironcurtain.policy_compiler.parts import Part, ServerTools, Skipped, in_order
from ironcurtain.policy_compiler.proposal import Directories
from ironcurtain.policy_compiler.rounds import Compiled, GaveUp, Rounds, Say

ANSWER_TOKENS = 16_384
"""Maximum length of an answer."""

T_co = TypeVar("T_co", covariant=True)


class AnswerRounds(Protocol[T_co]):
    """Rounds between the model and a check: answers in, messages or a result out."""

    def begin(self) -> Say:
        """:returns: the first message."""

    def answered(self, text: str) -> Say | T_co:
        """:returns: what to do next."""


class Compiler(msgspec.Struct, frozen=True):
    """
    :param constitution: the sentences.
    :param builtin: the annotations that scenarios of rules for all servers can use.
    :param engine_with: returns the engine with proposed rules and annotations, over no files of this machine.
    :param directories: those of the person.
    :param cache: the directory with earlier answers. What is read from it is checked like an answer.
    :param told: called with what happens, for people.
    """

    constitution: Sequence[str]
    builtin: Annotations
    engine_with: Callable[[tuple[Rule, ...], Annotations], PolicyEngine]
    chosen: Chosen
    directories: Directories
    cache: Path
    told: Callable[[str], None]

    async def compile(self, servers: Iterable[ServerTools]) -> list[Part]:
        """
        :returns: the part of the rules for all servers, and one of each server.
        :raises ModelError: the model gives no answer. The answers before are kept.
        """
        outcome = await self._rules(self.builtin, lambda rules: self.engine_with(rules, Annotations()))
        parts = [Part("", outcome, Annotated({}, {}))]
        for server in servers:
            parts.append(await self._server(server, parts[0].rules()))
        return parts

    async def _server(self, server: ServerTools, for_all: Sequence[Rule]) -> Part:
        annotated = await self._annotated(server)
        annotations = server.annotated(annotated.tools)
        if not annotations.table():
            return Part(server.name, Skipped(), annotated)
        outcome = await self._rules(
            annotations,
            lambda rules: self.engine_with(in_order(for_all, rules), annotations),
            server.name,
            server.definitions,
        )
        return Part(server.name, outcome, annotated)

    async def _rules(
        self,
        annotations: Annotations,
        engine_with: Callable[[tuple[Rule, ...]], PolicyEngine],
        server: str = "",
        definitions: Mapping[str, Any] | None = None,
    ) -> Compiled | GaveUp:
        def rounds() -> Rounds:
            return Rounds(self.constitution, annotations, engine_with, server, self.directories)

        file = self._file(prompt.SYSTEM, rounds().begin().text, definitions or {})
        if file.exists():
            step = rounds().answered(file.read_text(errors="replace"))
            if isinstance(step, Compiled):
                return step
        self.told(f"asking the model about rules {f'of {server}' if server else 'for all servers'}")
        outcome: Compiled | GaveUp
        outcome, text = await self._converse(prompt.SYSTEM, rounds())
        if isinstance(outcome, Compiled):
            self._keep(file, text)
        return outcome

    async def _annotated(self, server: ServerTools) -> Annotated:
        wanted = server.unannotated()
        refused = {name: why for name, definition in wanted.items() if (why := unsuited(definition))}
        suited = {name: definition for name, definition in wanted.items() if name not in refused}
        files = {name: self._file(prompt.ANNOTATING, server.name, definition) for name, definition in suited.items()}
        found: dict[str, ToolAnnotation] = {}
        for name, file in files.items():
            if file.exists():
                text = file.read_text(errors="replace")
                found |= parse_annotations(text, server.name, {name: suited[name]}).tools
        for rounds in batches(server.name, {name: each for name, each in suited.items() if name not in found}):
            self.told(f"asking the model about the tools of {server.name}")
            annotated, _ = await self._converse(prompt.ANNOTATING, rounds)
            for name, tool in annotated.tools.items():
                self._keep(files[name], as_answer(tool))
            found |= annotated.tools
            refused |= annotated.refused
        return Annotated(dict(sorted(found.items())), refused)

    async def _converse(self, system: str, rounds: AnswerRounds[T_co]) -> tuple[T_co, str]:
        """:returns: the result, and the answer that led to it."""
        conversation, said = Conversation(), rounds.begin()
        while True:
            conversation.say(said.text)
            request = ModelRequest(system, conversation.messages, (), self.chosen.model, ANSWER_TOKENS)
            reply = await self.chosen.provider.converse(request, lambda event: None)
            text = "".join(block.text for block in reply.content if isinstance(block, TextBlock))
            conversation.answer(reply.content)
            step = rounds.answered(text)
            if not isinstance(step, Say):
                return step, text
            said = step

    def _file(self, *content: Any) -> Path:
        """:param content: everything that an answer depends on, besides model and version."""
        data = msgspec.json.encode([prompt.PROMPT_VERSION, self.chosen.model, *content], order="deterministic")
        return self.cache / f"{hashlib.sha256(data).hexdigest()}.json"

    def _keep(self, file: Path, text: str) -> None:
        private_directory(file.parent)
        write_atomically(file, text.encode("utf-8", "backslashreplace"))
