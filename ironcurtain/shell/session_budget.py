"""What the model of a shell may use in a session, and the question whether it may use more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import msgspec
from twisted.internet.defer import Deferred

from ironcurtain.errors import SessionError, UsageError
from ironcurtain.session.budget import Accounting, Dimension
from ironcurtain.session.model import Usage
from ironcurtain.shell.inheritance import AgentPolicies
from ironcurtain.shell.messages import BudgetReached, InstructionDone, Message, Notice

T = TypeVar("T", int, float)

TOKENS_SETTING: Final = "shell.max_tokens_per_session"
"""The setting whose limit a person may exceed."""

MORE: Final = 0.5
"""Part of the limit that a person is offered more at a time."""

MOST_USED: Final = 10**12
"""Most tokens, or US dollars, that an agent below is believed to have used; larger numbers could not be added up."""


class SessionBudget:
    """
    :param accounting: of the session.
    :param asks: whether there is a person in the terminal who can be asked at the limit; else the instruction ends.
    :param tell: gets messages for front ends.
    :ivar known: whether all that the last instruction used is known.
    :ivar turn_below: what agents below used of it.
    """

    def __init__(self, accounting: Accounting, asks: bool, tell: Callable[[Message], None]) -> None:
        self.accounting, self._asks, self._tell = accounting, asks, tell
        self._more = (accounting.budget.limits.tokens or 0) * MORE
        self._answer: Deferred[bool] | None = None
        self.known = True
        self.turn_below = Usage()

    def begin(self) -> None:
        """An instruction begins."""
        self.known, self.turn_below = True, Usage()
        self.accounting.begin()

    @property
    def usage(self) -> Usage:
        """What the last instruction used so far."""
        return msgspec.structs.replace(self.accounting.turn, token_tracking_available=self.known)

    def narrowed(self, policies: AgentPolicies) -> AgentPolicies:
        """
        :returns: what agents below may do and use: no more than is left.
        :raises UsageError: nothing is left.
        """
        left = {each: self.accounting.left(each) for each in (Dimension.TOKENS, Dimension.COST)}
        if 0 in left.values():
            raise UsageError("nothing of the budget is left for another agent")
        return policies.merged(AgentPolicies(tokens=left[Dimension.TOKENS], cost=left[Dimension.COST]))

    def below(self, done: InstructionDone | None, name: str) -> str:
        """
        Count what an agent below used. It is believed, between nothing and :data:`MOST_USED`.

        :param done: how it ended; ``None``: it did not say.
        :param name: of the agent.
        :returns: that, in words.
        """
        done = done or InstructionDone(usage_known=False)
        tokens_in, tokens_out = _believable(done.tokens_in), _believable(done.tokens_out)
        cost = None if done.cost is None else float(_believable(done.cost))
        counted = _believable(done.counted) or tokens_in + tokens_out
        usage = Usage(input_tokens=tokens_in, output_tokens=tokens_out, cost=cost)
        self.accounting.below(usage, counted)
        before = self.turn_below
        self.turn_below = Usage(
            input_tokens=before.input_tokens + tokens_in, output_tokens=before.output_tokens + tokens_out
        )
        words = f"tokens: {tokens_in:,} in, {tokens_out:,} out" if tokens_in or tokens_out else ""
        words += f", ${cost:.4f}" if words and cost is not None else ""
        if done.usage_known and (words or done.error):
            return words
        self.known = False
        many = "all that it used" if words else "how many tokens it used"
        self._tell(Notice(text=f"{name} did not say {many}: that is missing in the budget of this session"))
        return words or "tokens: not known"

    async def require(self) -> None:
        """
        Ask a person, once the tokens of ``shell.max_tokens_per_session`` are used up.

        :raises SessionError: a limit is reached, and nobody has allowed more.
        """
        try:
            self.accounting.require()
        except SessionError:
            budget = self.accounting.budget
            notice = budget.exhausted
            if not self._asks or notice is None or notice.dimension is not Dimension.TOKENS:
                raise
            if budget.limits.tokens_setting != TOKENS_SETTING:
                raise
            self._answer = Deferred()
            self._tell(BudgetReached(used=round(notice.used), more=round(self._more), setting=TOKENS_SETTING))
            try:
                if not await self._answer:
                    raise
            finally:
                self._answer = None
            budget.extend(self._more)

    def answer(self, go_on: bool) -> None:
        """
        The person has decided.

        :raises UsageError: nobody was asked.
        """
        if self._answer is None:
            raise UsageError("no budget is used up now")
        self._answer.callback(go_on)


def _believable(said: T) -> T | int:
    return min(max(said, 0), MOST_USED)
