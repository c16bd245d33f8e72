"""
What a session may use: steps, time, tokens, money. Time is an argument.

A warning comes once, at a share of the limit; at the limit the work stops cleanly.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

WARN_AT = 0.8
"""Share of a limit at which the warning comes (and the field's usual one)."""


class Dimension(StrEnum):
    """What is counted."""

    STEPS = "steps"
    SECONDS = "seconds"
    TOKENS = "tokens"
    COST = "cost"


@dataclass(frozen=True, slots=True)
class BudgetLimits:
    """
    Limits of one session; ``None`` is no limit.

    :param steps: model requests.
    :param seconds: of work: the time in which a message is processed.
    :param tokens: in and out together.
    :param cost: in US dollars.
    """

    steps: float | None = None
    seconds: float | None = None
    tokens: float | None = None
    cost: float | None = None

    def of(self, dimension: Dimension) -> float | None:
        """:returns: the limit of one dimension."""
        limit: float | None = getattr(self, dimension.value)
        return limit


@dataclass(frozen=True, slots=True)
class BudgetNotice:
    """:param exhausted: the limit is reached; ``False``: only the warning."""

    dimension: Dimension
    used: float
    limit: float
    exhausted: bool

    def __str__(self) -> str:
        word = "used up" if self.exhausted else "nearly used up"
        return f"budget {word}: {self.used:.6g} of {self.limit:.6g} {self.dimension.value}"


@dataclass(slots=True)
class BudgetMeter:
    """One session's account."""

    limits: BudgetLimits
    used: dict[Dimension, float] = field(default_factory=lambda: dict.fromkeys(Dimension, 0.0))
    _told: set[tuple[Dimension, bool]] = field(default_factory=set)

    def spend(self, dimension: Dimension, amount: float) -> BudgetNotice | None:
        """
        Count what was used.

        :param amount: not negative.
        :returns: a notice when this crosses the warning or the limit for the first time.
        """
        self.used[dimension] += amount
        limit = self.limits.of(dimension)
        if limit is None:
            return None
        used = self.used[dimension]
        exhausted = used >= limit
        if used < limit * WARN_AT or (dimension, exhausted) in self._told:
            return None
        self._told.add((dimension, exhausted))
        return BudgetNotice(dimension, used, limit, exhausted)

    @property
    def exhausted(self) -> BudgetNotice | None:
        """The first dimension whose limit is reached, if one is."""
        for dimension, used in self.used.items():
            limit = self.limits.of(dimension)
            if limit is not None and used >= limit:
                return BudgetNotice(dimension, used, limit, True)
        return None
