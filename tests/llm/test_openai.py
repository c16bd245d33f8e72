from __future__ import annotations

import json
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.http.sse import ServerEvent
from ironcurtain.llm.dialect import require_answer
from ironcurtain.llm.model import (
    Block,
    ChatMessage,
    ModelError,
    ModelReply,
    ModelRequest,
    ProviderBlock,
    TextBlock,
    TokenUsage,
    ToolResult,
    ToolUse,
)
from ironcurtain.llm.openai import OpenAiDialect
from tests.model_stub.openai_rules import check_body

HELLO = ChatMessage("user", (TextBlock("Hello"),))
THOUGHT = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "c2VjcmV0"}
USE = ToolUse("c1", "execute_code", {"code": "1"})


def body(*content: Block, model: str = "gpt-6.1-sol") -> dict[str, Any]:
    messages = (HELLO, ChatMessage("assistant", content), ChatMessage("user", (TextBlock("Go on."),)))
    return check_body(OpenAiDialect().body(ModelRequest("Be good.", messages, (), model, 1000)))


def play(*events: dict[str, Any]) -> ModelReply | None:
    reply = OpenAiDialect().reply()
    for event in events:
        reply.feed(ServerEvent("message", json.dumps(event), ""))
    return reply.reply


def done(**response: Any) -> dict[str, Any]:
    return {"type": "response.completed", "response": {"model": "m-1", **response}}


def item(index: int, **fields: Any) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": index, "item": fields}


def message(text: str, **fields: Any) -> dict[str, Any]:
    return {"type": "message", "content": [{"type": "output_text", "text": text}], **fields}


class RequestTests(SynchronousTestCase):
    def test_nothing_is_stored_and_reasoning_comes_encrypted(self) -> None:
        sent = body(TextBlock("Hi."))
        self.assertEqual((sent["store"], sent["stream"], sent["max_output_tokens"]), (False, True, 1000))
        self.assertEqual(sent["include"], ["reasoning.encrypted_content"])
        for model in ("gpt-4.1", "chatgpt-4o-latest", "gpt-5.3-chat-latest"):
            self.assertNotIn("include", body(TextBlock("Hi."), model=model))

    def test_requests_of_one_conversation_have_one_cache_key(self) -> None:
        keys = {body(*content)["prompt_cache_key"] for content in ((TextBlock("Hi."),), (TextBlock("Hm."),))}
        self.assertEqual(len(keys), 1)
        self.assertNotIn(body(model="gpt-5.4")["prompt_cache_key"], keys)

    def test_reasoning_is_sent_back_before_what_follows_it_only(self) -> None:
        thought = ProviderBlock("openai", THOUGHT)
        said = [sent_message("Hi."), sent_message("Ho.")]
        sent = body(thought, TextBlock("Hi."), TextBlock("Ho."), thought)["input"]
        self.assertEqual(sent[1:-1], [THOUGHT, *said])
        self.assertEqual(len(body(thought)["input"]), 2)

    def test_the_phase_of_a_message_comes_back(self) -> None:
        blocks = (ProviderBlock("openai", {"phase": "commentary"}), TextBlock("Hm."), TextBlock("Hi."))
        self.assertEqual(
            body(*blocks)["input"][1:3], [{**sent_message("Hm."), "phase": "commentary"}, sent_message("Hi.")]
        )

    def test_a_failed_tool_is_told(self) -> None:
        messages = (HELLO, ChatMessage("assistant", (USE,)), ChatMessage("user", (ToolResult("c1", "boom", True),)))
        sent = json.loads(OpenAiDialect().body(ModelRequest("", messages, (), "m", 1)))
        self.assertEqual(sent["input"][-1]["output"], "Error: boom")


def sent_message(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": text}


class AnswerTests(SynchronousTestCase):
    def test_reasoning_is_kept_without_what_requests_refuse(self) -> None:
        reply = play(
            item(0, **THOUGHT, status=None),
            item(1, **{**THOUGHT, "encrypted_content": None}),
            item(2, **message("Hi.", phase="final_answer")),
            done(),
        )
        assert reply is not None
        phase = ProviderBlock("openai", {"phase": "final_answer"})
        self.assertEqual(reply.content, (ProviderBlock("openai", THOUGHT), phase, TextBlock("Hi.")))

    def test_a_cut_answer_keeps_its_text_and_no_half_call(self) -> None:
        call = {"type": "function_call", "call_id": "c1", "name": "t", "arguments": '{"a', "status": "incomplete"}
        end = done(incomplete_details={"reason": "max_output_tokens"}, usage={"input_tokens": 9, "output_tokens": 4})
        text = {"type": "response.output_text.delta", "output_index": 0, "delta": "So"}
        reply = play(text, item(1, **call), {**end, "type": "response.incomplete"})
        self.assertEqual(reply, ModelReply((TextBlock("So"),), "max_tokens", TokenUsage(9, 4), "m-1"))

    def test_a_refusal(self) -> None:
        refusal = {"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}
        reply = play({"type": "response.refusal.delta", "output_index": 0, "delta": "No."}, item(0, **refusal), done())
        assert reply is not None
        self.assertEqual((reply.content, reply.stop_reason), ((TextBlock("No."),), "refusal"))

    def test_an_incomplete_response_is_no_answer_unless_it_is_too_long(self) -> None:
        text = {"type": "response.output_text.delta", "output_index": 0, "delta": "So"}
        refused = {"type": "response.refusal.delta", "output_index": 1, "delta": "No."}
        filtered = done(incomplete_details={"reason": "content_filter"})
        for events, words in (
            ([text, {**filtered, "type": "response.incomplete"}], "content_filter"),
            ([text, filtered], "content_filter"),
            ([text, {**done(), "type": "response.incomplete"}], "incomplete"),
            ([text, done(status="cancelled")], "cancelled"),
            ([text, refused, done()], "refusal"),
        ):
            reply = play(*events)
            assert reply is not None
            with self.assertRaisesRegex(ModelError, words):
                require_answer(reply)

    def test_items_may_come_at_the_end_only(self) -> None:
        reply = play(done(output=[message("Hi.")]))
        assert reply is not None
        self.assertEqual(reply.content, (TextBlock("Hi."),))

    def test_usage_is_split_by_cache(self) -> None:
        details = {"cached_tokens": 20, "cache_write_tokens": 3}
        reply = play(done(usage={"input_tokens": 30, "output_tokens": 5, "input_tokens_details": details}))
        assert reply is not None
        self.assertEqual(reply.usage, TokenUsage(7, 5, 20, 3))

    def test_errors_in_the_stream(self) -> None:
        for code, text, kind, retryable in (
            ("server_error", "oops", "overloaded", True),
            ("rate_limit_exceeded", "slow", "rate-limited", True),
            ("insufficient_quota", "pay", "rate-limited", False),
            ("invalid_prompt", "bad", "invalid-request", False),
            ("context_length_exceeded", "long", "context-overflow", False),
        ):
            failed = {"type": "response.failed", "response": {"error": {"code": code, "message": text}}}
            flat = {"type": "error", "code": code, "message": text}
            nested = {"type": "error", "error": {"type": "x", "code": code, "message": text}}
            for event in (failed, flat, nested):
                with self.assertRaises(ModelError) as caught:
                    play(event)
                self.assertEqual((caught.exception.kind, caught.exception.retryable), (kind, retryable), event)
                self.assertIn(f"OpenAI broke off its answer: {text} ({code})", str(caught.exception))

    def test_a_used_up_account_is_not_asked_again(self) -> None:
        said = json.dumps({"error": {"code": "insufficient_quota", "message": "check your plan"}})
        error = OpenAiDialect().failure(429, said.encode())
        self.assertEqual((error.kind, error.retryable), ("rate-limited", False))

    def test_a_call_without_its_parts_is_an_error(self) -> None:
        for call in ({"name": "t", "arguments": "{}"}, {"call_id": "c", "name": "t", "arguments": "{"}):
            with self.assertRaisesRegex(ModelError, "could not be understood"):
                play(item(0, type="function_call", **call))
