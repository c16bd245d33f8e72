"""The requests to the model of a shell: one at a time, accounted for, and their course told to front ends."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from twisted.internet.defer import Deferred

from ironcurtain.errors import SessionError
from ironcurtain.llm.conversation import ShownText
from ironcurtain.llm.fallback import unreachable
from ironcurtain.llm.model import (
    FellBack,
    ModelError,
    ModelEvent,
    ModelReply,
    ModelRequest,
    Retrying,
    TextBlock,
    TextDelta,
    TokenUsage,
    ToolAsked,
    ToolSpec,
    ToolUse,
)
from ironcurtain.llm.registry import Chosen
from ironcurtain.session.budget import Accounting
from ironcurtain.session.model import Usage
from ironcurtain.shell.context import SYSTEM
from ironcurtain.shell.messages import Message, ModelText, Notice
from ironcurtain.shell.session_budget import SessionBudget
from ironcurtain.shell.window import ContextWindow


class ModelRequests:
    """
    :param choose: gives the model to ask.
    :param window: keeps what was said.
    :param budget: of the session.
    :param tokens: most tokens of one answer.
    :param traceparent: the session's place in a trace, if its provider is to know it.
    :param tell: gets messages for front ends.
    :ivar model: that was asked last.
    :ivar unreached: whether nothing was done for the last instruction, since no model could be reached.
    """

    def __init__(
        self,
        choose: Callable[[], Awaitable[Chosen]],
        window: ContextWindow,
        budget: SessionBudget,
        tokens: int,
        traceparent: str,
        tell: Callable[[Message], None],
    ) -> None:
        self._choose, self.window, self.budget = choose, window, budget
        self._tokens, self._traceparent, self._tell = tokens, traceparent, tell
        self._asking: Deferred[ModelReply] | None = None
        self._formed: Callable[[ToolUse], None] = lambda use: None
        self._shown_text = ShownText()
        self.model = ""
        self.unreached = False

    @property
    def accounting(self) -> Accounting:
        """Of the session."""
        return self.budget.accounting

    @property
    def usage(self) -> Usage:
        """What the last instruction used so far."""
        return self.budget.usage

    def begin(self) -> None:
        """An instruction begins."""
        self.unreached = False
        self.budget.begin()

    def end(self) -> None:
        """It has ended."""
        self.budget.end()

    async def ask(
        self, number: int, tools: Callable[[], tuple[ToolSpec, ...]], formed: Callable[[ToolUse], None]
    ) -> ModelReply:
        """
        Ask for the next answer in the conversation.

        :param number: of the request, from 1 in each instruction.
        :param tools: gives those that the model is offered, once it is chosen: by then servers are up.
        :param formed: gets each use of a tool as soon as it is whole.
        :raises SessionError: there is no answer, or the budget is used up.
        """
        self._formed, self._shown_text = formed, ShownText()
        self._asking = Deferred.fromCoroutine(self._converse(tools))
        try:
            reply = await self._asking
        except ModelError as e:
            if e.usage is not None:
                self.accounting.failed(e.usage)
            self.unreached = number == 1 and unreachable(e)
            if partial := self._shown_text.kept(e):
                self.window.answer((TextBlock(partial),))
            raise SessionError("MESSAGE_FAILED", self._shown_text.failure(e), partial=partial) from e
        finally:
            self._asking = None
        if reply.usage != TokenUsage():
            self.accounting.step(number, reply.usage)
        else:  # what it used is estimated, for the budget only
            self.budget.known = False
            self.accounting.unreported(number, self.window.tokens)
        return reply

    def cancel(self) -> None:
        """The answer is not wanted any more."""
        if self._asking is not None:
            self._asking.cancel()

    async def _converse(self, tools: Callable[[], tuple[ToolSpec, ...]]) -> ModelReply:
        await self.budget.require()
        chosen = await self._choose()
        self.model = chosen.model
        messages = self.window.messages()
        request = ModelRequest(SYSTEM, messages, tools(), chosen.model, self._tokens, self._traceparent)
        try:
            return await chosen.provider.converse(request, self._event)
        finally:
            self.model = chosen.asked

    def _event(self, event: ModelEvent) -> None:
        self._shown_text.take(event)
        match event:
            case TextDelta():
                self._tell(ModelText(text=event.text))
            case Retrying():
                self._tell(Notice(text=f"{event.reason}; trying again in {event.delay_seconds:.0f} s"))
            case FellBack():
                self._tell(Notice(text=f"{event.from_} gave no answer ({event.reason}); asking {event.to}"))
            case ToolAsked():
                self._formed(event.use)
