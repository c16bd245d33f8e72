"""What every adapter promises, in the same words for each: against a server that speaks the real format over TLS."""

from __future__ import annotations

import json

from twisted.internet import reactor
from twisted.internet.defer import CancelledError, Deferred

from ironcurtain.llm.anthropic import AnthropicDialect
from ironcurtain.llm.google import GoogleDialect
from ironcurtain.llm.model import (
    ChatMessage,
    ModelError,
    ModelReply,
    Retrying,
    TextBlock,
    TextDelta,
    TokenUsage,
    ToolAsked,
    ToolResult,
    ToolStarted,
    ToolUse,
    UsageSeen,
)
from ironcurtain.llm.openai import OpenAiDialect
from ironcurtain.llm.openai_chat import OpenAiChatDialect
from tests.llm.provider_case import HELLO, HI, ProviderCase, request
from tests.model_stub.replies import Answer, Refusal, Text, Thinking, Tool
from tests.model_stub.server import DEFAULT_KEYS, ModelStub

LOOK = Tool("execute_code", {"code": "1+1", "why": "\u00fc"}, "call_1")
MORE = Tool("execute_code", {"code": "2+2"}, "call_2")
USAGE = {"input_tokens": 7, "output_tokens": 5, "cache_read_input_tokens": 20}


class DialectPromises(ProviderCase):
    """
    :cvar first_text: number of events up to the first text.
    :cvar overflow: the provider's refusal of a conversation that is too long.
    """

    first_text: int
    overflow: Refusal

    async def test_text(self) -> None:
        await self.start(Answer((Text(("Gr\u00fc\u00dfe, ", "\U0001f600")),), usage=USAGE))
        reply = await self.ask()
        said = (TextBlock("Gr\u00fc\u00dfe, \U0001f600"),)
        self.assertEqual(reply, ModelReply(said, "end_turn", TokenUsage(7, 5, 20), "claude-opus-5-5"))
        self.assertEqual(self.texts, ["Gr\u00fc\u00dfe, ", "\U0001f600"])
        (made,) = self.stub.requests
        self.assertEqual((made.refused, made.asked and made.asked.system), ("", "Be good."))
        self.assertNotIn(self.key, made.path + made.query + made.body.decode())

    async def test_base_with_version_or_whole_endpoint_gives_the_same_request(self) -> None:
        await self.start(HI, HI, HI, HI)
        path = self.dialect.path(request()).partition("?")[0]
        version = path.split("/")[1]
        for base in (f"/{version}", f"/{version}/", path, f"{path}/"):
            await self.ask(base=base)
        self.assertEqual({made.path for made in self.stub.requests}, {path})

    async def test_a_wrong_address_is_named(self) -> None:
        await self.start()
        error = await self.error(self.ask(base="/nowhere/v7"))
        self.assertIn(f"{self.stub.url}/nowhere/v7/", str(error))
        self.assertIn("was asked: check the model and base_url", str(error))

    async def test_the_key_is_sent_in_the_header_of_the_settings_only(self) -> None:
        await self.start()
        for header, value in (
            ("authorization", f"Bearer {self.key}"),
            ("x-api-key", self.key),
            ("x-goog-api-key", self.key),
            ("api-key", self.key),
        ):
            self.stub.requests.clear()
            asked = self.ask(key_header=header)
            await asked.addErrback(lambda failure: failure.trap(ModelError))
            sent = {name: text for name, text in self.stub.requests[0].headers.items() if self.key in text}
            self.assertEqual(sent, {header: value})

    async def test_a_stream_in_tiny_pieces(self) -> None:
        await self.start(Answer((Text(("Gr\u00fc\u00dfe", " \u4e16\u754c")), LOOK), slice=7))
        self.assertEqual((await self.ask()).content[0], TextBlock("Gr\u00fc\u00dfe \u4e16\u754c"))

    async def test_a_tool_and_its_result(self) -> None:
        await self.start(Answer((Thinking(), Text(("Look.",)), LOOK)), HI)
        first = await self.ask()
        use = ToolUse("call_1", "execute_code", LOOK.input)
        self.assertEqual(first.stop_reason, "tool_use")
        self.assertEqual([b for b in first.content if isinstance(b, TextBlock | ToolUse)], [TextBlock("Look."), use])
        self.assertEqual(self.texts, ["Look."])
        self.assertEqual([e for e in self.told if isinstance(e, ToolAsked)], [ToolAsked(use)])
        self.assertEqual([e for e in self.told if isinstance(e, ToolStarted)], [ToolStarted("execute_code")])
        answered = ChatMessage("user", (ToolResult("call_1", "2", False),))
        await self.ask(HELLO, ChatMessage("assistant", first.content), answered)
        again = self.stub.requests[1]
        self.assertEqual((again.refused, again.asked and again.asked.results), ("", ("2",)))

    async def test_two_tools_in_one_answer(self) -> None:
        await self.start(Answer((LOOK, MORE)), HI)
        first = await self.ask()
        uses = [block for block in first.content if isinstance(block, ToolUse)]
        self.assertEqual(uses, [ToolUse("call_1", LOOK.name, LOOK.input), ToolUse("call_2", MORE.name, MORE.input)])
        results = (ToolResult("call_1", "2", False), ToolResult("call_2", "boom", True))
        await self.ask(HELLO, ChatMessage("assistant", first.content), ChatMessage("user", results))
        again = self.stub.requests[1]
        assert again.asked is not None
        self.assertEqual(again.refused, "")
        self.assertIn("2", again.asked.results)
        self.assertIn("boom", json.dumps(again.json))

    async def test_the_reasons_to_stop(self) -> None:
        await self.start(Answer((Text(("So",)),), stop_reason="max_tokens"))
        reply = await self.ask()
        self.assertEqual((reply.content, reply.stop_reason), ((TextBlock("So"),), "max_tokens"))

    async def test_a_refusal_in_mid_answer_is_no_answer_and_not_tried_again(self) -> None:
        await self.start(Answer((Text(("So",)), LOOK), stop_reason="refusal"), HI)
        with self.assertRaisesRegex(ModelError, "refused to answer") as caught:
            await self.ask()
        error = caught.exception
        self.assertEqual((error.kind, error.retryable, self.texts), ("refused", False, ["So"]))
        self.assertGreater((error.usage or TokenUsage()).output_tokens, 0)
        self.assertEqual((len(self.stub.requests), self.clock.getDelayedCalls()), (1, []))

    async def test_a_cancelled_request_closes_its_connection(self) -> None:
        await self.start(Answer((Text(("Hi",)),), end="stall", after=self.first_text))
        asked = self.ask()
        self.on(TextDelta, asked.cancel)
        with self.assertRaises(CancelledError):
            await asked
        self.assertEqual(await self.stub.requests[0].ended, "aborted")
        self.assertEqual(self.clock.getDelayedCalls(), [])

    async def test_retry_after_is_kept_to(self) -> None:
        await self.start(Refusal(429, headers={"retry-after": "17"}), HI)
        waiting: Deferred[None] = Deferred()
        self.on(Retrying, lambda: waiting.callback(None))
        asked = self.ask()
        await waiting
        self.clock.advance(16.9)
        self.assertEqual(len(self.stub.requests), 1)
        self.clock.advance(0.1)
        self.assertEqual((await asked).content, (TextBlock("Hi there"),))
        self.assertEqual(len(self.stub.requests), 2)

    async def test_failures_of_the_server_are_tried_again(self) -> None:
        await self.start(Refusal(500), Refusal(529), Refusal(503, body="<html>"), HI)
        self.on(Retrying, lambda: self.clock.advance(self.told[-1].delay_seconds))  # type: ignore[union-attr]
        self.assertEqual((await self.ask(attempts=4)).content, (TextBlock("Hi there"),))
        self.assertEqual([e.delay_seconds for e in self.told if isinstance(e, Retrying)], [1.0, 2.0, 4.0])

    async def test_an_error_in_the_stream_before_any_text_is_tried_again(self) -> None:
        await self.start(Answer(end="error", after=0), HI)
        self.on(Retrying, lambda: self.clock.advance(1))
        self.assertEqual((await self.ask()).content, (TextBlock("Hi there"),))
        (retrying,) = [event for event in self.told if isinstance(event, Retrying)]
        self.assertIn("broke off its answer: Overloaded", retrying.reason)

    async def test_after_text_nothing_is_tried_again(self) -> None:
        for end, kind in (("error", "overloaded"), ("cut", "network"), ("short", "network")):
            self.stub = ModelStub(reactor)
            await self.start(Answer(HI.content, end=end, after=self.first_text), HI)  # type: ignore[arg-type]
            self.told.clear()
            error = await self.error(self.ask())
            self.assertEqual((error.kind, error.retryable), (kind, False), end)
            self.assertEqual((self.texts, len(self.stub.requests)), (["Hi"], 1), end)

    async def test_a_conversation_that_is_too_long(self) -> None:
        await self.start(self.overflow)
        error = await self.error(self.ask())
        self.assertEqual((error.kind, error.retryable, len(self.stub.requests)), ("context-overflow", False, 1))
        self.assertIn("start a new session", str(error))

    async def test_a_wrong_key_is_told_by_its_variable(self) -> None:
        await self.start(HI)
        error = await self.error(self.ask(key="CANARY-0000000000"))
        self.assertEqual((error.kind, error.retryable, len(self.stub.requests)), ("authentication", False, 1))
        self.assertIn(f"the key from environment variable {self.variable} was refused", str(error))
        self.assertNotIn("CANARY", str(error))

    async def test_usage_is_told_as_it_is_known(self) -> None:
        await self.start(Answer(HI.content, usage=USAGE))
        reply = await self.ask()
        told = [event.usage for event in self.told if isinstance(event, UsageSeen)]
        self.assertEqual((reply.usage, told[-1]), (TokenUsage(7, 5, 20), TokenUsage(7, 5, 20)))


class AnthropicPromiseTests(DialectPromises):
    dialect = AnthropicDialect()
    first_text = 4
    overflow = Refusal(400, message="prompt is too long: 207791 tokens > 200000 maximum")


class OpenAiPromiseTests(DialectPromises):
    dialect = OpenAiDialect()
    key, variable = DEFAULT_KEYS["openai"], "OPENAI_API_KEY"
    first_text = 5
    overflow = Refusal(
        400,
        body='{"error": {"type": "invalid_request_error", "code": "context_length_exceeded", "param": "input", '
        '"message": "Your input exceeds the context window of this model."}}',
    )


class OpenAiChatPromiseTests(DialectPromises):
    dialect = OpenAiChatDialect()
    key, variable, root = DEFAULT_KEYS["openai-chat"], "EXAMPLE_API_KEY", ""
    first_text = 2
    overflow = Refusal(
        500,
        body='{"error": {"code": 500, "message": "the request exceeds the available context size. try increasing it", '
        '"type": "exceed_context_size_error", "n_prompt_tokens": 1407, "n_ctx": 256}}',
    )

    async def test_a_server_without_a_key_gets_none(self) -> None:
        self.stub = ModelStub(reactor, keys={"openai-chat": ""})
        await self.start(HI)
        self.assertEqual((await self.ask(no_key=True)).content, (TextBlock("Hi there"),))
        self.assertNotIn("authorization", self.stub.requests[0].headers)

    async def test_a_server_that_wants_a_key_is_named(self) -> None:
        await self.start(HI)
        error = await self.error(self.ask(no_key=True))
        self.assertEqual(error.kind, "authentication")
        self.assertIn("localhost requires a key: set providers.openai-chat.key", str(error))


class GooglePromiseTests(DialectPromises):
    dialect = GoogleDialect()
    key, variable = DEFAULT_KEYS["google"], "GEMINI_API_KEY"
    first_text = 1
    overflow = Refusal(
        400, message="The input token count (1200293) exceeds the maximum number of tokens allowed (1048576)."
    )


del DialectPromises  # it is no test by itself
