"""Work on an instruction: ask the model, run its plan, give it what became of that, until it only answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from twisted.internet.defer import CancelledError, Deferred

from ironcurtain.errors import IronCurtainError, SessionError, UsageError
from ironcurtain.llm.conversation import ShownText, nothing_said
from ironcurtain.llm.fallback import unreachable
from ironcurtain.llm.model import (
    FellBack,
    ModelError,
    ModelEvent,
    ModelReply,
    ModelRequest,
    Retrying,
    TextBlock,
    TextDelta,
    ToolAsked,
    ToolResult,
    ToolUse,
)
from ironcurtain.llm.registry import Chosen
from ironcurtain.session.budget import Accounting
from ironcurtain.session.model import Usage
from ironcurtain.shell.context import SHELL_TOOL, SYSTEM, Prompt
from ironcurtain.shell.messages import (
    Action,
    InstructionAccepted,
    InstructionDone,
    Interrupt,
    Kill,
    Message,
    ModelText,
    Notice,
    ProposedStep,
    Steer,
    StepCompleted,
    StepForming,
    StepOutcome,
)
from ironcurtain.shell.model import PlanEnding, PlanParts
from ironcurtain.shell.plan import PlanRun
from ironcurtain.shell.window import ContextWindow

CANCELLED, REFUSED = "cancelled", "you denied it"
"""The errors of instructions that the user has ended."""

_CUT = ("max_tokens", "model_context_window_exceeded")
"""Why an answer stops before its end."""


@dataclass(frozen=True, slots=True)
class AssistantLimits:
    """
    :param rounds: most model requests for one instruction.
    :param steps: most steps of a plan.
    :param tokens: most tokens of one answer.
    """

    rounds: int
    steps: int
    tokens: int


class Assistant:
    """
    :param choose: gives the model to ask.
    :param describe: makes the message for the model from an instruction.
    :param window: keeps what was said.
    :param shown: makes what the model is told of a step, with a remark.
    :param traceparent: the session's place in a trace, if its provider is to know it.
    :ivar unreached: whether nothing was done for the last instruction, since no model could be reached.
    """

    def __init__(
        self,
        choose: Callable[[], Awaitable[Chosen]],
        describe: Callable[[str], Prompt],
        window: ContextWindow,
        shown: Callable[[StepCompleted, str], str],
        traceparent: str,
        accounting: Accounting,
        limits: AssistantLimits,
        parts: PlanParts,
    ) -> None:
        self._choose, self._describe, self._window, self._shown = choose, describe, window, shown
        self._traceparent = traceparent
        self._accounting, self._limits, self._parts = accounting, limits, parts
        self._asking: Deferred[ModelReply] | None = None
        self._plan: PlanRun | None = None
        self._plans = 0
        self._interrupted = self.unreached = False
        self._forming: list[ToolUse] = []
        self._shown_text = ShownText()
        self._notes: list[str] = []
        self._model = ""

    def usage(self) -> Usage:
        """:returns: what the last instruction used so far."""
        return self._accounting.turn

    def steer(self, context: str) -> None:
        """The user tells the model something: about the plan that waits, or before there is one."""
        if self._plan is not None:
            self._plan.receive(Steer(plan_id=self._plan.plan_id, context=context))
        else:
            self._notes.append(context)

    async def respond(self, instruction: str) -> InstructionDone:
        """
        Work on an instruction. Only one at a time.

        :returns: how it ended; front ends are told, too.
        """
        self._interrupted = self.unreached = False
        self._notes.clear()
        self._accounting.begin()
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
        finally:
            self._window.interrupt("cancelled by the user")
            self._plan = None
        usage = self._accounting.turn
        done = InstructionDone(
            text=text,
            error=error,
            tokens_in=usage.input_tokens,
            tokens_out=usage.output_tokens,
            cost=usage.cost,
            model=self._model,
        )
        self._tell(done)
        return done

    def receive(self, action: Action) -> None:
        """
        A front end says something.

        :raises UsageError: it does not fit now.
        :raises StaleDecision: it is about something that is over.
        """
        if self._plan is not None:
            self._plan.receive(action)
        elif isinstance(action, Interrupt | Kill):
            self._interrupted = True
            if self._asking is not None:
                self._asking.cancel()
        else:
            raise UsageError("no plan waits for this")

    async def _rounds(self) -> str:
        for number in range(1, self._limits.rounds + 1):
            self._accounting.require()
            reply = await self._ask(number)
            uses = self._window.answer(reply.content, reply.usage)
            if self._notes:
                self._window.results([ToolResult(use.id, PlanEnding.STEERED.value, True) for use in uses])
                self._say("\n".join(self._notes))
                self._notes.clear()
                continue
            if not uses:
                return _words(reply, first=number == 1)
            if reply.stop_reason in _CUT:
                self._reject(uses, "the answer was cut off at its limit; nothing of the plan was run")
            elif (ended := await self._work(uses)) is not None:
                raise SessionError("MESSAGE_FAILED", ended)
        raise SessionError("MESSAGE_FAILED", f"no end after {self._limits.rounds} model requests: say how to go on")

    async def _ask(self, number: int) -> ModelReply:
        self._forming, self._shown_text = [], ShownText()
        self._plans += 1
        self._asking = Deferred.fromCoroutine(self._converse())
        try:
            reply = await self._asking
        except ModelError as e:
            if e.usage is not None:
                self._accounting.failed(e.usage)
            self.unreached = number == 1 and unreachable(e)
            if partial := self._shown_text.kept(e):
                self._window.answer((TextBlock(partial),))
            raise SessionError("MESSAGE_FAILED", self._shown_text.failure(e), partial=partial) from e
        finally:
            self._asking = None
        self._accounting.step(number, reply.usage)
        return reply

    async def _converse(self) -> ModelReply:
        chosen = await self._choose()
        self._model = chosen.model
        messages = self._window.messages()
        request = ModelRequest(SYSTEM, messages, (SHELL_TOOL,), chosen.model, self._limits.tokens, self._traceparent)
        try:
            return await chosen.provider.converse(request, self._model_event)
        finally:
            self._model = chosen.asked

    def _model_event(self, event: ModelEvent) -> None:
        self._shown_text.take(event)
        match event:
            case TextDelta():
                self._tell(ModelText(text=event.text))
            case Retrying():
                self._tell(Notice(text=f"{event.reason}; trying again in {event.delay_seconds:.0f} s"))
            case FellBack():
                self._tell(Notice(text=f"{event.from_} gave no answer ({event.reason}); asking {event.to}"))
            case ToolAsked():
                self._forming.append(event.use)
                number = len(self._forming)
                if number <= self._limits.steps and (step := self._proposed(number, event.use)) is not None:
                    self._tell(StepForming(plan_id=self._plan_id, step=step))

    async def _work(self, uses: Sequence[ToolUse]) -> str | None:
        """
        Run a plan, and let the model know.

        :returns: why the instruction ends with it; ``None``: the model goes on.
        """
        steps = [self._proposed(number, use) for number, use in enumerate(uses, 1)]
        if len(uses) > self._limits.steps:
            return self._reject(uses, f"a plan has at most {self._limits.steps} steps, and this one {len(uses)}")
        if wrong := [use for use, step in zip(uses, steps, strict=True) if step is None]:
            self._reject(uses, f"{wrong[0].name} needs the argument command, as text; nothing of the plan was run")
            return None
        self._plan = PlanRun(self._plan_id, [step for step in steps if step is not None], self._parts)
        try:
            completed = await self._plan.run()
        finally:
            plan, self._plan = self._plan, None
        self._window.results([self._result(use, step) for use, step in zip(uses, completed, strict=True)])
        if plan.ending is PlanEnding.STEERED:
            self._say(plan.note)
        over = {PlanEnding.REFUSED: plan.note or REFUSED, PlanEnding.CANCELLED: CANCELLED}
        return over.get(plan.ending)

    def _say(self, note: str) -> None:
        self._window.say(f"The user says: {note}\nRevise what has not run yet.")

    def _reject(self, uses: Sequence[ToolUse], why: str) -> str:
        self._window.results([ToolResult(use.id, why, True) for use in uses])
        self._tell(Notice(text=why))
        return why

    @property
    def _plan_id(self) -> str:
        return f"p{self._plans}"

    def _proposed(self, number: int, use: ToolUse) -> ProposedStep | None:
        command, purpose = use.input.get("command"), use.input.get("purpose")
        if use.name != SHELL_TOOL.name or not isinstance(command, str):
            return None
        judged = self._parts.judge.preview(command, self._parts.directory())
        words = purpose if isinstance(purpose, str) else ""
        return self._parts.judged(ProposedStep(number=number, command=command, purpose=words), judged)

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
