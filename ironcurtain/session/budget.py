"""
The budget of a session: steps, time, tokens, cost. Time is an argument.

A notice is sent once at a share of a limit. At the limit, the work stops cleanly.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import msgspec
from msgspec.structs import replace

from ironcurtain.errors import SessionError
from ironcurtain.home.sections import Budget
from ironcurtain.llm.model import TokenUsage as Tokens
from ironcurtain.session import events
from ironcurtain.session.model import Usage

WARN_AT = 0.8
"""The share of a limit at which the notice is sent."""


class Dimension(StrEnum):
    """The dimensions of a budget."""

    STEPS = "steps"
    SECONDS = "seconds"
    TOKENS = "tokens"
    COST = "cost"


UNPRICED = "what the model costs is not known: budget.cost does not limit it; set [prices.MODEL] if it has no price"
"""The notice, once, where costs have a limit and cannot be counted."""


class BudgetLimits(msgspec.Struct, frozen=True):
    """
    Limits of one session; ``None`` means no limit.

    :param steps: number of model requests.
    :param seconds: working time: while messages are processed.
    :param tokens: input and output together.
    :param cost: in US dollars.
    :param tokens_setting: the setting that says how many tokens.
    """

    steps: float | None = None
    seconds: float | None = None
    tokens: float | None = None
    cost: float | None = None
    tokens_setting: str = "budget.tokens"

    def of(self, dimension: Dimension) -> float | None:
        """:returns: the limit of one dimension."""
        limit: float | None = getattr(self, dimension.value)
        return limit

    def setting(self, dimension: Dimension) -> str:
        """:returns: the name of the setting that has the limit of a dimension."""
        return self.tokens_setting if dimension is Dimension.TOKENS else f"budget.{dimension}"


def stricter(one: Budget, other: Budget) -> Budget:
    """:returns: a budget that keeps the limits of both."""
    limits = {}
    for name in one.__struct_fields__:
        known = [limit for each in (one, other) if (limit := getattr(each, name)) is not None]
        limits[name] = min(known, default=None)
    return Budget(**limits)


class BudgetNotice(msgspec.Struct, frozen=True):
    """:param exhausted: whether the limit is reached; ``False``: it is nearly reached."""

    dimension: Dimension
    used: float
    limit: float
    exhausted: bool

    def __str__(self) -> str:
        word = "used up" if self.exhausted else "nearly used up"
        return f"budget {word}: {self.used:.6g} of {self.limit:.6g} {self.dimension.value}"


class BudgetMeter(msgspec.Struct):
    """The usage of one session."""

    limits: BudgetLimits
    used: dict[Dimension, float] = msgspec.field(default_factory=lambda: dict.fromkeys(Dimension, 0.0))
    _reported: set[tuple[Dimension, bool]] = msgspec.field(default_factory=set)

    def spend(self, dimension: Dimension, amount: float) -> BudgetNotice | None:
        """
        Add usage.

        :param amount: not negative.
        :returns: a notice when this crosses the warning level or the limit for the first time.
        """
        self.used[dimension] += amount
        limit = self.limits.of(dimension)
        if limit is None:
            return None
        used = self.used[dimension]
        exhausted = used >= limit
        if used < limit * WARN_AT or (dimension, exhausted) in self._reported:
            return None
        self._reported.add((dimension, exhausted))
        return BudgetNotice(dimension, used, limit, exhausted)

    def extend(self, more: float) -> None:
        """:param more: how many tokens more than now may be used."""
        self.limits = replace(self.limits, tokens=self.used[Dimension.TOKENS] + more)
        self._reported -= {(Dimension.TOKENS, False), (Dimension.TOKENS, True)}

    @property
    def exhausted(self) -> BudgetNotice | None:
        """The first dimension whose limit is reached; ``None`` if there is none."""
        for dimension, used in self.used.items():
            limit = self.limits.of(dimension)
            if limit is not None and used >= limit:
                return BudgetNotice(dimension, used, limit, True)
        return None


class Accounting:
    """
    Accounts for one session's use of its model.

    :param cost_of: returns the price of tokens in US dollars, or ``None`` if unknown.
    :param seconds: a monotonic clock.
    :param counted: says for how many tokens of the budget some tokens count.
    :ivar spent: gets what was used here, and for how many tokens of the budget it counts.
    """

    def __init__(
        self,
        budget: BudgetMeter,
        cost_of: Callable[[Tokens], float | None],
        emit: Callable[[events.SessionEvent], None],
        seconds: Callable[[], float],
        counted: Callable[[Tokens], float] = lambda tokens: tokens.prompt_tokens + tokens.output_tokens,
    ) -> None:
        self.budget, self._cost_of, self._emit, self._seconds = budget, cost_of, emit, seconds
        self._tokens_counted = counted
        self.spent: Callable[[Usage, float], None] = lambda usage, counted: None
        self.turn = Usage()
        """Usage of the current turn so far."""
        self.turn_counted = 0.0
        """The tokens of the budget that it counts for."""
        self._counted = 0.0
        self._unpriced = False

    def begin(self) -> None:
        """Start a turn."""
        self.turn, self.turn_counted, self._counted = Usage(), 0.0, self._seconds()

    def require(self) -> None:
        """:raises SessionError: a limit of the budget is reached."""
        self._time()
        if notice := self.budget.exhausted:
            setting = self.budget.limits.setting(notice.dimension)
            raise SessionError(
                "MESSAGE_FAILED", f"{notice}: start a new session, after raising {setting} if it was too low"
            )

    def step(self, number: int, tokens: Tokens) -> None:
        """Count one model request, and send its events."""
        cost = self._cost_of(tokens)
        self._spend(Dimension.STEPS, 1)
        self._count(tokens, cost)
        self._emit(
            events.StepFinished(
                step=number, input_tokens=tokens.prompt_tokens, output_tokens=tokens.output_tokens, cost=cost
            )
        )

    def unreported(self, number: int, tokens: int) -> None:
        """
        Count one model request whose usage the model did not say.

        :param tokens: estimated; only the budget has them.
        """
        self._spend(Dimension.STEPS, 1)
        self._spend(Dimension.TOKENS, tokens)
        self.turn = Usage(
            input_tokens=self.turn.input_tokens,
            output_tokens=self.turn.output_tokens,
            cost=self.turn.cost,
            token_tracking_available=False,
        )
        self._priced(None)
        self.turn_counted += tokens
        self._time()
        self._emit(events.StepFinished(step=number, input_tokens=0, output_tokens=0, cost=None))
        self.spent(Usage(), tokens)

    def failed(self, tokens: Tokens) -> None:
        """Count the usage of a model request that is no step: it failed, or the auto-approver made it."""
        self._count(tokens, self._cost_of(tokens))

    def below(self, usage: Usage, counted: float) -> None:
        """
        Count what another session used for this one.

        :param counted: tokens of the budget.
        """
        self._add(usage, counted)

    def left(self, dimension: Dimension) -> float | None:
        """:returns: how much may still be used; ``None``: there is no limit."""
        limit = self.budget.limits.of(dimension)
        return None if limit is None else max(limit - self.budget.used[dimension], 0.0)

    def _count(self, tokens: Tokens, cost: float | None) -> None:
        usage = Usage(input_tokens=tokens.prompt_tokens, output_tokens=tokens.output_tokens, cost=cost)
        counted = self._tokens_counted(tokens)
        self._add(usage, counted)
        self.spent(usage, counted)

    def _add(self, usage: Usage, counted: float) -> None:
        self._spend(Dimension.TOKENS, counted)
        self._spend(Dimension.COST, usage.cost or 0.0)
        self._priced(usage.cost)
        self.turn_counted += counted
        known = None if usage.cost is None and self.turn.cost is None else (self.turn.cost or 0.0) + (usage.cost or 0.0)
        self.turn = Usage(
            input_tokens=self.turn.input_tokens + usage.input_tokens,
            output_tokens=self.turn.output_tokens + usage.output_tokens,
            cost=known,
            token_tracking_available=self.turn.token_tracking_available,
        )
        self._time()

    def _priced(self, cost: float | None) -> None:
        if cost is None and self.budget.limits.cost is not None and not self._unpriced:
            self._unpriced = True
            self._emit(events.BudgetWarning(message=UNPRICED))

    def _time(self) -> None:
        now = self._seconds()
        self._spend(Dimension.SECONDS, now - self._counted)
        self._counted = now

    def _spend(self, dimension: Dimension, amount: float) -> None:
        notice: BudgetNotice | None = self.budget.spend(dimension, amount)
        if notice is not None:
            kind = events.BudgetExhausted if notice.exhausted else events.BudgetWarning
            self._emit(kind(message=str(notice)))
