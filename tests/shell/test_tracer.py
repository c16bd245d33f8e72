"""Spans of what an agent does."""

from __future__ import annotations

import itertools
import json
from typing import Any

from twisted.internet.task import Clock
from twisted.logger import LogLevel, capturedLogs
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import Unavailable
from ironcurtain.shell.assistant import CANCELLED, REFUSED
from ironcurtain.shell.messages import (
    InstructionAccepted,
    InstructionDone,
    Message,
    StepCompleted,
    StepDecided,
    StepOutcome,
    StepStarted,
)
from ironcurtain.shell.tracer import Tracer
from ironcurtain.traces.context import TraceContext
from ironcurtain.traces.otlp import ExportedSpan


class Lines:
    """A sink that keeps what it gets, unless it is :attr:`full`."""

    def __init__(self) -> None:
        self.spans: list[dict[str, Any]] = []
        self.full = False

    def write(self, line: bytes) -> None:
        if self.full:
            raise Unavailable("the disk is full")
        self.spans.append(json.loads(line))

    def check(self) -> None:
        """Nothing keeps it from being written."""


class TracerTests(SynchronousTestCase):
    """:class:`Tracer`"""

    def setUp(self) -> None:
        self.clock, self.sink = Clock(), Lines()
        ids = itertools.count(1)
        self.tracer = Tracer(
            TraceContext("7f", "a1", "b2"),
            self.sink,
            self.clock.seconds,
            lambda size: f"{next(ids):0{2 * size}x}",
            lambda: "anthropic",
            lambda text: text.replace("secret", "[redacted]"),
            anonymize=False,
        )

    def tell(self, *messages: Message) -> None:
        """The agent says something."""
        for message in messages:
            self.tracer.receive(message)

    def step(self, command: str, outcome: StepOutcome = StepOutcome.DONE, by: str = "policy: x", code: int = 0) -> None:
        """A step runs."""
        self.tell(
            StepDecided(plan_id="p1", step=1, allowed=True, by=by),
            StepStarted(plan_id="p1", step=1, command=command),
            StepCompleted(plan_id="p1", step=1, outcome=outcome, exit_code=code, duration_ms=7),
        )

    def test_what_the_model_does_not_say_is_not_nothing(self) -> None:
        self.tell(InstructionAccepted(text="find it"), InstructionDone(text="It is.", usage_known=False))
        self.tracer.close()
        for span in self.sink.spans:
            self.assertEqual((span["tokens_in"], span["tokens_out"]), (None, None))

    def test_what_is_written_is_exported_too_with_the_same_ids(self) -> None:
        found: list[ExportedSpan] = []
        ids = itertools.count(1)
        tracer = Tracer(
            TraceContext("7f", "a1", "b2"), self.sink, self.clock.seconds, lambda size: f"{next(ids):0{2 * size}x}",
            lambda: "anthropic", str, anonymize=True, export=found.append,
        )  # fmt: skip
        tracer.receive(InstructionAccepted(text="find it"))
        tracer.receive(InstructionDone(text="It is.", tokens_in=10, tokens_out=2, model="m-1"))
        tracer.close()
        instruction, shell = found
        self.assertEqual((instruction.name, instruction.parent), ("instruction", "a1".zfill(16)))
        self.assertEqual((shell.name, shell.span_id, shell.parent), ("shell", "a1".zfill(16), "b2".zfill(16)))
        self.assertEqual(instruction.span_id, self.sink.spans[0]["span_id"])
        self.assertEqual({span.trace_id for span in found}, {"7f".zfill(32)})

    def test_a_span_for_each_instruction_and_one_for_the_session(self) -> None:
        self.clock.advance(1)
        self.tell(InstructionAccepted(text="find the secret"))
        self.step("ls secret")
        self.clock.advance(2)
        self.tell(InstructionDone(text="It is.", tokens_in=10, tokens_out=2, model="m-1"))
        self.tell(InstructionAccepted(text="more"), InstructionDone(tokens_in=1, tokens_out=1, model="m-2"))
        self.tracer.close()
        first, second, session = self.sink.spans
        self.assertEqual(
            (first["instruction"], first["trace_id"], first["parent_span"]), ("find the [redacted]", "7f", "a1")
        )
        action = {"type": "shell", "command": "ls [redacted]", "exit": 0, "duration_ms": 7}
        self.assertEqual((first["actions"], first["tokens_in"], first["tokens_out"]), ([action], 10, 2))
        self.assertEqual((first["backend"], first["model"], first["result"]), ("anthropic", "m-1", "success"))
        self.assertEqual((first["start"][-7:], first["end"][-7:]), ("01.000Z", "03.000Z"))
        self.assertEqual((second["actions"], second["model"]), ([], "m-2"))
        self.assertNotEqual(first["span_id"], second["span_id"])
        self.assertEqual((session["span_id"], session["parent_span"], session["instruction"]), ("a1", "b2", ""))
        self.assertEqual((session["tokens_in"], session["tokens_out"], session["start"][-7:]), (11, 3, "00.000Z"))

    def test_who_let_commands_run(self) -> None:
        for deciders, approval in (
            ((), ""),
            (("policy: approval.shell.mode", "policy, changed by pre-exec: x"), "policy"),
            (("local:ann", "key:bob"), "human"),
            (("key:bob", "policy: x"), "human,policy"),
        ):
            self.tell(InstructionAccepted(text="x"))
            for by in deciders:
                self.step("ls", by=by)
            self.tell(InstructionDone())
            self.assertEqual(self.sink.spans[-1]["approval"], approval)

    def test_what_was_not_allowed_has_no_decider_and_is_no_action(self) -> None:
        self.tell(InstructionAccepted(text="x"))
        self.step("ls")
        self.tell(StepDecided(plan_id="p1", step=2, allowed=False, by=""))
        self.tell(StepCompleted(plan_id="p1", step=2, outcome=StepOutcome.DENIED))
        self.tell(InstructionDone(error=REFUSED))
        span = self.sink.spans[-1]
        self.assertEqual((span["approval"], len(span["actions"]), span["result"]), ("policy", 1, "denied"))

    def test_results(self) -> None:
        for outcomes, error, result in (
            ((), "", "success"),
            ((StepOutcome.DONE, StepOutcome.SKIPPED), "", "success"),
            ((StepOutcome.FAILED,), "", "failure"),
            ((StepOutcome.FAILED, StepOutcome.DONE), "", "failure"),
            ((StepOutcome.TIMED_OUT,), "", "failure"),
            ((), "the model is overloaded", "failure"),
            ((StepOutcome.DENIED,), "nobody is there to ask", "denied"),
            ((StepOutcome.NOT_RUN,), REFUSED, "denied"),
            ((StepOutcome.INTERRUPTED,), CANCELLED, "interrupted"),
        ):
            self.tell(InstructionAccepted(text="x"))
            for outcome in outcomes:
                self.step("ls", outcome)
            self.tell(InstructionDone(error=error))
            self.assertEqual(self.sink.spans[-1]["result"], result, (outcomes, error))

    def test_what_belongs_to_no_instruction_is_left_out(self) -> None:
        self.step("ls")
        self.tell(InstructionDone(error="x"))
        self.assertEqual(self.sink.spans, [])

    def test_a_sink_that_fails_stops_nothing(self) -> None:
        self.sink.full = True
        with capturedLogs() as logs:
            self.tell(InstructionAccepted(text="x"), InstructionDone())
        self.assertEqual([log["log_level"] for log in logs], [LogLevel.error])
        self.sink.full = False
        self.tracer.close()
        self.assertEqual(len(self.sink.spans), 1)
