"""What the agent mode knows: what it was told, what it asks, and what is still to be printed."""

from __future__ import annotations

from ironcurtain.escalation.decision_keys import DecisionKeys, Offer
from ironcurtain.shell import messages
from ironcurtain.shell.messages import ProposedStep
from ironcurtain.shell_screen.input_line import InputLine
from ironcurtain.shell_screen.question import Frame, Inspection, Question, shown_scope, shown_step
from ironcurtain.view.look import Look
from ironcurtain.view.plan import Plan
from ironcurtain.view.step_record import StepRecord


class Panel:
    """
    The state of the agent mode. It is told what happens, in any order; keys change it through a ``Keyboard``.

    :param look: what the terminal can show.
    :ivar working: whether the agent works on an instruction.
    :ivar activity: what the agent does, in a word; ``since`` when, in seconds of the clock.
    :ivar record: what is to be printed once.
    :ivar forming: whether the plan is still being written.
    :ivar keys: what was shown and pressed.
    :ivar question: the one that is open.
    :ivar selected: number of the step that keys act on; ``first`` is the index of the first one on the screen.
    :ivar cut: numbers of steps that are on the screen, but not whole.
    :ivar hint: one line about the last key.
    :ivar unsent: what was being typed for the agent when it was done.
    :ivar runs: how many commands have been started.
    """

    def __init__(self, look: Look) -> None:
        self.look, self.record = look, StepRecord(look)
        self.plan = Plan()
        self.keys = DecisionKeys()
        self.question: Question | None = None
        self.inspection: Inspection | None = None
        self.input: InputLine | None = None
        self.working = self.forming = False
        self.activity, self.since = "", 0.0
        self.hint, self.unsent = "", ""
        self.selected = self.first = self.last = 0
        self.cut: frozenset[int] = frozenset()
        self.runs = 0

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

    def hidden(self) -> None:
        """The screen is given to something else: keys that come before it is drawn again are no answers."""
        self.keys.appear(None, 0.0)

    def drawn(self, frame: Frame, now: float) -> None:
        """The screen shows this now: only from here on can its question be answered, and what is whole is seen."""
        question, inspection = self.question, self.inspection
        if question is not None and frame.question is question:
            self.keys.appear(question, now)
            self.first, self.last, self.cut = frame.first, frame.last, frame.cut
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
                self._accepted(message, now)
            case messages.ModelText():
                self._work("writing", now)
                self.record.say(message.text)
            case messages.StepForming():
                self._step_forming(message, now)
            case messages.PlanProposed():
                self._proposed(message, now)
            case messages.ApprovalRequested():
                self._approval_requested(message, now)
            case messages.StepDecided():
                self._decided(message, now)
            case messages.StepStarted():
                self._started(message, now)
            case messages.StepCompleted():
                self._completed(message, now)
            case messages.Notice():
                self.record.notice(message.text)
            case messages.BudgetReached():
                self._ask(Question("", budget=message), now)
            case messages.InstructionDone():
                self._done(message)
        asked = self.question
        if asked and not asked.budget and (asked.plan_id != self.plan.id or self.chosen is None):
            self._ask_no_more(now)

    def close_question(self, activity: str, now: float) -> None:
        """Nothing is asked any more; the agent goes on."""
        self.question, self.inspection, self.hint = None, None, ""
        self._work(activity, now)

    def _work(self, activity: str, now: float) -> None:
        if activity != self.activity:
            self.since = now
        self.activity = activity

    def _ask(self, question: Question, now: float) -> None:
        self.record.end_text()
        self.working, self.forming = True, False
        self.close_question("asking", now)
        self.question = question
        self.first, self.cut = 0, frozenset()

    def _accepted(self, message: messages.InstructionAccepted, now: float) -> None:
        self.working, self.forming, self.input = True, False, None
        self.plan = Plan()
        self.keys.keep(())
        self.close_question("", now)
        self._work("thinking", now)
        self.record.begin(message.text)

    def _step_forming(self, message: messages.StepForming, now: float) -> None:
        self.record.end_text()
        self.close_question("planning", now)
        if not self.forming:
            self.plan.rewrite(message.plan_id)
        self.working = self.forming = True
        self.plan.put(message.plan_id, message.step)

    def _proposed(self, message: messages.PlanProposed, now: float) -> None:
        self.record.end_part()
        self.plan.propose(message)
        if message.confirm and self.plan.waiting:
            self._ask(Question(message.plan_id), now)
            self.selected = self.plan.waiting[0].number
        else:
            self.forming = False
            self.close_question("working", now)
            self.record.plan(self.plan)

    def _approval_requested(self, message: messages.ApprovalRequested, now: float) -> None:
        self.plan.put(message.plan_id, message.step)
        self._ask(Question(message.plan_id, message), now)
        self.selected = message.step.number

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

    def _decided(self, message: messages.StepDecided, now: float) -> None:
        if self._asks_about(message.plan_id, message.step):
            self.close_question("working", now)
            self.record.decided(message)

    def _started(self, message: messages.StepStarted, now: float) -> None:
        self.record.end_text()
        self.close_question("", now)
        self._work("running", now)
        self.working, self.forming = True, False
        self.runs += 1
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
        self.working = self.forming = False
        self.unsent = self.input.text.strip() if self.input is not None else ""
        self.question, self.inspection, self.input = None, None, None
        self.plan.running, self.hint = None, ""
