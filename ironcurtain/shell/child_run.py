"""The course of one agent below this one: its questions are asked here, as if they were those of its step."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from ironcurtain.mcp_proxy.admission import CallAdmission
from ironcurtain.mcp_proxy.refusals import CallRefused
from ironcurtain.policy.verdict import Decision, Verdict
from ironcurtain.process.bounded import Kept
from ironcurtain.process.piped import ERRORS_KEPT, CommandReactor, PipedCommand, exit_status
from ironcurtain.shell.children import ChildReport, ChildStart, asked_arguments
from ironcurtain.shell.messages import (
    Action,
    Alive,
    Approval,
    ApprovalRequested,
    InstructionDone,
    Message,
    PlanProposed,
    ProposedStep,
    StepCompleted,
    StepDecided,
    StepOutcome,
    StepStarted,
)
from ironcurtain.shell.model import SERVER
from ironcurtain.shell.tools import JudgedStep, StepRun

AGENT_TOOL: Final = "agent"
"""By what name agents below, and their questions, stand in the audit log and in escalations."""

BELOW_RULE: Final = "agent-below"
"""The rule by which questions of agents below are asked here."""


ALIVE_SECONDS: Final = 15.0
"""Seconds between two words to an agent on another machine that this one is there."""

LOST_SECONDS: Final = 90.0
"""Seconds without such a word after which the agent there ends: as ssh would, whose server may wait for hours."""

_REASONS: Final = {"denied-by-person": "a person denied it", "nobody-to-ask": "nobody to ask"}
"""What the agent below is told in place of the words of calls."""


class ChildRun:
    """
    :param admission: records its questions.
    :param step: what it was started for.
    :ivar report: what it has said.
    :ivar stopped: how it was ended from here, if it was.
    """

    log = Logger()

    def __init__(self, reactor: CommandReactor, admission: CallAdmission, step: ProposedStep, how: StepRun) -> None:
        self._reactor, self._admission, self._step, self._how = reactor, admission, step, how
        self._errors = Kept(ERRORS_KEPT)
        self._child = PipedCommand(reactor, reactor, exit_status, self._received, self._errors.feed)
        self._asking: Deferred[None] | None = None
        self._asked: ApprovalRequested | None = None
        self._timer: IDelayedCall | None = None
        self._alive = LoopingCall(self._say, Alive(seconds=LOST_SECONDS))
        self._alive.clock = reactor
        self.report = ChildReport()
        self.stopped: StepOutcome | None = None

    async def run(self, start: ChildStart) -> int | None:
        """
        Start it, and wait for its end.

        :returns: its exit status.
        :raises Unavailable: it cannot be started.
        """
        how = self._how
        environ = {**start.environ, "PWD": how.directory}
        self._child.spawn(start.argv, environ, how.directory, start.stdin, open_input=True)
        self._timer = self._reactor.callLater(how.seconds, self.stop, StepOutcome.TIMED_OUT)
        if self._step.arguments["host"]:
            self._alive.start(ALIVE_SECONDS).addErrback(self._failed)
        try:
            return await self._child.done
        finally:
            self._withdraw()
            if self._alive.running:
                self._alive.stop()
            if self._timer.active():
                self._timer.cancel()

    def stop(self, outcome: StepOutcome) -> None:
        """End it, and what it runs."""
        self.stopped = self.stopped or outcome
        self._child.stop()

    def kill(self) -> None:
        """End it by force."""
        self.stopped = self.stopped or StepOutcome.INTERRUPTED
        self._child.drop()

    @property
    def errors(self) -> str:
        """The end of its error output."""
        return self._errors.content.decode("utf-8", "replace").strip()

    def _received(self, data: bytes) -> None:
        for message in self.report.feed(data):
            if text := self.report.take(message):
                self._how.show(text.encode("utf-8", "replace").replace(b"\n", b"\r\n"))
            self._answer(message)

    def _answer(self, message: Message) -> None:
        match message:
            case PlanProposed(confirm=True, plan_id=plan_id):
                self._say(Approval(plan_id=plan_id, decision="policy"))
            case ApprovalRequested():
                self._withdraw()
                self._asked = message
                self._asking = Deferred.fromCoroutine(self._ask(message))
                self._asking.addErrback(self._failed)
            case StepDecided() | StepStarted() | StepCompleted():  # somebody has answered it elsewhere
                self._withdraw()
            case InstructionDone():
                if self._alive.running:
                    self._alive.stop()
                self._child.close_input()

    async def _ask(self, request: ApprovalRequested) -> None:
        asked, arguments = request.step, self._step.arguments
        call = self._admission.open(SERVER, AGENT_TOOL)
        where = f"the agent on {arguments['host']}" if arguments["host"] else "the agent below"
        reason = f"{where} asks: {asked.reason}"
        verdict = Verdict(Decision.ESCALATE, BELOW_RULE, reason, asked_arguments(asked, arguments))
        step = msgspec.structs.replace(
            self._step,
            command=asked.command,
            purpose=asked.purpose,
            risk=asked.risk,
            decision=str(verdict.decision),
            rule=BELOW_RULE,
            reason=reason,
            diff=asked.diff,
        )
        began, decision, why = self._reactor.seconds(), "allow", ""
        try:
            self._admission.record(call, verdict)
            await self._how.ask(call, JudgedStep(step, verdict, asked.risk))
            self._admission.close(call, "success")
        except CallRefused as e:
            self._admission.close(call, e.status, error=e.why)
            decision, why = "deny", _REASONS.get(e.why, str(e))
        except CancelledError:
            self._admission.close(call, "withdrawn", error="withdrawn")
            return
        if self._timer is not None and self._timer.active():  # people may take their time
            self._timer.delay(self._reactor.seconds() - began)
        if self._asked is not request:  # it was answered elsewhere meanwhile
            return
        answer: Any = {"plan_id": request.plan_id, "step": asked.number, "digest": request.digest}
        self._say(Approval(**answer, decision=decision, reason=why))  # type: ignore[arg-type]

    def _withdraw(self) -> None:
        asking, self._asking, self._asked = self._asking, None, None
        if asking is not None:
            asking.cancel()

    def _failed(self, failure: Any) -> None:
        self.log.failure("a question of an agent below could not be asked", failure)
        self.stop(StepOutcome.FAILED)

    def _say(self, action: Action) -> None:
        self._child.write(msgspec.json.encode(action) + b"\n")
