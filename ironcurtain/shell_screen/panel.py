"""What the agent mode knows: what it was told, what it asks, and what is still to be printed."""

from __future__ import annotations

from dataclasses import dataclass

from ironcurtain.escalation.decision_keys import DecisionKeys, Offer
from ironcurtain.shell import messages
from ironcurtain.shell.messages import ProposedStep
from ironcurtain.shell.reported_plan import Plan
from ironcurtain.shell_screen.input_line import InputLine
from ironcurtain.shell_screen.question import Frame, Inspection, Question, shown_scope, shown_step
from ironcurtain.view.look import Look
from ironcurtain.view.step_record import StepRecord


@dataclass(slots=True)
class Activity:
    """
    What the agent does.

    :ivar working: whether it works on an instruction.
    :ivar forming: whether the plan is still being written.
    :ivar word: what it does; ``since`` when, in seconds of the clock.
    :ivar runs: how many commands have been started.
    """

    working: bool = False
    forming: bool = False
    word: str = ""
    since: float = 0.0
    runs: int = 0

    def go_on(self, word: str, now: float) -> None:
        """It does this now, or still."""
        self.since = self.since if word == self.word else now
        self.word = word


class Panel:
    """
    The state of the agent mode. It is told what happens, in any order; keys change it through a ``Keyboard``.

    :param look: what the terminal can show.
    :ivar record: what is to be printed once.
    :ivar keys: what was shown and pressed.
    :ivar question: the one that is open.
    :ivar selected: number of the step that keys act on.
    :ivar frame: the one on the screen, if it shows the question; the next list of a plan begins where it does.
    :ivar hint: one line about the last key.
    :ivar unsent: what was being typed for the agent when it was done.
    """

    def __init__(self, look: Look) -> None:
        self.look, self.record = look, StepRecord(look)
        self.plan, self.keys, self.activity = Plan(), DecisionKeys(), Activity()
        self.question: Question | None = None
        self.inspection: Inspection | None = None
        self.input: InputLine | None = None
        self.hint, self.unsent = "", ""
        self.selected, self.frame = 0, Frame()

    @property
    def running(self) -> bool:
        """Whether a command runs: it has the terminal and the keys."""
        return self.plan.running is not None

    @property
    def chosen(self) -> ProposedStep | None:
        """The step that keys act on."""
        if self.question is None:
            return None
        return next((step for step in self.plan.waiting if step.number == self.selected), None)

    @property
    def offer(self) -> Offer:
        """The keys that the open question offers."""
        return Offer(None) if self.question is None else self.question.offer(self.plan.waiting)

    @property
    def due(self) -> float | None:
        """From when on a key decides; ``None`` if the question is not on the screen."""
        return self.keys.due(self.question)

    def drawn(self, frame: Frame, now: float) -> None:
        """The screen shows this now: only from here on can its question be answered, and what is whole is seen."""
        question, inspection = self.question, self.inspection
        if question is not None and frame.question is question:
            self.keys.appear(question, now)
            self.frame = frame
            for step in frame.whole:
                self.keys.show(shown_step(step), now)
            if frame.scope_shown and question.request is not None:
                self.keys.show(shown_scope(question.request), now)
        if inspection is not None and frame.page is not None:
            inspection.page = frame.page
            self.keys.read(shown_step(inspection.step), frame.page, now)
            if question is not None and question.request is not None:
                self.keys.read(shown_scope(question.request), frame.page, now)

    def receive(self, message: messages.Message, now: float) -> None:
        """
        Take a message.

        :param now: in seconds of a clock that does not go back.
        """
        match message:
            case messages.InstructionAccepted():
                self.plan, self.input = Plan(), None
                self.keys.keep(())
                self._work_anew("thinking", now)
                self.record.begin(message.text)
            case messages.ModelText():
                self.activity.go_on("writing", now)
                self.record.say(message.text)
            case messages.StepForming():
                self._step_forming(message, now)
            case messages.PlanProposed():
                self._proposed(message, now)
            case messages.ApprovalRequested():
                self.plan.put(message.plan_id, message.step)
                self._ask(Question(message.plan_id, message), message.step, now)
            case messages.StepDecided() if self._asks_about(message.plan_id, message.step):
                self.close_question("working", now)
                self.record.decided(message)
            case messages.StepStarted():
                self._started(message, now)
            case messages.StepCompleted():
                self._completed(message, now)
            case messages.Notice():
                self.record.notice(message.text)
            case messages.BudgetReached():
                self._ask(Question("", budget=message), None, now)
            case messages.InstructionDone():
                self._done(message)
        asked = self.question
        if asked and not asked.budget and (asked.plan_id != self.plan.id or self.chosen is None):
            self._ask_no_more(now)

    def close_question(self, activity: str, now: float) -> None:
        """Nothing is asked any more; the agent goes on."""
        self.question, self.inspection, self.hint = None, None, ""
        self.activity.go_on(activity, now)

    def _work_anew(self, activity: str, now: float) -> None:
        """As before, but its time begins now."""
        self.activity.working, self.activity.forming, self.activity.word = True, False, ""
        self.close_question(activity, now)

    def _ask(self, question: Question, step: ProposedStep | None, now: float) -> None:
        self.record.end_text()
        self._work_anew("asking", now)
        self.question, self.frame = question, Frame()
        self.selected = self.selected if step is None else step.number

    def _step_forming(self, message: messages.StepForming, now: float) -> None:
        self.record.end_text()
        self.close_question("planning", now)
        if not self.activity.forming:
            self.plan.rewrite(message.plan_id)
        self.activity.working = self.activity.forming = True
        self.plan.put(message.plan_id, message.step)

    def _proposed(self, message: messages.PlanProposed, now: float) -> None:
        self.record.end_part()
        self.plan.propose(message)
        if message.confirm and self.plan.waiting:
            self._ask(Question(message.plan_id), self.plan.waiting[0], now)
        else:
            self.activity.forming = False
            self.close_question("working", now)
            self.record.plan(self.plan)

    def _ask_no_more(self, now: float) -> None:
        """What was asked about is gone, or another step is now the first one that waits."""
        assert self.question is not None
        if self.question.request is None and self.question.plan_id == self.plan.id and self.plan.waiting:
            self.selected = self.plan.waiting[0].number
        else:
            self.close_question("working", now)

    def _asks_about(self, plan_id: str, step: int) -> bool:
        asked = self.question.request if self.question is not None else None
        return asked is not None and (asked.plan_id, asked.step.number) == (plan_id, step)

    def _started(self, message: messages.StepStarted, now: float) -> None:
        self.record.end_text()
        self._work_anew("running", now)
        self.activity.runs += 1
        self.plan.start(message.plan_id, message.step, message.command)
        self.record.started(self.plan, message.step)

    def _completed(self, message: messages.StepCompleted, now: float) -> None:
        self.record.end_part()
        if self._asks_about(message.plan_id, message.step):
            self.question = None
        if message.plan_id == self.plan.id and self.plan.speaks(message.step):
            self.record.result(message)
        self.plan.end(message.plan_id, message.step, message.outcome)
        if self.question is None:
            self.close_question("thinking", now)
        self.record.completed(message)

    def _done(self, message: messages.InstructionDone) -> None:
        self.record.ended(message)
        self.activity.working = self.activity.forming = False
        self.unsent = self.input.text.strip() if self.input is not None else ""
        self.question, self.inspection, self.input = None, None, None
        self.plan.running, self.hint = None, ""
