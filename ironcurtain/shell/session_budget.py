"""What the model of a shell may use in a session, and the question whether it may use more."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

import msgspec
from twisted.internet.defer import Deferred

from ironcurtain.errors import ConfigurationError, SessionError, UsageError
from ironcurtain.session.budget import Accounting, Dimension
from ironcurtain.session.model import Usage
from ironcurtain.shell.inheritance import AgentPolicies
from ironcurtain.shell.messages import BudgetReached, InstructionDone, Message, Notice
from ironcurtain.shell.nesting import Nesting
from ironcurtain.shell.used_below import Used, believable

TOKENS_SETTING: Final = "shell.max_tokens_per_session"
"""The setting whose limit a person may exceed."""

MORE: Final = 0.5
"""Part of the limit that a person is offered more at a time."""


class SessionBudget:
    """
    :param accounting: of the session.
    :param asks: whether there is a person in the terminal who can be asked at the limit; else the instruction ends.
    :param tell: gets messages for front ends.
    :param nesting: tells the agents above and below; ``None``: there can be none.
    :ivar known: whether all that the last instruction used is known.
    :ivar turn_below: what agents below used of it.
    """

    def __init__(
        self,
        accounting: Accounting,
        asks: bool,
        tell: Callable[[Message], None],
        nesting: Nesting | None = None,
    ) -> None:
        self.accounting, self._asks, self._tell, self._nesting = accounting, asks, tell, nesting
        self._more = (accounting.budget.limits.tokens or 0) * MORE
        self._answer: Deferred[bool] | None = None
        self.known = True
        self.turn_below = Usage()
        accounting.spent = self._spent

    def begin(self) -> None:
        """An instruction begins."""
        self.known, self.turn_below = True, Usage()
        self.accounting.begin()
        if self._nesting is not None:
            self._nesting.works = True  # agents below get to know it before the first model request

    def end(self) -> None:
        """It has ended: who starts an agent now is the user."""
        if self._nesting is not None:
            self._nesting.works = False
            with suppress(SessionError, ConfigurationError):  # before the next model request it is said
                self.settle()

    @property
    def usage(self) -> Usage:
        """What the last instruction used so far."""
        return msgspec.structs.replace(self.accounting.turn, token_tracking_available=self.known)

    def narrowed(self, policies: AgentPolicies) -> AgentPolicies:
        """
        :returns: what agents below may do and use: no more than is left.
        :raises UsageError: nothing is left.
        """
        left = self._left()
        if 0 in left:
            raise UsageError("nothing of the budget is left for another agent")
        return policies.merged(AgentPolicies(tokens=left[0], cost=left[1]))

    def settle(self) -> None:
        """
        Count what agents below have said to have used, and let them know what is left.

        :raises SessionError: it cannot be read.
        :raises ConfigurationError: it cannot be written.
        """
        if self._nesting is not None:
            for used in self._nesting.taken():
                self._count(used)
            self._nesting.leave(*self._left())

    def below(self, done: InstructionDone | None, name: str, here: bool) -> str:
        """
        Count what an agent below used. It is believed, within limits.

        :param done: how it ended; ``None``: it did not say.
        :param name: of the agent.
        :param here: whether it is on this machine, where it has said so after each model request.
        :returns: that, in words.
        """
        done = done or InstructionDone(usage_known=False)
        used = believable(Used(done.tokens_in, done.tokens_out, done.counted, done.cost))
        if here:
            with suppress(SessionError, ConfigurationError):  # before the next model request it is said
                self.settle()
        else:
            self._count(used)
            self._tell_above(used)
        words = f"tokens: {used.tokens_in:,} in, {used.tokens_out:,} out" if used.tokens_in or used.tokens_out else ""
        words += f", ${used.cost:.4f}" if words and used.cost is not None else ""
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
        self.settle()
        if self._nesting is not None:
            self._nesting.require()
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
            self.settle()

    def answer(self, go_on: bool) -> None:
        """
        The person has decided.

        :raises UsageError: nobody was asked.
        """
        if self._answer is None:
            raise UsageError("no budget is used up now")
        self._answer.callback(go_on)

    def _spent(self, usage: Usage, counted: float) -> None:
        self._tell_above(Used(usage.input_tokens, usage.output_tokens, counted, usage.cost))

    def _tell_above(self, used: Used) -> None:
        if self._nesting is not None:
            self._nesting.use(used)
            self._nesting.leave(*self._left())

    def _count(self, used: Used) -> None:
        usage = Usage(input_tokens=used.tokens_in, output_tokens=used.tokens_out, cost=used.cost)
        self.accounting.below(usage, used.counted)
        before = self.turn_below
        self.turn_below = Usage(
            input_tokens=before.input_tokens + used.tokens_in, output_tokens=before.output_tokens + used.tokens_out
        )

    def _left(self) -> tuple[float | None, float | None]:
        return self.accounting.left(Dimension.TOKENS), self.accounting.left(Dimension.COST)
