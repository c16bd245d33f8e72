"""The provider against a real TLS server on the loopback address; waits are on a ``Clock``, nothing sleeps."""

from __future__ import annotations

import traceback

from msgspec.structs import replace
from twisted.internet import reactor
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import deferLater
from twisted.logger import capturedLogs, eventAsText
from twisted.python.failure import Failure

from ironcurtain.llm.model import (
    ChatMessage,
    ModelError,
    ModelEvent,
    ModelReply,
    ProviderBlock,
    Retrying,
    TextBlock,
    TextDelta,
    TokenUsage,
    ToolResult,
    ToolUse,
    UsageSeen,
)
from tests.llm.provider_case import HELLO, HI, ProviderCase, request
from tests.model_stub.certificates import Authority
from tests.model_stub.replies import Answer, Dropped, Refusal, Text, Thinking, Tool
from tests.model_stub.server import DEFAULT_KEY, ModelStub


class ConversationTests(ProviderCase):
    async def test_an_answer(self) -> None:
        await self.start(Answer((Text(("Hi", " there")),), usage={"input_tokens": 7, "output_tokens": 2}))
        reply = await self.ask()
        self.assertEqual(reply, ModelReply((TextBlock("Hi there"),), "end_turn", TokenUsage(7, 2), "claude-opus-5-5"))
        self.assertEqual(self.texts, ["Hi", " there"])

    async def test_the_request_as_it_arrives(self) -> None:
        await self.start(HI, HI)
        for place in ("", "00-7f-a1-01"):
            await self.provider().converse(replace(request(), traceparent=place), self.notify)
        made, traced = self.stub.requests
        self.assertEqual([r.headers.get("traceparent") for r in (made, traced)], [None, "00-7f-a1-01"])
        self.assertEqual((made.method, made.path, made.refused), ("POST", "/v1/messages", ""))
        self.assertEqual(made.headers["x-api-key"], DEFAULT_KEY)
        self.assertEqual(made.headers["content-type"], "application/json")
        self.assertEqual(made.json["messages"][0]["content"][0]["text"], "Hello")

    async def test_a_conversation_with_a_tool_and_reasoning(self) -> None:
        await self.start(Answer((Thinking(), Text(("Look.",)), Tool("execute_code", {"code": "1+1"}, "t1"))), HI)
        first = await self.ask()
        self.assertEqual(first.content[1:], (TextBlock("Look."), ToolUse("t1", "execute_code", {"code": "1+1"})))
        self.assertIsInstance(first.content[0], ProviderBlock)
        answered = ChatMessage("user", (ToolResult("t1", "2", False),))
        second = await self.ask(HELLO, ChatMessage("assistant", first.content), answered)
        self.assertEqual(second.stop_reason, "end_turn")
        self.assertEqual(self.stub.requests[1].json["messages"][1]["content"][0]["type"], "thinking")

    async def test_each_piece_is_told_before_the_next_is_sent(self) -> None:
        chunks = ("one", " two", " three")
        await self.start(Answer((Text(chunks),), held=True, pings=0))
        asked = self.ask()
        # Three events stand before the first text, and each further one is let go only by the text before it.
        self.stub.release(3)
        self.on(TextDelta, lambda: self.stub.release(1 if len(self.texts) < 3 else 3))
        await asked
        self.assertEqual(self.texts, list(chunks))

    async def test_a_stream_in_tiny_pieces(self) -> None:
        await self.start(Answer((Text(("Gr\u00fc\u00dfe, \U0001f600", "\u4e16\u754c")),), slice=7))
        self.assertEqual((await self.ask()).content, (TextBlock("Gr\u00fc\u00dfe, \U0001f600\u4e16\u754c"),))

    async def test_a_large_request_and_a_large_answer(self) -> None:
        await self.start(Answer((Text(("x" * 500_000, "y" * 500_000)),)))
        reply = await self.ask(ChatMessage("user", (TextBlock("z" * 3_000_000),)))
        self.assertEqual(reply.content, (TextBlock("x" * 500_000 + "y" * 500_000),))
        self.assertGreater(len(self.stub.requests[0].body), 3_000_000)


class RetryTests(ProviderCase):
    async def test_retry_then_success(self) -> None:
        await self.start(Refusal(529), Refusal(500), Dropped(), HI)
        self.on(Retrying, lambda: self.clock.advance(self.told[-1].delay_seconds))  # type: ignore[union-attr]
        reply = await self.ask(attempts=4)
        self.assertEqual(reply.content, (TextBlock("Hi there"),))
        self.assertEqual([e.delay_seconds for e in self.told if isinstance(e, Retrying)], [1.0, 2.0, 4.0])
        self.assertEqual(len(self.stub.requests), 4)

    async def test_retry_after_is_kept_to(self) -> None:
        await self.start(Refusal(429, headers={"retry-after": "17"}), HI)
        waiting: Deferred[None] = Deferred()
        self.on(Retrying, lambda: waiting.callback(None))
        asked = self.ask()
        await waiting
        self.clock.advance(16.9)
        self.assertEqual(len(self.stub.requests), 1)
        self.clock.advance(0.1)
        await asked
        self.assertEqual(len(self.stub.requests), 2)
        (retrying,) = [event for event in self.told if isinstance(event, Retrying)]
        self.assertEqual(retrying.delay_seconds, 17.0)
        self.assertIn("rate_limit_error", retrying.reason)

    async def test_a_retry_after_of_an_hour_is_told_instead_of_kept(self) -> None:
        await self.start(Refusal(429, headers={"retry-after": "3600"}))
        error = await self.error(self.ask())
        self.assertEqual((error.kind, error.retryable, error.retry_after), ("rate-limited", True, 3600.0))
        self.assertIn("requests a delay of 3600 s", str(error))

    async def test_it_gives_up_at_last(self) -> None:
        await self.start(*[Refusal(529)] * 3)
        self.on(Retrying, lambda: self.clock.advance(60))
        error = await self.error(self.ask())
        self.assertEqual((error.kind, error.retryable, len(self.stub.requests)), ("overloaded", True, 3))

    async def test_what_is_the_callers_fault_is_not_tried_again(self) -> None:
        for refusal, kind in (
            (Refusal(400, message="prompt is too long: 207791 tokens > 200000 maximum"), "context-overflow"),
            (Refusal(413), "context-overflow"),
            (Refusal(400, message="max_tokens: too big"), "invalid-request"),
            (Refusal(404, message="model: claude-x"), "invalid-request"),
            (Refusal(302, headers={"location": "https://evil.test/v1/messages"}), "invalid-request"),
        ):
            self.stub = ModelStub(reactor)
            await self.start(refusal)
            error = await self.error(self.ask())
            self.assertEqual((error.kind, error.retryable, len(self.stub.requests)), (kind, False, 1))
            self.assertIn(refusal.message, str(error))

    async def test_an_error_event_before_any_text_is_tried_again_and_paid_for(self) -> None:
        usage = {"input_tokens": 100, "output_tokens": 5}
        await self.start(
            Answer((Text(("a",)),), end="error", after=2, usage=usage), Answer((Text(("b",)),), usage=usage)
        )
        self.on(Retrying, lambda: self.clock.advance(1))
        reply = await self.ask()
        self.assertEqual((reply.content, reply.usage), ((TextBlock("b"),), TokenUsage(200, 6)))
        self.assertEqual(self.told[-1], UsageSeen(TokenUsage(200, 6)))

    async def test_after_text_was_shown_nothing_is_tried_again(self) -> None:
        for end, kind in (("error", "overloaded"), ("cut", "network")):
            self.stub = ModelStub(reactor)
            content = (Text(("Hi", " there")),)
            await self.start(Answer(content, end=end, after=4, usage={"input_tokens": 9}), HI)  # type: ignore[arg-type]
            self.told.clear()
            error = await self.error(self.ask())
            self.assertEqual((error.kind, error.retryable, error.usage), (kind, False, TokenUsage(9, 1)))
            self.assertEqual((self.texts, len(self.stub.requests)), (["Hi"], 1))

    async def test_a_stream_that_ends_politely_but_early_is_an_error(self) -> None:
        await self.start(Answer((Text(("Hi",)),), end="short", after=4), Answer(HI.content, end="short", after=1), HI)
        error = await self.error(self.ask())
        self.assertEqual((error.kind, error.retryable), ("network", False))
        self.assertIn("ended its answer prematurely", str(error))
        self.on(Retrying, lambda: self.clock.advance(1))
        self.assertEqual((await self.ask()).content, (TextBlock("Hi there"),))


class CancellationTests(ProviderCase):
    async def test_the_server_sees_a_cancelled_request_at_once(self) -> None:
        await self.start(Answer((Text(("Hi",)),), end="stall", after=4))
        asked = self.ask()
        self.on(TextDelta, asked.cancel)
        with self.assertRaises(CancelledError):
            await asked
        self.assertEqual(await self.stub.requests[0].ended, "aborted")
        self.assertEqual(self.clock.getDelayedCalls(), [])

    async def test_cancelling_from_within_an_event(self) -> None:
        await self.start(Answer((Text(("a", "b", "c")),), slice=100_000))
        asked = self.ask()
        self.seen.append(lambda event: asked.cancel() if isinstance(event, TextDelta) else None)
        with self.assertRaises(CancelledError):
            await asked
        # The rest came in the same piece of the stream: let the provider finish with it.
        await deferLater(reactor, 0)
        self.assertEqual(self.texts, ["a"])

    async def test_cancelling_before_any_response(self) -> None:
        await self.start(Answer(HI.content, held=True))
        self.stub.hold = self.stub_silent  # type: ignore[method-assign]
        asked = self.ask()
        self.arrived: Deferred[None] = Deferred()
        await self.arrived
        asked.cancel()
        with self.assertRaises(CancelledError):
            await asked
        self.assertEqual(await self.stub.requests[0].ended, "aborted")

    def stub_silent(self) -> Deferred[None]:
        self.arrived.callback(None)
        return Deferred()

    async def test_cancelling_while_waiting_to_try_again(self) -> None:
        await self.start(Refusal(529))
        asked = self.ask()
        self.on(Retrying, asked.cancel)
        with self.assertRaises(CancelledError):
            await asked
        self.assertEqual((len(self.stub.requests), self.clock.getDelayedCalls()), (1, []))

    async def test_a_listener_that_fails_is_not_taken_for_the_network(self) -> None:
        await self.start(HI)

        def broken(event: ModelEvent) -> None:
            raise ZeroDivisionError

        self.seen.append(broken)
        with self.assertRaises(ZeroDivisionError):
            await self.ask()
        self.assertEqual(len(self.stub.requests), 1)


class StallTests(ProviderCase):
    async def test_silence_in_the_middle_of_an_answer(self) -> None:
        await self.start(Answer((Text(("Hi",)),), end="stall", after=4))
        self.on(TextDelta, lambda: self.clock.advance(60))
        error = await self.error(self.ask())
        self.assertEqual((error.kind, error.retryable, error.usage), ("stalled", False, TokenUsage(10, 1)))
        self.assertIn("nothing for 60 s", str(error))
        self.assertEqual(await self.stub.requests[0].ended, "aborted")

    async def test_silence_before_any_text_is_tried_again(self) -> None:
        await self.start(Answer((Text(("Hi",)),), end="stall", after=1), HI)
        self.on(UsageSeen, lambda: self.clock.advance(60 if len(self.stub.requests) == 1 else 0))
        self.on(Retrying, lambda: self.clock.advance(1))
        reply = await self.ask()
        self.assertEqual(reply.content, (TextBlock("Hi there"),))
        self.assertEqual(len(self.stub.requests), 2)

    async def test_every_byte_starts_the_patience_afresh(self) -> None:
        await self.start(Answer((Text(("a", "b", "c")),), held=True, pings=0))
        asked = self.ask()
        self.stub.release(3)

        def later() -> None:
            self.clock.advance(59)
            self.stub.release(1 if len(self.texts) < 3 else 3)

        self.on(TextDelta, later)
        self.assertEqual((await asked).content, (TextBlock("abc"),))


class TrustTests(ProviderCase):
    async def test_an_unknown_authority_is_refused_before_anything_is_sent(self) -> None:
        await self.start(HI)
        error = await self.error(self.ask(ca=Authority.make().pem))
        self.assertEqual((error.kind, error.retryable, self.stub.requests), ("network", False, []))
        self.assertIn("certificate of localhost is not valid", str(error))
        self.assertIn("ca_file", str(error))

    async def test_a_certificate_for_another_name_is_refused(self) -> None:
        await self.start(HI, names=("other.test",))
        error = await self.error(self.ask())
        self.assertEqual((error.kind, error.retryable, self.stub.requests), ("network", False, []))
        self.assertIn("it is for another name", str(error))

    async def test_the_file_may_hold_several_authorities(self) -> None:
        await self.start(HI)
        await self.ask(ca=Authority.make().pem + b"\n# ours\n" + self.stub.authority.pem)

    async def test_a_server_that_is_not_there_is_tried_again(self) -> None:
        await self.start()
        asked = self.provider(attempts=2)
        await self.stub.stop()
        self.on(Retrying, lambda: self.clock.advance(1))
        error = await self.error(Deferred.fromCoroutine(asked.converse(request(), self.notify)))
        self.assertEqual((error.kind, error.retryable), ("network", True))
        self.assertIn("localhost cannot be reached", str(error))
        self.assertEqual(sum(isinstance(event, Retrying) for event in self.told), 1)

    async def test_an_answer_that_is_no_stream_names_the_setting(self) -> None:
        await self.start(Refusal(200, body="<html>Welcome</html>"))
        error = await self.error(self.ask())
        self.assertIn("application/json instead of a stream of events; check base_url", str(error))


class KeyTests(ProviderCase):
    CANARY = "sk-ant-api03-CANARY/never+shown=0123456789abcdef"

    async def test_a_wrong_key_is_told_by_its_origin(self) -> None:
        await self.start()
        error = await self.error(self.ask(key=self.CANARY))
        self.assertEqual((error.kind, error.retryable, len(self.stub.requests)), ("authentication", False, 1))
        self.assertIn("the key from environment variable ANTHROPIC_API_KEY was refused", str(error))
        self.assertIn("invalid x-api-key", str(error))

    async def test_a_key_that_cannot_be_sent_is_refused_without_showing_it(self) -> None:
        await self.start()
        for key in ("", "CANARY\r\nx: y", "CANARY \u20ac", "CANARY two"):
            error = await self.error(self.ask(key=key))
            self.assertEqual(error.kind, "authentication")
            self.assertNotIn("CANARY", self.everything(error))
        self.assertEqual(self.stub.connections, 0)

    async def test_the_key_appears_nowhere(self) -> None:
        repeated = f"your key {self.CANARY} is bad"
        for reply in (
            Refusal(401, message=repeated),
            Refusal(500, body=repeated),
            Answer(end="error", error=("invalid_request_error", repeated)),
            Answer(end="error", error=("overloaded_error", repeated)),
            Answer((Text(("Hi",)),), end="cut", after=2),
            Dropped(),
        ):
            self.stub = ModelStub(reactor, keys=[self.CANARY])
            await self.start(reply)
            with capturedLogs() as logs:
                provider = self.provider(key=self.CANARY, attempts=2)
                self.stub.replies.append(reply)
                self.on(Retrying, lambda: self.clock.advance(1))
                error = await self.error(Deferred.fromCoroutine(provider.converse(request(), self.notify)))
            self.assertEqual(self.stub.requests[0].headers["x-api-key"], self.CANARY)
            logged = "".join(eventAsText(event) + repr(event) for event in logs)
            shown = self.everything(error) + logged + repr(self.told) + repr(vars(provider))
            self.assertNotIn("CANARY", shown)

    def everything(self, error: ModelError) -> str:
        failure = Failure(error)
        chained = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
        return chained + repr(error) + str(error) + repr(vars(error)) + failure.getTraceback(detail="verbose")
