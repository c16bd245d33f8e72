"""Watchers in a shell: what they would do waits for the user, who is told above the next prompt."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from twisted.internet.defer import Deferred

from ironcurtain.errors import SessionError
from ironcurtain.shell.waiting import Offer, WaitingInstructions
from ironcurtain.watchers.decision import Batch
from ironcurtain.watchers.message import message, summary
from ironcurtain.watchers.model import Watcher
from ironcurtain.watchers.watching import Declined


class ShellRuns:
    """
    A :class:`~ironcurtain.watchers.watching.Run` that proposes the instruction to the user of a shell.

    :param waiting: keeps it until the user begins or discards it.
    :param say: shows a sentence above the next prompt.
    """

    def __init__(self, waiting: WaitingInstructions, say: Callable[[str], None]) -> None:
        self._waiting, self._say = waiting, say

    async def __call__(self, watcher: Watcher, batch: Batch, begun: Callable[[int], None]) -> None:
        """
        Propose it, and wait until it is over.

        :raises Declined: the user discards it, or too much waits.
        :raises SessionError: the agent failed.
        """
        over: Deferred[str | None] = Deferred()
        shown = f"watcher {watcher.name}: {summary(batch)}"
        text = message(watcher.instruction, batch, secrets.token_hex(8))
        number = self._waiting.offer(Offer(text, shown, lambda: begun(0), over.callback))
        if number is None:
            self._say(f"dropped, since too much waits (#? lists it): {shown}")
            raise Declined("too many instructions wait")
        self._say(f"#+ {number} runs it, #- {number} drops it: {shown}")
        try:
            error = await over
        finally:
            self._waiting.withdraw(number)
        if error is None:
            raise Declined("the user dropped it")
        if error:
            raise SessionError("MESSAGE_FAILED", error)
