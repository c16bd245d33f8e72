"""The course of one plan: it is confirmed, and each of its steps is judged, decided on and run."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from enum import Enum
from functools import partial

import msgspec
from msgspec.structs import replace
from twisted.internet.defer import Deferred

from ironcurtain.errors import StaleDecision, UsageError
from ironcurtain.mcp_proxy.admission import OpenCall
from ironcurtain.mcp_proxy.refusals import CallRefused, refuse_denied
from ironcurtain.policy.verdict import Decision, Reversal
from ironcurtain.shell.asking import StepQuestion
from ironcurtain.shell.execution import CommandResult
from ironcurtain.shell.messages import (
    Action,
    Approval,
    Edit,
    Interrupt,
    Kill,
    PlanProposed,
    ProposedStep,
    Steer,
    StepCompleted,
    StepDecided,
    StepKind,
    StepOutcome,
    StepOutput,
    StepStarted,
)
from ironcurtain.shell.model import ConfirmMode, PlanEnding, PlanParts
from ironcurtain.shell.reversal import needs_own_decision
from ironcurtain.shell.tools import Hand, JudgedStep, StepRun

LINE_LIMIT = 64 * 1024
"""Bytes of output that are shown although they are no whole line."""

_REASONS = {"nobody-to-ask": "nobody to ask: this step needs a person, and nobody is at a terminal or console"}
"""What is said in place of the words of calls."""

_FIXED = frozenset(StepKind) - {StepKind.COMMAND}
"""Kinds of steps that the user cannot rewrite."""


class _Phase(Enum):
    BETWEEN = "between steps"
    CONFIRMING = "confirming"
    DECIDING = "deciding"
    RUNNING = "running"
    OVER = "over"


class PlanRun:
    """
    :param steps: as the model proposed them.
    """

    def __init__(self, plan_id: str, steps: Sequence[ProposedStep], parts: PlanParts) -> None:
        self.plan_id, self._parts = plan_id, parts
        self._steps = list(steps)
        self._phase = _Phase.BETWEEN
        self._approved: set[Hashable] = set()
        self._skipped: set[int] = set()
        self._completed: dict[int, StepCompleted] = {}
        self._answer: Deferred[Action] | None = None
        self._question: StepQuestion | None = None
        self._step = 0
        self._unshown = bytearray()
        self._step_by_step = parts.confirm is ConfirmMode.EACH
        self._left = parts.plan_seconds  # of running; people may take their time
        self.ending = PlanEnding.COMPLETED
        self.note = ""
        """What the user said instead, or why nobody has approved it."""

    async def run(self) -> list[StepCompleted]:
        """:returns: what became of each step, in their order."""
        confirm = self._parts.confirm is ConfirmMode.PLAN
        self._propose(confirm)
        if confirm:
            await self._confirm()
        if runs := self.ending is PlanEnding.COMPLETED:
            await self._prepare()
        for index in range(len(self._steps)):
            if self.ending is PlanEnding.COMPLETED:
                await self._take(index)
            else:
                self._complete(self._steps[index], StepOutcome.NOT_RUN, reason=self.ending.value)
        if runs:
            await self._parts.undo.end()
        self._phase = _Phase.OVER
        return [self._completed[step.number] for step in self._steps]

    async def _prepare(self) -> None:
        """
        Take a snapshot, unless all steps only read. Without one, what was approved as reversible is asked about again.
        """
        changes = any(step.undo != Reversal.READS for step in self._steps)
        if not changes or not await self._parts.undo.prepare():
            self._approved -= {step.identity for step in self._steps if step.undo == Reversal.SNAPSHOT}

    def receive(self, action: Action) -> None:
        """
        A front end says something.

        :raises UsageError: it does not fit now.
        :raises StaleDecision: it is about something that is over, or has changed.
        """
        if isinstance(action, Approval | Edit | Steer) and action.plan_id != self.plan_id:
            raise StaleDecision(f"plan {action.plan_id} is over")
        if isinstance(action, Edit) and action.step not in self._open():
            raise UsageError(f"the plan has no step {action.step} that is still to come")
        if isinstance(action, Edit) and any(each.number == action.step and each.kind in _FIXED for each in self._steps):
            raise UsageError(f"step {action.step} is no command: tell the model what to change in it")
        if self._phase is _Phase.CONFIRMING and isinstance(action, Approval):
            self._check(action)
        if self._phase is _Phase.CONFIRMING and self._answer is not None:
            waiting, self._answer = self._answer, None
            waiting.callback(action)
        elif self._phase is _Phase.DECIDING and self._question is not None:
            self._question.receive(action)
        elif isinstance(action, Interrupt | Kill):
            self._interrupt(at_once=isinstance(action, Kill))
        elif isinstance(action, Steer):
            self._end(PlanEnding.STEERED, action.context)
        else:
            raise UsageError("nothing waits for a decision now")

    def _open(self) -> set[int]:
        """:returns: the numbers of steps that have not begun."""
        begun = self._step if self._phase is _Phase.RUNNING else 0
        return {step.number for step in self._steps if step.number not in self._completed} - {begun}

    def _check(self, decision: Approval) -> None:
        """Check a decision on the plan."""
        if decision.digest is not None:
            raise StaleDecision("a plan has no digest: decide on its steps one by one, with the decision step")
        skipped = decision.decision == "skip"
        if decision.step not in self._open() if skipped else decision.step is not None:
            raise UsageError("the plan waits: allow, step or deny it without a step, or skip one of its steps")

    async def _confirm(self) -> None:
        self._phase = _Phase.CONFIRMING
        while True:
            self._answer = Deferred()
            action = await self._answer
            match action:
                case Approval(decision="allow" | "allow_session", step=None):
                    self._approved = {step.identity for step in self._steps}
                    break
                case Approval(decision="allow_undoable", step=None):
                    lasting = {step.identity for step in self._steps if needs_own_decision(step)}
                    self._approved = {step.identity for step in self._steps} - lasting
                    break
                case Approval(decision="policy", step=None):
                    break
                case Approval(decision="step", step=None):
                    self._step_by_step = True
                    break
                case Approval(decision="deny", step=None, reason=reason):
                    self._end(PlanEnding.REFUSED, reason)
                    break
                case Approval(decision="skip", step=int() as number):
                    self._skipped.add(number)
                case Edit():
                    self._edit(action)
                    self._propose(True)
                case Steer():
                    self._end(PlanEnding.STEERED, action.context)
                    break
                case Interrupt() | Kill():
                    self._end(PlanEnding.CANCELLED)
                    break
        self._phase = _Phase.BETWEEN

    async def _take(self, index: int) -> None:
        step, self._question = self._steps[index], None
        self._step = step.number
        if step.number in self._skipped:
            self._complete(step, StepOutcome.SKIPPED)
            return
        if self._left <= 0:
            self._end(PlanEnding.STEP_FAILED)
            self._complete(step, StepOutcome.NOT_RUN, reason=f"the plan took over {self._parts.plan_seconds:g} s")
            return
        directory = self._parts.directory()
        hand = self._parts.hands.of(step)
        judged = await hand.judge(step, directory)
        if self.ending is not PlanEnding.COMPLETED:  # while a hook ran
            self._complete(step, StepOutcome.NOT_RUN, reason=self.ending.value)
            return
        step = self._steps[index] = self._parts.judged(judged)
        call = hand.admission.open(*hand.names(step))
        try:
            judged = await self._admit(hand, call, step, judged)
        except CallRefused as e:
            hand.admission.close(call, e.status, error=e.why)
            await self._refused(index, e)
            return
        await self._parts.resumed()
        if self.ending is not PlanEnding.COMPLETED:  # while the user was in the shell, or the decision was recorded
            hand.admission.close(call, "failed", error=self.ending.value)
            self._complete(step, StepOutcome.NOT_RUN, reason=self.ending.value)
        elif self._parts.directory() != directory:  # the user was in the shell, and went where it was not judged
            hand.admission.close(call, "denied", error="changed-meanwhile")
            await self._take(index)
        else:
            result = await self._execute(hand, call, judged, directory)
            if result.outcome is not StepOutcome.NOT_RUN and not await hand.finished(step, directory, result):
                self._end(PlanEnding.STEP_DENIED)

    async def _admit(self, hand: Hand, call: OpenCall, step: ProposedStep, judged: JudgedStep) -> JudgedStep:
        """
        :returns: what may be done.
        :raises CallRefused: it must not run.
        """
        parts, verdict = self._parts, judged.verdict
        if self._step_by_step and verdict.decision is Decision.ALLOW:
            reason = "each step is confirmed"
            verdict = msgspec.structs.replace(verdict, decision=Decision.ESCALATE, rule="confirm-each", reason=reason)
        sequence = hand.admission.record(call, verdict, judged.creates)
        refuse_denied(verdict)
        by, judged = f"{judged.by}: {verdict.rule}", replace(judged, verdict=verdict)
        if verdict.decision is Decision.ESCALATE:
            by = await self._ask(call, step, judged)
        else:
            await hand.admission.durable(sequence)
        parts.tell(StepDecided(plan_id=self.plan_id, step=step.number, allowed=True, by=by, reason=verdict.reason))
        return judged

    async def _ask(self, call: OpenCall, step: ProposedStep, judged: JudgedStep) -> str:
        approved = step.identity in self._approved and not self._step_by_step
        self._question = StepQuestion(self.plan_id, call, step, self._parts, approved)
        self._phase = _Phase.DECIDING
        try:
            return await self._question.ask(judged)
        finally:
            self._phase = _Phase.BETWEEN

    async def _ask_below(self, step: ProposedStep, call: OpenCall, judged: JudgedStep) -> str:
        """
        Ask for an agent below, while its step runs.

        :returns: who approved it.
        :raises CallRefused: it must not be done.
        """
        parts, began = self._parts, self._parts.clock.seconds()
        self._show_lines(step, len(self._unshown))
        question = self._question = StepQuestion(self.plan_id, call, judged.step, parts, approved=False)
        self._phase = _Phase.DECIDING
        decided = StepDecided(plan_id=self.plan_id, step=step.number, allowed=False, by="", reason="withdrawn")
        try:
            by = await question.ask(judged)
            decided = msgspec.structs.replace(decided, allowed=True, by=by, reason=judged.verdict.reason)
            return by
        except CallRefused as e:
            why = question.reason or _REASONS.get(e.why, str(e))
            decided = msgspec.structs.replace(decided, reason=why, code=e.why)
            raise
        finally:
            self._question, self._phase = None, _Phase.RUNNING
            self._left += parts.clock.seconds() - began
            parts.tell(decided)
            self._tell_started(step)
            if isinstance(question.instead, Steer):
                self._end(PlanEnding.STEERED, question.instead.context)
            if isinstance(question.instead, Steer | Interrupt | Kill):
                self._interrupt(at_once=isinstance(question.instead, Kill))

    async def _refused(self, index: int, refusal: CallRefused) -> None:
        """The step does not run: somebody said what to do instead, or no."""
        step, question, self._question = self._steps[index], self._question, None
        match instead := question.instead if question is not None else None:
            case Edit():
                self._edit(instead)
                await self._take(index)
                return
            case Approval(decision="skip"):
                self._complete(step, StepOutcome.SKIPPED)
                return
            case Steer():
                self._end(PlanEnding.STEERED, instead.context)
            case Interrupt() | Kill():
                self._end(PlanEnding.CANCELLED)
            case _:
                by_rule = refusal.why == "denied-by-rule"
                said = question.reason if question is not None else ""
                why = said or _REASONS.get(refusal.why, str(refusal))
                note = said if refusal.why == "denied-by-person" else why
                self._end(PlanEnding.STEP_DENIED if by_rule else PlanEnding.REFUSED, note)
                decided = StepDecided(
                    plan_id=self.plan_id, step=step.number, allowed=False, by="", reason=why, code=refusal.why
                )
                self._parts.tell(decided)
                self._complete(step, StepOutcome.DENIED, reason=why)
                return
        self._complete(step, StepOutcome.NOT_RUN, reason=self.ending.value)

    async def _execute(self, hand: Hand, call: OpenCall, judged: JudgedStep, directory: str) -> CommandResult:
        parts, step = self._parts, judged.step
        self._phase, began = _Phase.RUNNING, parts.clock.seconds()
        self._tell_started(step)
        try:
            seconds = min(parts.command_seconds, self._left)
            how = StepRun(directory, seconds, partial(self._show, step), partial(self._ask_below, step))
            result = await hand.run(call, judged, how)
        finally:
            self._left -= parts.clock.seconds() - began
            self._show_lines(step, len(self._unshown))
        self._phase = _Phase.BETWEEN
        if result.outcome is StepOutcome.INTERRUPTED:
            self._end(PlanEnding.CANCELLED)
        elif result.outcome is not StepOutcome.DONE:
            self._end(PlanEnding.STEP_FAILED)
        self._complete(
            step,
            result.outcome,
            exit_code=result.status,
            output=parts.text(result.output),
            truncated=bool(result.left_out),
            duration_ms=round((parts.clock.seconds() - began) * 1000),
            reason=result.reason,
        )
        return result

    def _tell_started(self, step: ProposedStep) -> None:
        started = StepStarted(plan_id=self.plan_id, step=step.number, command=step.command, kind=step.kind)
        self._parts.tell(started)

    def _show(self, step: ProposedStep, data: bytes) -> None:
        """Show whole lines: characters, escape sequences and secrets are not cut."""
        self._unshown += data
        whole = self._unshown.rfind(b"\n") + 1
        self._show_lines(step, whole or (len(self._unshown) if len(self._unshown) > LINE_LIMIT else 0))

    def _show_lines(self, step: ProposedStep, size: int) -> None:
        if size:
            data = bytes(self._unshown[:size])
            del self._unshown[:size]
            text = self._parts.text(data) + "\n" * data.endswith(b"\n")
            self._parts.tell(StepOutput(plan_id=self.plan_id, step=step.number, text=text))

    def _complete(self, step: ProposedStep, outcome: StepOutcome, **fields: object) -> None:
        completed = StepCompleted(plan_id=self.plan_id, step=step.number, outcome=outcome, **fields)  # type: ignore[arg-type]
        self._completed[step.number] = completed
        self._parts.tell(completed)

    def _propose(self, confirm: bool) -> None:
        self._parts.tell(PlanProposed(plan_id=self.plan_id, steps=tuple(self._steps), confirm=confirm))

    def _edit(self, action: Edit) -> None:
        for index, step in enumerate(self._steps):
            if step.number == action.step and step.number not in self._completed:
                changed = msgspec.structs.replace(step, command=action.command, purpose="changed by you")
                self._steps[index] = self._parts.preview(changed)

    def _end(self, ending: PlanEnding, note: str = "") -> None:
        if self.ending is PlanEnding.COMPLETED:
            self.ending, self.note = ending, note

    def _interrupt(self, at_once: bool) -> None:
        if self._phase is _Phase.RUNNING:
            (self._parts.hands.kill if at_once else self._parts.hands.interrupt)()
        else:
            self._end(PlanEnding.CANCELLED)
