"""The model of a shell's session: which one is asked, what it costs, and what it may use."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ironcurtain.llm.model import TokenUsage
from ironcurtain.llm.registry import Chosen
from ironcurtain.llm.tokens import UNKNOWN_WINDOW, count_tokens, known_window
from ironcurtain.session import events
from ironcurtain.session.budget import Accounting, BudgetLimits, BudgetMeter
from ironcurtain.session.models import backends_of, budget_tokens, choose_model, cost_of
from ironcurtain.shell.inheritance import AgentPolicies, least
from ironcurtain.shell.messages import Message, Notice
from ironcurtain.shell.model_requests import ModelRequests
from ironcurtain.shell.nesting import Nesting
from ironcurtain.shell.server_tools import ServerTools
from ironcurtain.shell.session_budget import TOKENS_SETTING, SessionBudget
from ironcurtain.shell.surroundings import ShellSurroundings
from ironcurtain.shell.window import ContextWindow


class SessionModel:
    """:param tell: gets messages for front ends."""

    def __init__(self, around: ShellSurroundings, tell: Callable[[Message], None]) -> None:
        self._around, self._core, self._settings, self._tell = around, around.core, around.settings, tell
        self._unknown: set[str] = set()
        self._chosen: Chosen | None = None

    @property
    def provider(self) -> str:
        """The name of who answers; empty before anybody was asked."""
        return self._chosen.provider.name if self._chosen is not None else ""

    async def choose(self) -> Chosen:
        """:returns: the model that is asked; the same one for the whole session."""
        if self._chosen is None:
            self._chosen = await choose_model(
                self._core,
                self._around.reactor,
                self._around.environ,
                backends_of(self._around.options.backend),
                self._around.options.model,
                self._settings.shell.backends,
            )
        return self._chosen

    def requests(self, nesting: Nesting, tools: ServerTools) -> ModelRequests:
        """
        :param tools: are made ready before the first request.
        :returns: the requests to it, within the budget of the session.
        """
        budget = SessionBudget(
            self._accounting(nesting.policies), self._core.request.terminal is not None, self._tell, nesting
        )
        budget.settle()

        async def choose() -> Chosen:
            await tools.ready(self._tell)
            return await self.choose()

        return ModelRequests(
            choose,
            ContextWindow(self.count, self.context),
            budget,
            self._settings.model.max_tokens,
            self._around.start.trace.traceparent if self._settings.telemetry.share_with_backend else "",
            self._tell,
        )

    def count(self, text: str) -> int:
        """:returns: how many tokens a text has."""
        return count_tokens(text, self._name)

    def context(self) -> int:
        """:returns: most tokens of a prompt; front ends are told once if that is not known."""
        set_one, known = self._settings.session.context_tokens, known_window(self._name)
        if not set_one and known is None and self._name not in self._unknown:
            self._unknown.add(self._name)
            name = self._name or "this model"
            words = f"{UNKNOWN_WINDOW:,} tokens are assumed; session.context_tokens says how many there are"
            self._tell(Notice(text=f"the context window of {name} is not known: {words}"))
        size = set_one or known or UNKNOWN_WINDOW
        return size - min(self._settings.model.max_tokens, size // 2)

    def _accounting(self, above: AgentPolicies) -> Accounting:
        """
        :param above: what the agents above this one have left.
        :returns: what counts the use of it, within the limits of the session.
        """

        def emit(event: events.SessionEvent) -> None:
            self._core.emit(event)
            if isinstance(event, events.BudgetWarning):
                self._tell(Notice(text=event.message))

        def cost(usage: TokenUsage) -> float | None:
            return cost_of(self._core, self._name, usage)

        def counted(usage: TokenUsage) -> float:
            return budget_tokens(self._core, self._name, usage)

        return Accounting(BudgetMeter(self._limits(above)), cost, emit, self._around.reactor.seconds, counted)

    def _limits(self, above: AgentPolicies) -> BudgetLimits:
        limits = BudgetLimits(**msgspec.structs.asdict(self._settings.budget))
        most = float(self._settings.shell.max_tokens_per_session)
        tokens = most if limits.tokens is None else min(limits.tokens, most)
        setting = TOKENS_SETTING if tokens == most else limits.tokens_setting
        if above.tokens is not None and above.tokens < tokens:
            tokens, setting = above.tokens, f"{TOKENS_SETTING} of the agent that started this one"
        return BudgetLimits(limits.steps, limits.seconds, tokens, least(limits.cost, above.cost), setting)

    @property
    def _name(self) -> str:
        return self._chosen.asked if self._chosen is not None else ""
