from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.http.sse import EventParser, ServerEvent
from ironcurtain.llm.anthropic import AnthropicReply
from ironcurtain.llm.dialect import require_answer
from ironcurtain.llm.model import (
    Block,
    ModelError,
    ModelEvent,
    ModelReply,
    ProviderBlock,
    TextBlock,
    TextDelta,
    TokenUsage,
    ToolAsked,
    ToolStarted,
    ToolUse,
    UsageSeen,
)
from tests.model_stub.anthropic import error_event, events
from tests.model_stub.replies import Answer, Content, Raw, Text, Thinking, Tool

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


def play(stream: bytes) -> tuple[list[ModelEvent], AnthropicReply]:
    reply, told = AnthropicReply(), []
    for event in EventParser().feed(stream):
        told += reply.feed(event)
    return told, reply


def answer(*content: Content, **fields: Any) -> ModelReply:
    _, reply = play(b"".join(events(Answer(content, **fields), "claude-opus-5-5", 1)))
    assert reply.reply is not None
    return reply.reply


def expected(content: Content) -> Block:
    match content:
        case Text(chunks):
            return TextBlock("".join(chunks))
        case Thinking(chunks, signature):
            data = {"type": "thinking", "thinking": "".join(chunks), "signature": signature}
            return ProviderBlock("anthropic", data)
        case Tool(name, input, id):
            return ToolUse(id, name, input)
        case Raw(block):
            return ProviderBlock("anthropic", block)


def event(**fields: Any) -> ServerEvent:
    return ServerEvent("message", json.dumps(fields), "")


class AssemblyTests(SynchronousTestCase):
    @given(CONTENT)
    def test_every_answer_is_put_together_as_it_was(self, content: list[Content]) -> None:
        reply = answer(*content)
        self.assertEqual(reply.content, tuple(map(expected, content)))
        used = any(isinstance(block, Tool) for block in content)
        self.assertEqual(reply.stop_reason, "tool_use" if used else "end_turn")

    @given(CONTENT)
    def test_the_deltas_told_are_the_text(self, content: list[Content]) -> None:
        told, reply = play(b"".join(events(Answer(tuple(content)), "m", 1)))
        texts = [chunk for block in content if isinstance(block, Text) for chunk in block.chunks]
        self.assertEqual([e.text for e in told if isinstance(e, TextDelta)], texts)
        self.assertEqual(sum(isinstance(e, ToolStarted) for e in told), sum(isinstance(b, Tool) for b in content))
        self.assertEqual(reply.shown, any(not isinstance(block, Thinking) for block in content))

    @given(CONTENT)
    def test_every_tool_use_is_told_before_the_answer_ends(self, content: list[Content]) -> None:
        told, reply = play(b"".join(events(Answer(tuple(content)), "m", 1)))
        assert reply.reply is not None
        uses = [block for block in reply.reply.content if isinstance(block, ToolUse)]
        self.assertEqual([event.use for event in told if isinstance(event, ToolAsked)], uses)

    def test_a_tool_use_is_told_when_its_block_ends(self) -> None:
        reply = AnthropicReply()
        start = {"type": "tool_use", "id": "t1", "name": "shell", "input": {}}
        reply.feed(event(type="content_block_start", index=0, content_block=start))
        delta = {"type": "input_json_delta", "partial_json": '{"command": "ls"}'}
        self.assertEqual(reply.feed(event(type="content_block_delta", index=0, delta=delta)), [])
        told = reply.feed(event(type="content_block_stop", index=0))
        self.assertEqual(told, [ToolAsked(ToolUse("t1", "shell", {"command": "ls"}))])
        self.assertEqual(reply.feed(event(type="content_block_stop", index=7)), [])

    def test_usage_is_taken_from_both_ends_of_the_stream(self) -> None:
        tokens = {
            "input_tokens": 3,
            "output_tokens": 40,
            "cache_read_input_tokens": 5,
            "cache_creation_input_tokens": 7,
        }
        told, reply = play(b"".join(events(Answer((), usage=tokens), "claude-x", 1)))
        self.assertEqual(told, [UsageSeen(TokenUsage(3, 1, 5, 7)), UsageSeen(TokenUsage(3, 40, 5, 7))])
        assert reply.reply is not None
        self.assertEqual((reply.reply.usage, reply.reply.model), (TokenUsage(3, 40, 5, 7), "claude-x"))

    def test_unknown_events_blocks_and_deltas_are_passed_over(self) -> None:
        reply = AnthropicReply()
        strange: list[dict[str, Any]] = [
            {"type": "vendor_event", "delta": "not an object", "index": "seven"},
            {"no": "type"},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "server_tool_use", "id": "x"}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{"}},
            {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "a"}},
            {"type": "content_block_delta", "index": 1, "delta": {"type": "citations_delta", "citation": {}}},
            {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "b"}},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9, "new": {}}},
            {"type": "message_stop"},
        ]
        told = [e for fields in strange for e in reply.feed(event(**fields))]
        self.assertEqual(told, [TextDelta("a"), TextDelta("b"), UsageSeen(TokenUsage(0, 9))])
        assert reply.reply is not None
        self.assertEqual(reply.reply.content, (TextBlock("ab"),))

    def test_redacted_reasoning_is_kept_for_the_next_turn(self) -> None:
        block = {"type": "redacted_thinking", "data": "b3BhcXVl"}
        self.assertEqual(answer(Raw(block)).content, (ProviderBlock("anthropic", block),))

    def test_a_tool_without_arguments_has_an_empty_input(self) -> None:
        stream = b"".join(events(Answer((Tool("t", {}, "id1"),)), "m", 1)).replace(
            b'"partial_json": "{}"', b'"partial_json": ""'
        )
        _, reply = play(stream)
        assert reply.reply is not None
        self.assertEqual(reply.reply.content, (ToolUse("id1", "t", {}),))

    def cut_tool(self, stop_reason: str) -> AnthropicReply:
        reply = AnthropicReply()
        start = {"type": "tool_use", "id": "t1", "name": "t", "input": {}}
        reply.feed(event(type="content_block_start", index=0, content_block=start))
        delta = {"type": "input_json_delta", "partial_json": '{"code": "pri'}
        reply.feed(event(type="content_block_delta", index=0, delta=delta))
        self.assertEqual(reply.feed(event(type="content_block_stop", index=0)), [])
        reply.feed(event(type="message_delta", delta={"stop_reason": stop_reason}))
        reply.feed(event(type="message_stop"))
        return reply

    def test_a_tool_whose_input_was_cut_at_the_token_limit_is_not_run(self) -> None:
        reply = self.cut_tool("max_tokens").reply
        assert reply is not None
        self.assertEqual((reply.content, reply.stop_reason), ((), "max_tokens"))
        for stop in ("refusal", "pause_turn"):
            reply = self.cut_tool(stop).reply
            assert reply is not None
            with self.assertRaises(ModelError) as caught:
                require_answer(reply)
            self.assertEqual((caught.exception.kind, stop in str(caught.exception)), ("refused", True))

    def test_a_broken_input_is_an_error_otherwise(self) -> None:
        with self.assertRaisesRegex(ModelError, "not JSON"):
            self.cut_tool("tool_use")


class BrokenStreamTests(SynchronousTestCase):
    def test_error_events(self) -> None:
        for type, kind, retryable in (
            ("overloaded_error", "overloaded", True),
            ("api_error", "overloaded", True),
            ("rate_limit_error", "rate-limited", True),
            ("authentication_error", "authentication", False),
            ("request_too_large", "context-overflow", False),
            ("invalid_request_error", "invalid-request", False),
            ("never_heard_of", "invalid-request", False),
        ):
            with self.assertRaises(ModelError) as caught:
                play(error_event(Answer(error=(type, "too\x1bbusy"))))
            self.assertEqual((caught.exception.kind, caught.exception.retryable), (kind, retryable), type)
            self.assertIn("too busy", str(caught.exception))

    def test_events_that_break_the_format(self) -> None:
        for data in (
            "{",
            "[]",
            '{"type": "content_block_start", "index": "one", "content_block": {"type": "text"}}',
            '{"type": "content_block_delta", "index": 3, "delta": {"type": "text_delta", "text": "x"}}',
            '{"type": "message_delta", "usage": {"output_tokens": "many"}}',
            "[" * 100_000,
        ):
            with self.assertRaises(ModelError) as caught:
                AnthropicReply().feed(ServerEvent("message", data, ""))
            self.assertEqual(caught.exception.kind, "network")

    def test_a_tool_without_id_is_an_error(self) -> None:
        reply = AnthropicReply()
        reply.feed(event(type="content_block_start", index=0, content_block={"type": "tool_use", "name": "t"}))
        with self.assertRaisesRegex(ModelError, "lacks its id"):
            reply.feed(event(type="message_stop"))

    def test_an_endless_answer_is_refused(self) -> None:
        reply = AnthropicReply(limit=10)
        reply.feed(event(type="content_block_start", index=0, content_block={"type": "text", "text": ""}))
        delta = {"type": "text_delta", "text": "123456"}
        reply.feed(event(type="content_block_delta", index=0, delta=delta))
        with self.assertRaisesRegex(ModelError, "longer than 10"):
            reply.feed(event(type="content_block_delta", index=0, delta=delta))

    @given(st.lists(st.sampled_from(events(Answer((Text(("a",)), Tool("t", {"a": 1}, "i"))), "m", 1)), max_size=12))
    def test_no_order_of_events_leads_to_anything_but_a_reply_or_a_model_error(self, stream: list[bytes]) -> None:
        try:
            play(b"".join(stream))
        except ModelError as e:
            self.assertIn("could not be understood", str(e))
