"""Several models in an order: where one cannot be reached, the next is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from ironcurtain.llm.model import (
    ErrorKind,
    FellBack,
    ModelClient,
    ModelError,
    ModelEvent,
    ModelReply,
    ModelRequest,
    TextDelta,
    TokenUsage,
    ToolAsked,
    ToolStarted,
    UsageSeen,
)

REST_SECONDS: Final = 300.0
"""How long a model that failed comes after the others."""

_UNREACHABLE: Final[frozenset[ErrorKind]] = frozenset(
    ("authentication", "network", "overloaded", "rate-limited", "stalled")
)


def unreachable(error: ModelError) -> bool:
    """:returns: whether another model may answer, or the same one later."""
    return error.retryable or error.kind in _UNREACHABLE


class FallbackClient:
    """
    Ask the first model of a list that answers.

    Once anything of an answer was shown, its failure is final: another model would begin anew.

    :param choices: clients and the models to ask them for, the preferred one first. The model of a request is not used.
    :param now: seconds on any clock.
    """

    def __init__(self, choices: Sequence[tuple[ModelClient, str]], now: Callable[[], float]) -> None:
        self._choices, self._now = tuple(choices), now
        self._rests_until = [0.0] * len(self._choices)
        self._last = 0

    @property
    def name(self) -> str:
        """Of the provider that was asked last."""
        return self._choices[self._last][0].name

    @property
    def model(self) -> str:
        """The model that was asked last."""
        return self._choices[self._last][1]

    async def converse(self, request: ModelRequest, notify: Callable[[ModelEvent], None]) -> ModelReply:
        """See :meth:`ironcurtain.llm.model.ModelClient.converse`; ``network`` also means that none was reached."""
        spent, reasons = TokenUsage(), list[str]()
        order = self._order()
        for position, index in enumerate(order):
            self._last = index
            attempt = _Attempt(spent, notify)
            client, model = self._choices[index]
            try:
                reply = await client.converse(replace(request, model=model), attempt.notify)
            except ModelError as e:
                spent += e.usage or TokenUsage()
                if attempt.shown or not unreachable(e):
                    e.usage = spent
                    raise
                self._rests_until[index] = self._now() + REST_SECONDS
                reasons.append(f"{self._shown(index)}: {e}")
                if position + 1 == len(order):
                    raise self._none_left(e, reasons, spent) from None
                notify(FellBack(self._shown(index), self._shown(order[position + 1]), str(e)))
            else:
                self._rests_until[index] = 0.0
                return replace(reply, usage=spent + reply.usage)
        raise AssertionError("there is no model to ask")

    def _order(self) -> list[int]:
        now = self._now()
        return sorted(range(len(self._choices)), key=lambda index: self._rests_until[index] > now)

    def _shown(self, index: int) -> str:
        client, model = self._choices[index]
        return f"{client.name} ({model})" if model else client.name

    def _none_left(self, last: ModelError, reasons: Sequence[str], spent: TokenUsage) -> ModelError:
        if len(reasons) == 1:
            last.usage = spent
            return last
        detail = f"no model can be reached, all were tried: {'; '.join(reasons)}"
        return ModelError("network", detail, retryable=True, usage=spent)


class _Attempt:
    """Passes events of one client on, and remembers whether any of them was shown."""

    def __init__(self, spent: TokenUsage, notify: Callable[[ModelEvent], None]) -> None:
        self._spent, self._notify = spent, notify
        self.shown = False

    def notify(self, event: ModelEvent) -> None:
        self.shown = self.shown or isinstance(event, (TextDelta, ToolStarted, ToolAsked))
        self._notify(UsageSeen(self._spent + event.usage) if isinstance(event, UsageSeen) else event)
