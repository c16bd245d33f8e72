"""A session's escalations with an auto-approver, whose model says whatever the test wants."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock

from ironcurtain.approver.approver import AutoApprover
from ironcurtain.approver.grounding import KnownDirectories
from ironcurtain.approver.trusted_input import InputSource, TrustedInput
from ironcurtain.audit.log import AuditLog
from ironcurtain.escalation import Answer, EscalationRequest, arguments_digest
from ironcurtain.escalation.model import AutomaticCall
from ironcurtain.llm.model import ModelEvent, ModelReply, ModelRequest, TextBlock, TokenUsage
from ironcurtain.llm.registry import Chosen
from ironcurtain.policy.verdict import Resource
from ironcurtain.secrets.redaction import Redactor
from tests.audit.doubles import at_once
from tests.escalation.doubles import make_queue

KNOWN = KnownDirectories("/home/ada", "/srv/code")
DATA = Path(__file__).parent / "data"
USAGE = TokenUsage(100, 10)

Answering = Callable[[ModelRequest], Any]


def cases(name: str) -> list[dict[str, Any]]:
    """:returns: the cases of a file."""
    found: list[dict[str, Any]] = json.loads((DATA / name).read_text())
    return found


def resources(*uses: tuple[str, str]) -> tuple[Resource, ...]:
    """:param uses: roles and values."""
    return tuple(Resource(role, role, value) for role, value in uses)


def call(
    uses: tuple[Resource, ...], arguments: dict[str, Any] | None = None, server: str = "files", tool: str = "use"
) -> EscalationRequest:
    """:returns: an escalation's request that a rule lets the auto-approver approve."""
    given = {"n": [each.value for each in uses], **(arguments or {})}
    automatic = AutomaticCall("it is outside the workspace", uses)
    digest = arguments_digest(server, tool, given)
    return EscalationRequest("s1", "c1", server, tool, given, "why", "rule", "v1", digest, automatic=automatic)


class Model:
    """
    A model client.

    :param answer: returns the text of an answer, a Deferred of a reply, or raises.
    """

    name = "stub"

    def __init__(self, answer: Answering) -> None:
        self.answer = answer
        self.requests: list[ModelRequest] = []

    async def converse(self, request: ModelRequest, notify: Callable[[ModelEvent], None]) -> ModelReply:
        self.requests.append(request)
        answer = self.answer(request)
        if isinstance(answer, Deferred):
            reply: ModelReply = await answer
            return reply
        return said(answer)


def said(text: str, stop_reason: str = "end_turn") -> ModelReply:
    """:returns: an answer that is a text."""
    return ModelReply((TextBlock(text),), stop_reason, USAGE, "stub-1")


def approve(quote: str) -> str:
    """:returns: the answer that approves."""
    return json.dumps({"decision": "approve", "quote": quote})


class ApproverWorld:
    """:param directory: for the files."""

    def __init__(self, directory: Path, answer: Answering, limit: int = 1_000_000) -> None:
        self.clock, self.path = Clock(), directory / "audit.jsonl"
        self.queue, self.model = make_queue(self.clock), Model(answer)
        self.audit = AuditLog(self.path, "s1", Redactor(), self.clock, self.clock.seconds, at_once)
        context = directory / "user-context.json"
        self.words = TrustedInput(directory / "trusted-input.jsonl", context, Redactor().text, self.clock.seconds)
        self.spent: list[TokenUsage] = []
        self.approver = AutoApprover(
            escalations=self.queue,
            trusted_input=self.words,
            audit=self.audit,
            known=KNOWN,
            choose=self._choose,
            clock=self.clock,
            limit=limit,
            spend=self.spent.append,
        )

    async def _choose(self) -> Chosen:
        return await succeed(Chosen(self.model, "stub-1"))

    def say(self, *words: str) -> None:
        """The user says these."""
        for text in words:
            self.words.add(text, InputSource.MESSAGE)

    def ask(self, request: EscalationRequest) -> Deferred[Answer]:
        """:returns: the answer, which the auto-approver may have given by now."""
        asked = self.queue.ask(request)
        self.clock.advance(0)
        return asked

    def records(self) -> list[dict[str, Any]]:
        """:returns: what the audit log has of the auto-approver."""
        found = map(json.loads, self.path.read_text().splitlines())
        return [record for record in found if record["kind"] == "auto-approver"]
