"""The pure part of every adapter: whatever the stream's slicing and content, the same reply, or an error."""

from __future__ import annotations

import json
from collections.abc import Iterable
from types import ModuleType

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.http.sse import EventParser, ServerEvent
from ironcurtain.llm.anthropic import AnthropicDialect
from ironcurtain.llm.backends import OVER_HTTP
from ironcurtain.llm.dialect import Dialect
from ironcurtain.llm.dialects import DIALECTS
from ironcurtain.llm.google import GoogleDialect
from ironcurtain.llm.model import (
    ChatMessage,
    ModelError,
    ModelEvent,
    ModelReply,
    ModelRequest,
    ProviderBlock,
    TextBlock,
    TextDelta,
    ToolAsked,
    ToolResult,
    ToolSpec,
    ToolStarted,
    ToolUse,
)
from ironcurtain.llm.openai import OpenAiDialect
from ironcurtain.llm.openai_chat import OpenAiChatDialect
from ironcurtain.providers.registry import KNOWN_PROVIDERS
from tests.model_stub import anthropic, google, openai, openai_chat
from tests.model_stub.replies import Answer, Content, Text, Thinking, Tool

PAIRS: list[tuple[Dialect, ModuleType]] = [
    (AnthropicDialect(), anthropic),
    (OpenAiDialect(), openai),
    (OpenAiChatDialect(), openai_chat),
    (GoogleDialect(), google),
]
"""Each adapter, with the server's side of its format."""

CHUNKS = st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=4).map(tuple)
JSON = st.dictionaries(
    st.text(max_size=5), st.recursive(st.integers() | st.text() | st.none(), lambda inner: st.lists(inner, max_size=3))
)
CONTENT = st.lists(
    st.builds(Text, CHUNKS)
    | st.builds(Thinking, CHUNKS)
    | st.builds(Tool, st.just("execute_code"), JSON, st.uuids().map(str), st.integers(1, 5)),
    max_size=4,
)
HELLO = ChatMessage("user", (TextBlock("Hello"),))
TOOL = ToolSpec("execute_code", "Run it.", {"type": "object", "properties": {"code": {"type": "string"}}})


def stream(module: ModuleType, content: Iterable[Content]) -> bytes:
    """:returns: the bytes of an answer."""
    return b"".join(module.events(Answer(tuple(content)), "m-1", 1))


def play(dialect: Dialect, pieces: Iterable[bytes]) -> tuple[list[ModelEvent], ModelReply | None]:
    """:returns: the events of a stream, and the reply that its end leaves."""
    parser, reply = EventParser(), dialect.reply()
    told = [event for piece in pieces for received in parser.feed(piece) for event in reply.feed(received)]
    if reply.reply is None:
        told += reply.close()
    return told, reply.reply


def body(dialect: Dialect, *messages: ChatMessage, model: str = "m-1") -> bytes:
    """:returns: a request."""
    return dialect.body(ModelRequest("Be good.", messages, (TOOL,), model, 1000))


class StreamTests(SynchronousTestCase):
    @given(st.sampled_from(PAIRS), CONTENT, st.data())
    def test_any_slicing_gives_the_same_reply(
        self, pair: tuple[Dialect, ModuleType], content: list[Content], data: st.DataObject
    ) -> None:
        dialect, module = pair
        whole = stream(module, content)
        cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
        pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
        self.assertEqual(play(dialect, pieces), play(dialect, [whole]))

    @given(st.sampled_from(PAIRS), CONTENT)
    def test_the_reply_is_what_was_said(self, pair: tuple[Dialect, ModuleType], content: list[Content]) -> None:
        dialect, module = pair
        told, reply = play(dialect, [stream(module, content)])
        assert reply is not None
        said = "".join(chunk for block in content if isinstance(block, Text) for chunk in block.chunks)
        uses = [ToolUse(block.id, block.name, block.input) for block in content if isinstance(block, Tool)]
        kept = "".join(block.text for block in reply.content if isinstance(block, TextBlock))
        self.assertEqual("".join(event.text for event in told if isinstance(event, TextDelta)), said)
        self.assertEqual(kept.strip(), said.strip())
        self.assertEqual([block for block in reply.content if isinstance(block, ToolUse)], uses)
        self.assertEqual([event.use for event in told if isinstance(event, ToolAsked)], uses)
        self.assertEqual([e.name for e in told if isinstance(e, ToolStarted)], [use.name for use in uses])
        self.assertEqual((reply.stop_reason, reply.model), ("tool_use" if uses else "end_turn", "m-1"))

    @given(st.sampled_from(PAIRS), st.data())
    def test_any_order_of_events_leads_to_a_reply_or_a_model_error(
        self, pair: tuple[Dialect, ModuleType], data: st.DataObject
    ) -> None:
        dialect, module = pair
        made = module.events(Answer((Text(("a",)), Tool("t", {"a": 1}, "i"))), "m", 1)
        try:
            play(dialect, data.draw(st.lists(st.sampled_from(made), max_size=12)))
        except ModelError as e:
            self.assertIn("could not be understood", str(e))

    @given(st.sampled_from(PAIRS), st.none() | st.integers() | st.text() | st.lists(st.text(), max_size=3))
    def test_events_that_are_not_as_documented(self, pair: tuple[Dialect, ModuleType], value: object) -> None:
        dialect, _ = pair
        for data in (json.dumps(value), "{", "[" * 100_000):
            with self.assertRaises(ModelError) as caught:
                dialect.reply().feed(ServerEvent("message", data, ""))
            self.assertEqual((caught.exception.kind, caught.exception.retryable), ("network", True))

    def test_an_endless_answer_is_refused(self) -> None:
        for dialect, module in PAIRS:
            reply = type(dialect.reply())(limit=10)  # type: ignore[call-arg]
            with self.assertRaisesRegex(ModelError, "longer than 10"):
                for event in EventParser().feed(stream(module, [Text(("123456", "123456"))])):
                    reply.feed(event)


class FailureTests(SynchronousTestCase):
    @given(st.sampled_from(PAIRS), st.integers(300, 599), st.binary(max_size=100))
    def test_any_body_gives_a_printable_sentence(
        self, pair: tuple[Dialect, ModuleType], status: int, body: bytes
    ) -> None:
        self.assertTrue(str(pair[0].failure(status, body)).isprintable())

    def test_statuses(self) -> None:
        for dialect, module in PAIRS:
            for status, kind, retryable in (
                (400, "invalid-request", False),
                (401, "authentication", False),
                (403, "authentication", False),
                (404, "invalid-request", False),
                (413, "context-overflow", False),
                (429, "rate-limited", True),
                (500, "overloaded", True),
                (503, "overloaded", True),
                (529, "overloaded", True),
            ):
                error = dialect.failure(status, module.error_body(status, "because"))
                self.assertEqual((error.kind, error.retryable), (kind, retryable), f"{dialect.name} {status}")
                self.assertIn("because", str(error))

    def test_a_long_page_is_cut(self) -> None:
        for dialect, _ in PAIRS:
            error = dialect.failure(502, b"<html>\x1b[2J" + b"x" * 100_000)
            self.assertLess(len(str(error)), 500)


class BodyTests(SynchronousTestCase):
    def test_a_conversation_of_other_providers_follows_the_rules(self) -> None:
        uses = (ToolUse("t1", "execute_code", {"code": "1"}), ToolUse("t2", "execute_code", {"code": "2"}))
        results = (ToolResult("t1", "one", False), ToolResult("t2", "", True))
        foreign = ProviderBlock("another", {"type": "thinking", "secret": "CANARY"})
        for dialect, module in PAIRS:
            made = body(
                dialect,
                HELLO,
                ChatMessage("assistant", (foreign, TextBlock("Look."), *uses)),
                ChatMessage("user", (*results, TextBlock("Go on."))),
                ChatMessage("assistant", (foreign, TextBlock(" "))),
                HELLO,
            )
            self.assertNotIn(b"CANARY", made)
            asked = module.asked(dialect.path(ModelRequest("", (), (), "m-1", 1)).partition("?")[0], {}, made)
            self.assertEqual((asked.said, asked.tools), ("Hello", ("execute_code",)), dialect.name)

    def test_every_backend_over_http_is_here(self) -> None:
        self.assertEqual([dialect.name for dialect, _ in PAIRS], list(OVER_HTTP))
        self.assertEqual(list(DIALECTS), list(OVER_HTTP))

    def test_models_are_the_same_as_for_agents(self) -> None:
        for dialect, _ in PAIRS:
            if known := KNOWN_PROVIDERS.get(dialect.name):
                self.assertIs(known.models, dialect.models)
                self.assertEqual(dialect.default_url, f"https://{known.host}")
                self.assertTrue(dialect.models.match(dialect.default_model))
