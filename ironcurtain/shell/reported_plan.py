"""A plan as whoever reads the messages of a shell's agent knows it: its steps, and which of them are over."""

from __future__ import annotations

import msgspec

from ironcurtain.shell.messages import PlanProposed, ProposedStep, StepKind, StepOutcome


class Plan(msgspec.Struct):
    """
    A plan that is written, decided on or carried out.

    :ivar steps: by their numbers.
    :ivar outcomes: of those that are over.
    :ivar running: the one whose command runs.
    """

    id: str = ""
    steps: dict[int, ProposedStep] = msgspec.field(default_factory=dict)
    outcomes: dict[int, StepOutcome] = msgspec.field(default_factory=dict)
    running: int | None = None

    @property
    def total(self) -> int:
        """How many steps there are, by their count or the highest number."""
        return max(len(self.steps), max(self.steps, default=0))

    @property
    def waiting(self) -> list[ProposedStep]:
        """Steps that have not begun, in order."""
        return [self.steps[number] for number in sorted(self.steps) if not self._begun(number)]

    def speaks(self, number: int) -> bool:
        """:returns: whether a step is no command, so that what it has to say is not on the terminal already."""
        step = self.steps.get(number)
        return step is not None and step.kind is not StepKind.COMMAND

    def put(self, plan_id: str, step: ProposedStep) -> None:
        """Take one step, new or changed; it is the only one of a plan that was not known."""
        self._enter(plan_id)
        if step.number == self.running:  # an agent below asks, whose step this is
            self.running = None
        self.outcomes.pop(step.number, None)
        self.steps[step.number] = step

    def rewrite(self, plan_id: str) -> None:
        """Drop the steps that have not begun: others come."""
        self._enter(plan_id)
        self.steps = {number: step for number, step in self.steps.items() if self._begun(number)}

    def propose(self, proposed: PlanProposed) -> None:
        """Take a whole plan in place of the steps that have not begun."""
        self.rewrite(proposed.plan_id)
        for step in proposed.steps:
            known = self.steps.get(step.number)
            if known is None or known.command != step.command:  # else it is one that has begun
                self.put(proposed.plan_id, step)

    def start(self, plan_id: str, number: int, command: str) -> None:
        """The command of a step runs."""
        self._enter(plan_id)
        known = self.steps.get(number)
        if known is None or known.command != command:
            self.steps[number] = ProposedStep(number=number, command=command, purpose=known.purpose if known else "")
        self.running = number

    def end(self, plan_id: str, number: int, outcome: StepOutcome) -> None:
        """A step is over, or will not be run; of another plan, it changes nothing."""
        if plan_id != self.id:
            return
        self.outcomes[number] = outcome
        if self.running == number:
            self.running = None

    def _begun(self, number: int) -> bool:
        return number in self.outcomes or number == self.running

    def _enter(self, plan_id: str) -> None:
        if plan_id != self.id:
            self.id, self.running = plan_id, None
            self.steps, self.outcomes = {}, {}
