"""Work on an instruction: ask the model, run its plan, give it what became of that, until it only answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec
from twisted.internet.defer import CancelledError
from twisted.logger import Logger

from ironcurtain.errors import IronCurtainError, SessionError, UsageError
from ironcurtain.llm.conversation import nothing_said
from ironcurtain.llm.model import ModelReply, TextBlock, ToolResult, ToolUse
from ironcurtain.session.model import Usage
from ironcurtain.shell.context import Prompt
from ironcurtain.shell.messages import (
    Action,
    InstructionAccepted,
    InstructionDone,
    Interrupt,
    Kill,
    Message,
    ModelText,
    MoreTokens,
    Note,
    Notice,
    ProposedStep,
    Steer,
    StepCompleted,
    StepForming,
    StepOutcome,
)
from ironcurtain.shell.model import PlanEnding, PlanParts
from ironcurtain.shell.model_requests import ModelRequests
from ironcurtain.shell.plan import PlanRun

CANCELLED, REFUSED = "cancelled", "you denied it"
"""The errors of instructions that the user has ended."""

_CUT = ("max_tokens", "model_context_window_exceeded")
"""Why an answer stops before its end."""


class AssistantLimits(msgspec.Struct, frozen=True):
    """
    :param rounds: most model requests for one instruction.
    :param steps: most steps of a plan.
    """

    rounds: int
    steps: int


class Assistant:
    """
    :param requests: asks the model, and keeps what was said.
    :param describe: makes the message for the model from an instruction.
    :param shown: makes what the model is told of a step, with a remark.
    """

    log = Logger()

    def __init__(
        self,
        requests: ModelRequests,
        describe: Callable[[str], Prompt],
        shown: Callable[[StepCompleted, str], str],
        limits: AssistantLimits,
        parts: PlanParts,
    ) -> None:
        self._requests, self._describe, self._shown = requests, describe, shown
        self._window = requests.window
        self._limits, self._parts = limits, parts
        self._plan: PlanRun | None = None
        self._plans = self._forming = 0
        self._interrupted = self._busy = False
        self._notes: list[str] = []

    @property
    def unreached(self) -> bool:
        """Whether nothing was done for the last instruction, since no model could be reached."""
        return self._requests.unreached

    @property
    def model(self) -> str:
        """The provider's name of the model that was asked last; empty before that."""
        return self._requests.model

    def usage(self) -> Usage:
        """:returns: what the last instruction used so far."""
        return self._requests.usage

    def note(self, text: str) -> None:
        """
        The user tells the model something: what has not run of the plan is revised, and without one it comes next.

        :raises UsageError: no instruction is worked on.
        """
        if not self._busy:
            raise UsageError("no instruction is worked on: begin one")
        self._notes.append(text)
        if self._plan is not None:
            self._plan.receive(Steer(plan_id=self._plan.plan_id, context=text))

    async def respond(self, instruction: str) -> InstructionDone:
        """
        Work on an instruction. Only one at a time.

        :returns: how it ended; front ends are told, too.
        """
        self._interrupted, self._busy = False, True
        self._requests.begin()
        self._tell(InstructionAccepted(text=instruction))
        text, error = "", ""
        try:
            self._window.instruct(self._describe(instruction))
            text = await self._rounds()
        except IronCurtainError as e:  # of the model, its settings or the shell
            error = str(e)
            text = e.partial if isinstance(e, SessionError) else ""
        except CancelledError:
            if not self._interrupted:
                raise
            error = CANCELLED
        except Exception as e:  # nobody who waits for an end may see nothing at all
            self.log.failure("an instruction failed")
            error = f"a fault of IronCurtain ended it: {type(e).__name__}: {e}"
        finally:
            self._window.interrupt("cancelled by the user")
            self._plan, self._busy = None, False
            self._requests.end()
            unsaid, self._notes = self._notes, []
            if unsaid:
                self._tell(Notice(text=f"the model was not told: {' / '.join(unsaid)}"))
        usage, below = self._requests.usage, self._requests.budget.turn_below
        done = InstructionDone(
            text=text,
            error=error,
            usage_known=usage.token_tracking_available,
            tokens_in=usage.input_tokens,
            tokens_out=usage.output_tokens,
            below_in=below.input_tokens,
            below_out=below.output_tokens,
            counted=self._requests.accounting.turn_counted,
            cost=usage.cost,
            model=self._requests.model,
        )
        self._tell(done)
        return done

    def receive(self, action: Action) -> None:
        """
        A front end says something.

        :raises UsageError: it does not fit now.
        :raises StaleDecision: it is about something that is over.
        """
        if isinstance(action, Note | Steer):
            self.note(action.text if isinstance(action, Note) else action.context)
        elif isinstance(action, MoreTokens):
            self._requests.budget.answer(action.allow)
        elif self._plan is not None:
            self._plan.receive(action)
        elif isinstance(action, Interrupt | Kill):
            self._interrupted = True
            self._requests.cancel()
        else:
            raise UsageError("no plan waits for this")

    async def _rounds(self) -> str:
        for number in range(1, self._limits.rounds + 1):
            self._plans, self._forming = self._plans + 1, 0
            reply = await self._requests.ask(number, self._parts.hands.specs, self._formed)
            uses = self._window.answer(reply.content, reply.usage)
            if self._notes:
                self._window.results([ToolResult(use.id, PlanEnding.STEERED.value, True) for use in uses])
                self._tell(ModelText(text="\n\n"))  # the next answer begins on a line of its own
                self._say_notes()
                continue
            if not uses:
                return _words(reply, first=number == 1)
            if reply.stop_reason in _CUT:
                self._reject(uses, "the answer was cut off at its limit; nothing of the plan was run")
            elif (ended := await self._work(uses)) is not None:
                raise SessionError("MESSAGE_FAILED", ended)
        raise SessionError("MESSAGE_FAILED", f"no end after {self._limits.rounds} model requests: say how to go on")

    def _formed(self, use: ToolUse) -> None:
        self._forming += 1
        if self._forming <= self._limits.steps:
            with suppress(UsageError):  # the model is told when its answer is whole
                self._tell(StepForming(plan_id=self._plan_id, step=self._proposed(self._forming, use)))

    async def _work(self, uses: Sequence[ToolUse]) -> str | None:
        """
        Run a plan, and let the model know.

        :returns: why the instruction ends with it; ``None``: the model goes on.
        """
        if len(uses) > self._limits.steps:
            return self._reject(uses, f"a plan has at most {self._limits.steps} steps, and this one {len(uses)}")
        try:
            steps = [self._proposed(number, use) for number, use in enumerate(uses, 1)]
        except UsageError as e:
            self._reject(uses, f"{e}; nothing of the plan was run")
            return None
        self._plan = PlanRun(self._plan_id, steps, self._parts)
        try:
            completed = await self._plan.run()
        finally:
            plan, self._plan = self._plan, None
        self._window.results([self._result(use, step) for use, step in zip(uses, completed, strict=True)])
        if self._notes and plan.ending not in (PlanEnding.REFUSED, PlanEnding.CANCELLED):
            self._say_notes()
        over = {PlanEnding.REFUSED: plan.note or REFUSED, PlanEnding.CANCELLED: CANCELLED}
        return over.get(plan.ending)

    def _say_notes(self) -> None:
        notes, self._notes = "\n".join(self._notes), []
        self._window.say(f"The user says: {notes}\nRevise what has not run yet.")

    def _reject(self, uses: Sequence[ToolUse], why: str) -> str:
        self._window.results([ToolResult(use.id, why, True) for use in uses])
        self._tell(Notice(text=why))
        return why

    @property
    def _plan_id(self) -> str:
        return f"p{self._plans}"

    def _proposed(self, number: int, use: ToolUse) -> ProposedStep:
        """:raises UsageError: the model made a mistake."""
        return self._parts.preview(self._parts.hands.proposed(number, use, self._parts.directory()))

    def _result(self, use: ToolUse, step: StepCompleted) -> ToolResult:
        remark = "" if step.outcome in (StepOutcome.DONE, StepOutcome.FAILED) else str(step.outcome)
        remark = f"{remark}: {step.reason}" if step.reason else remark
        return ToolResult(use.id, self._shown(step, remark), step.outcome is not StepOutcome.DONE)

    def _tell(self, message: Message) -> None:
        self._parts.tell(message)


def _words(reply: ModelReply, first: bool) -> str:
    """
    :param first: whether nothing was done before; else a model may end without a word.
    :returns: the last words of the model.
    :raises SessionError: there are none.
    """
    text = "".join(block.text for block in reply.content if isinstance(block, TextBlock)).strip()
    if not text and (first or reply.stop_reason != "end_turn"):
        raise SessionError("MESSAGE_FAILED", nothing_said(reply.stop_reason))
    if reply.stop_reason in _CUT:
        return f"{text}\n[cut off by the model's limit: say 'go on', or raise model.max_tokens]"
    return text
