from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import CancelledError, Deferred
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.llm.fallback import REST_SECONDS, FallbackClient
from ironcurtain.llm.model import (
    ChatMessage,
    ErrorKind,
    FellBack,
    ModelError,
    ModelEvent,
    ModelReply,
    ModelRequest,
    TextBlock,
    TextDelta,
    TokenUsage,
    ToolStarted,
    UsageSeen,
)

REQUEST = ModelRequest("", (ChatMessage("user", (TextBlock("hello"),)),), (), "unused", 100)


class Model:
    """Tells some events, then answers, fails, or waits for ever."""

    def __init__(self, name: str, outcome: ModelError | None = None, *told: ModelEvent, waits: bool = False) -> None:
        self.name, self.outcome, self.told, self.waits = name, outcome, told, waits
        self.asked: list[str] = []

    async def converse(self, request: ModelRequest, notify: Callable[[ModelEvent], None]) -> ModelReply:
        self.asked.append(request.model)
        for event in self.told:
            notify(event)
        if self.waits:
            await Deferred()
        if self.outcome is not None:
            raise self.outcome
        return ModelReply((TextBlock(self.name),), "end_turn", TokenUsage(10, 1), request.model)


def failure(kind: ErrorKind, *, retryable: bool = False, usage: TokenUsage | None = None) -> ModelError:
    return ModelError(kind, f"it is {kind}", retryable=retryable, usage=usage)


class FallbackTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.told: list[ModelEvent] = []
        self.now = 0.0

    def client(self, *models: Model) -> FallbackClient:
        return FallbackClient([(model, f"{model.name}-1") for model in models], lambda: self.now)

    def ask(self, client: FallbackClient) -> Deferred[ModelReply]:
        return Deferred.fromCoroutine(client.converse(REQUEST, self.told.append))

    def test_the_first_one_answers_alone(self) -> None:
        first, second = Model("a"), Model("b")
        reply = self.successResultOf(self.ask(self.client(first, second)))
        self.assertEqual((reply.content, reply.model, second.asked), ((TextBlock("a"),), "a-1", []))
        self.assertEqual(self.told, [])

    def test_the_next_one_is_asked_where_one_cannot_be_reached(self) -> None:
        cases: tuple[tuple[ErrorKind, bool], ...] = (
            ("network", False),
            ("authentication", False),
            ("rate-limited", True),
            ("overloaded", True),
            ("stalled", True),
            ("invalid-request", True),
        )
        for kind, retryable in cases:
            self.told.clear()
            client = self.client(Model("a", failure(kind, retryable=retryable)), Model("b"))
            reply = self.successResultOf(self.ask(client))
            self.assertEqual((reply.model, client.name), ("b-1", "b"))
            self.assertEqual(self.told, [FellBack("a (a-1)", "b (b-1)", f"it is {kind}")])

    def test_what_another_one_would_refuse_as_well_is_final(self) -> None:
        kinds: tuple[ErrorKind, ...] = ("context-overflow", "invalid-request", "script")
        for kind in kinds:
            second = Model("b")
            error = self.failureResultOf(
                self.ask(self.client(Model("a", failure(kind)), second)),
                ModelError,
            )
            self.assertEqual((error.value.kind, second.asked), (kind, []))

    def test_nothing_is_said_twice(self) -> None:
        for event in (TextDelta("hal"), ToolStarted("shell")):
            second = Model("b")
            client = self.client(Model("a", failure("network"), event), second)
            self.failureResultOf(self.ask(client), ModelError)
            self.assertEqual(second.asked, [])

    def test_where_none_is_reached_all_are_named(self) -> None:
        client = self.client(Model("a", failure("authentication")), Model("b", failure("overloaded", retryable=True)))
        error = self.failureResultOf(self.ask(client), ModelError).value
        self.assertEqual((error.kind, error.retryable), ("network", True))
        self.assertEqual(
            str(error),
            "no model can be reached, all were tried: a (a-1): it is authentication; b (b-1): it is overloaded",
        )
        self.assertEqual([event for event in self.told if isinstance(event, FellBack)], self.told)
        self.assertEqual(len(self.told), 1)

    def test_the_only_one_speaks_for_itself(self) -> None:
        error = self.failureResultOf(self.ask(self.client(Model("a", failure("authentication")))), ModelError).value
        self.assertEqual((error.kind, str(error)), ("authentication", "it is authentication"))

    def test_failed_attempts_are_paid_for(self) -> None:
        first = Model("a", failure("network", usage=TokenUsage(5, 2)), UsageSeen(TokenUsage(5, 2)))
        reply = self.successResultOf(self.ask(self.client(first, Model("b", None, UsageSeen(TokenUsage(10, 1))))))
        self.assertEqual(reply.usage, TokenUsage(15, 3))
        self.assertEqual(
            [event for event in self.told if isinstance(event, UsageSeen)],
            [UsageSeen(TokenUsage(5, 2)), UsageSeen(TokenUsage(15, 3))],
        )

    def test_one_that_failed_comes_last_for_a_while(self) -> None:
        first, second = Model("a", failure("network")), Model("b")
        client = self.client(first, second)
        for now in (0.0, 1.0, REST_SECONDS - 1):
            self.now = now
            self.assertEqual(self.successResultOf(self.ask(client)).model, "b-1")
        self.assertEqual((len(first.asked), len(second.asked), len(self.told)), (1, 3, 1))
        self.now, first.outcome = REST_SECONDS, None
        self.assertEqual(self.successResultOf(self.ask(client)).model, "a-1")

    def test_one_that_failed_is_asked_again_before_giving_up(self) -> None:
        first, second = Model("a", failure("network")), Model("b")
        client = self.client(first, second)
        self.successResultOf(self.ask(client))
        first.outcome, second.outcome = None, failure("network")
        self.assertEqual(self.successResultOf(self.ask(client)).model, "a-1")

    def test_cancelling_asks_nobody_else(self) -> None:
        second = Model("b")
        asked = self.ask(self.client(Model("a", waits=True), second))
        asked.cancel()
        self.failureResultOf(asked, CancelledError)
        self.assertEqual(second.asked, [])
