from __future__ import annotations

import json
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.http.sse import ServerEvent
from ironcurtain.llm.dialect import require_answer
from ironcurtain.llm.model import ModelError, ModelReply, TextBlock, TokenUsage, ToolUse
from ironcurtain.llm.openai_chat import OpenAiChatDialect


def play(*chunks: dict[str, Any] | str) -> ModelReply | None:
    reply = OpenAiChatDialect().reply()
    for chunk in chunks:
        reply.feed(ServerEvent("message", chunk if isinstance(chunk, str) else json.dumps(chunk), ""))
    if reply.reply is None:
        reply.close()
    return reply.reply


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "model": "m-1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def call(index: int, id: str | None, name: str | None, arguments: str) -> dict[str, Any]:
    piece = {"index": index, "id": id, "function": {"name": name, "arguments": arguments}}
    return chunk(tool_calls=[piece])


class AnswerTests(SynchronousTestCase):
    def test_not_every_server_says_that_it_is_done(self) -> None:
        said = (chunk(content="Hi."), chunk("stop"))
        for end in ((), ("[DONE]",)):
            reply = play(*said, *end)
            self.assertEqual(reply, ModelReply((TextBlock("Hi."),), "end_turn", TokenUsage(), "m-1"))
        self.assertIsNone(play(chunk(content="Hi.")))

    def test_calls_may_share_an_index_or_lack_an_id(self) -> None:
        one, two = ToolUse("a", "t", {"x": 1}), ToolUse("b", "u", {})
        for pieces in (
            (call(0, "a", "t", '{"x"'), call(0, None, None, ": 1}"), call(0, "b", "u", "{}")),
            (call(0, "a", "t", '{"x"'), call(0, "a", "t", ": 1}"), call(1, "b", "u", "")),
        ):
            reply = play(*pieces, chunk("stop"))
            assert reply is not None
            self.assertEqual((reply.content, reply.stop_reason), ((one, two), "tool_use"))
        reply = play(call(0, None, "t", "{}"), call(1, "", "u", "{}"), chunk("tool_calls"))
        assert reply is not None
        self.assertEqual(reply.content, (ToolUse("chatcmpl-1_0", "t", {}), ToolUse("chatcmpl-1_1", "u", {})))

    def test_a_call_that_was_cut_at_the_limit_is_not_run(self) -> None:
        reply = play(chunk(content="So"), call(0, "a", "t", '{"x'), chunk("length"))
        assert reply is not None
        self.assertEqual((reply.content, reply.stop_reason), ((TextBlock("So"),), "max_tokens"))
        with self.assertRaisesRegex(ModelError, "not JSON"):
            play(call(0, "a", "t", '{"x'), chunk("tool_calls"))
        with self.assertRaisesRegex(ModelError, "lacks its name"):
            play(call(0, "a", None, "{}"), chunk("tool_calls"))

    def test_a_refusal(self) -> None:
        reply = play(chunk(refusal="No."), chunk("stop"), "[DONE]")
        assert reply is not None
        self.assertEqual((reply.content, reply.stop_reason), ((TextBlock("No."),), "refusal"))
        filtered = play(chunk(content="So"), chunk("content_filter"), chunk("stop"), "[DONE]")
        assert filtered is not None
        for each in (reply, filtered):
            with self.assertRaisesRegex(ModelError, "refused to answer"):
                require_answer(each)

    def test_errors_in_the_stream(self) -> None:
        for error, kind, retryable in (
            ({"message": "overloaded", "type": "server_error"}, "overloaded", True),
            ({"message": "This model's maximum context length is 4096 tokens"}, "context-overflow", False),
            ("bad template", "invalid-request", False),
            ({"message": "filtered", "code": "content_filter"}, "refused", False),
        ):
            with self.assertRaises(ModelError) as caught:
                play({"error": error})
            self.assertEqual((caught.exception.kind, caught.exception.retryable), (kind, retryable), error)

    def test_how_servers_say_that_a_conversation_is_too_long(self) -> None:
        for words in (
            "This model's maximum context length is 16384 tokens. However, you requested 122946 tokens",
            "the request exceeds the available context size. try increasing the context size",
            "Requested tokens (2285) exceed context window of 2048",
            "the input length exceeds the context length",
        ):
            error = OpenAiChatDialect().failure(400, json.dumps({"object": "error", "message": words}).encode())
            self.assertEqual(error.kind, "context-overflow", words)
