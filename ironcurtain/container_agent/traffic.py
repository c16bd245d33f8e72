"""What the MITM proxy saw, as the session's events and its account."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from ironcurtain.errors import SessionError
from ironcurtain.home.settings import Settings
from ironcurtain.llm import prices
from ironcurtain.llm.model import TokenUsage as Tokens
from ironcurtain.mitm_proxy.recording import (
    USAGE_MEMBERS,
    ModelTraffic,
    ProviderTrouble,
    ProxiedRequest,
    ProxiedResponse,
)
from ironcurtain.session import events
from ironcurtain.session.budget import Accounting, BudgetLimits, BudgetMeter, Dimension
from ironcurtain.session.model import Usage

FAILED = 400
"""HTTP statuses from here on are no answers of a model."""


REFUSALS_TOLD = 20
"""How many kinds of refused requests, each a host and a rule, are told of; an agent can ask for what it likes."""


@dataclass(slots=True)
class Spent:
    """What a session used before it was resumed."""

    steps: int = 0
    seconds: float = 0.0
    tokens: int = 0
    cost: float = 0.0


class Traffic:
    """
    Counts what passes, and stops what goes beyond the budget.

    :param spent: what was used before.
    :param exhausted: told once why, when a limit is reached.
    :param seconds: a clock that never goes back.
    :param log: writes a line into the session's log; takes what speaks, and the line.
    """

    def __init__(
        self,
        settings: Settings,
        spent: Spent,
        emit: Callable[[events.SessionEvent], None],
        exhausted: Callable[[SessionError], None],
        seconds: Callable[[], float],
        log: Callable[[str, str], None],
    ) -> None:
        self._prices = known_prices(settings)
        self._emit, self._exhausted = emit, exhausted
        self._model, self._steps = "", 0
        self._tracked = False
        self._over = False
        self._log = log
        self._refusals: dict[tuple[str, str], int] = {}
        self._budget = budget = BudgetMeter(BudgetLimits(**msgspec.structs.asdict(settings.budget)))
        budget.used.update(
            {
                Dimension.STEPS: spent.steps,
                Dimension.SECONDS: spent.seconds,
                Dimension.TOKENS: spent.tokens,
                Dimension.COST: spent.cost,
            }
        )
        self._accounting = Accounting(budget, self._cost, emit, seconds)

    def begin(self) -> None:
        """
        A message begins.

        :raises SessionError: the budget is used up.
        """
        self._accounting.begin()
        self._steps, self._over = 0, False
        self._accounting.require()

    def look(self) -> None:
        """Time has passed."""
        if not self._over:
            try:
                self._accounting.require()
            except SessionError as e:
                self._over = True
                self._exhausted(e)

    def refusal(self) -> str:
        """:returns: why no further request to the model may be made; empty if one may."""
        notice = self._budget.exhausted
        return str(notice) if notice is not None else ""

    def usage(self) -> Usage:
        """:returns: what the message used so far, as far as the providers said."""
        return msgspec.structs.replace(self._accounting.turn, token_tracking_available=self._tracked)

    def heard(self, event: ModelTraffic) -> None:
        """A request was judged, or answered, or a provider fails."""
        if isinstance(event, ProxiedResponse):
            self._answered(event)
        elif isinstance(event, ProviderTrouble):
            self._emit(events.Notice(text=event.text))
        elif event.decision != "allow":
            self._refused(event)

    def _refused(self, event: ProxiedRequest) -> None:
        kind, reason = (event.host, event.rule), event.reason or event.rule
        if kind not in self._refusals and len(self._refusals) > REFUSALS_TOLD:
            kind = ("other hosts", "")
        times = self._refusals[kind] = self._refusals.get(kind, 0) + 1
        if times == 1:
            self._emit(events.RequestRefused(host=event.host, method=event.method, path=event.path, reason=reason))
        elif str(times).strip("0") == "1":
            self._log("session", f"requests to {kind[0]} were refused {times} times so far: {reason}")

    def _answered(self, event: ProxiedResponse) -> None:
        if event.usage is None and (event.error or not 0 < event.status < FAILED):
            return
        self._tracked = self._tracked or event.usage is not None
        self._model = event.model
        self._steps += 1
        self._accounting.step(self._steps, event.usage or Tokens())
        self.look()

    def _cost(self, tokens: Tokens) -> float | None:
        return prices.cost(self._model, tokens, self._prices)


def known_prices(settings: Settings) -> dict[str, prices.TokenPrice]:
    """:returns: the prices that the settings add to the list."""
    return {model: prices.TokenPrice(**msgspec.structs.asdict(price)) for model, price in settings.prices.items()}


def spent_before(records: Sequence[Mapping[str, Any]], known: Mapping[str, prices.TokenPrice]) -> Spent:
    """
    :param records: of the session's audit log, which counts also what a crash interrupted.
    :param known: prices from the settings.
    """
    spent = Spent(seconds=_seconds(records))
    for record in records:
        usage = record.get("usage")
        if record.get("kind") == "model-response" and isinstance(usage, Mapping):
            tokens = Tokens(*(int(usage.get(name, 0)) for name in USAGE_MEMBERS))
            spent.steps += 1
            spent.tokens += tokens.prompt_tokens + tokens.output_tokens
            spent.cost += prices.cost(str(record.get("model", "")), tokens, known) or 0.0
    return spent


def _seconds(records: Sequence[Mapping[str, Any]]) -> float:
    """:returns: how long programs ran: where a crash came before their end, up to the last record before it."""
    seconds, began, last = 0.0, "", ""
    for record in (*records, {"kind": "resumed"}):
        kind = record.get("kind")
        if kind == "run":
            began = record["time"]
        elif kind == "run-end":
            seconds += float(record.get("durationMs", 0)) / 1000
            began = ""
        elif kind in ("resumed", "recovered") and began:
            took = datetime.fromisoformat(last) - datetime.fromisoformat(began)
            seconds += max(0.0, took.total_seconds())
            began = ""
        last = record.get("time", "")
    return seconds
