"""What the model of a shell may use in a session, and the question whether it may use more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from twisted.internet.defer import Deferred

from ironcurtain.errors import SessionError, UsageError
from ironcurtain.session.budget import Accounting, Dimension
from ironcurtain.shell.messages import BudgetReached, Message

TOKENS_SETTING: Final = "shell.max_tokens_per_session"
"""The setting whose limit a person may exceed."""

MORE: Final = 0.5
"""Part of the limit that a person is offered more at a time."""


class SessionBudget:
    """
    :param accounting: of the session.
    :param asks: whether there is a person in the terminal who can be asked at the limit; else the instruction ends.
    :param tell: gets messages for front ends.
    """

    def __init__(self, accounting: Accounting, asks: bool, tell: Callable[[Message], None]) -> None:
        self.accounting, self._asks, self._tell = accounting, asks, tell
        self._more = (accounting.budget.limits.tokens or 0) * MORE
        self._answer: Deferred[bool] | None = None

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
