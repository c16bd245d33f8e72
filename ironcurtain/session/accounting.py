"""Count what the model uses, and stop when the session's budget is used up."""

from __future__ import annotations

from collections.abc import Callable

from ironcurtain.errors import SessionError
from ironcurtain.llm.model import TokenUsage as Tokens
from ironcurtain.session import events
from ironcurtain.session.budget import BudgetMeter, BudgetNotice, Dimension
from ironcurtain.session.model import Usage


class Accounting:
    """
    One session's use of its model.

    :param cost_of: US dollars for tokens, or ``None`` where the price is not known.
    :param seconds: a clock that never goes back.
    """

    def __init__(
        self,
        budget: BudgetMeter,
        cost_of: Callable[[Tokens], float | None],
        emit: Callable[[events.SessionEvent], None],
        seconds: Callable[[], float],
    ) -> None:
        self._budget, self._cost_of, self._emit, self._seconds = budget, cost_of, emit, seconds
        self.turn = Usage()
        """What the current turn used so far."""
        self._counted = 0.0

    def begin(self) -> None:
        """A turn begins."""
        self.turn, self._counted = Usage(), self._seconds()

    def require(self) -> None:
        """:raises SessionError: a limit of the budget is reached."""
        self._time()
        if notice := self._budget.exhausted:
            raise SessionError(
                "MESSAGE_FAILED",
                f"{notice}: start a new session, after raising [budget] {notice.dimension} if it was too low",
            )

    def step(self, number: int, tokens: Tokens) -> None:
        """Count one model request and tell about it."""
        cost = self._cost_of(tokens)
        self._spend(Dimension.STEPS, 1)
        self._count(tokens, cost)
        self._emit(
            events.StepFinished(
                step=number, input_tokens=tokens.prompt_tokens, output_tokens=tokens.output_tokens, cost=cost
            )
        )

    def failed(self, tokens: Tokens) -> None:
        """Count what a model request cost that gave no answer."""
        self._count(tokens, self._cost_of(tokens))

    def _count(self, tokens: Tokens, cost: float | None) -> None:
        self._spend(Dimension.TOKENS, tokens.prompt_tokens + tokens.output_tokens)
        self._spend(Dimension.COST, cost or 0.0)
        known = None if cost is None and self.turn.cost is None else (self.turn.cost or 0.0) + (cost or 0.0)
        self.turn = Usage(
            input_tokens=self.turn.input_tokens + tokens.prompt_tokens,
            output_tokens=self.turn.output_tokens + tokens.output_tokens,
            cost=known,
        )
        self._time()

    def _time(self) -> None:
        now = self._seconds()
        self._spend(Dimension.SECONDS, now - self._counted)
        self._counted = now

    def _spend(self, dimension: Dimension, amount: float) -> None:
        notice: BudgetNotice | None = self._budget.spend(dimension, amount)
        if notice is not None:
            kind = events.BudgetExhausted if notice.exhausted else events.BudgetWarning
            self._emit(kind(message=str(notice)))
