from __future__ import annotations

import json
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.http.sse import ServerEvent
from ironcurtain.llm.dialect import require_answer
from ironcurtain.llm.google import GoogleDialect
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
from tests.model_stub.google_rules import check_body

SIGNED = {"thoughtSignature": "c2ln"}
CALL = {"id": "c1", "name": "execute_code", "args": {"code": "1"}}
USE = ToolUse("c1", "execute_code", {"code": "1"})


def contents(*content: Block, model: str = "gemini-3.1-pro-preview") -> list[dict[str, Any]]:
    uses = [block for block in content if isinstance(block, ToolUse)]
    answered = tuple(ToolResult(use.id, "done", False) for use in uses) or (TextBlock("Go on."),)
    hello = ChatMessage("user", (TextBlock("Hello"),))
    messages = (hello, ChatMessage("assistant", content), ChatMessage("user", answered))
    sent: list[dict[str, Any]] = check_body(GoogleDialect().body(ModelRequest("", messages, (), model, 9)))["contents"]
    return sent


def play(*events: dict[str, Any]) -> ModelReply | None:
    reply = GoogleDialect().reply()
    for event in events:
        reply.feed(ServerEvent("message", json.dumps(event), ""))
    reply.close()
    return reply.reply


def parts(*parts: dict[str, Any], finish: str = "", **fields: Any) -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": list(parts)}, **({"finishReason": finish} if finish else {})}
    return {"candidates": [candidate], "modelVersion": "m-1", "responseId": "r1", **fields}


class RequestTests(SynchronousTestCase):
    def test_the_path_names_the_model_and_no_key(self) -> None:
        for model in ("gemini-x", "models/gemini-x"):
            path = GoogleDialect().path(ModelRequest("", (), (), model, 1))
            self.assertEqual(path, "/v1beta/models/gemini-x:streamGenerateContent?alt=sse")
        strange = GoogleDialect().path(ModelRequest("", (), (), "a/../b?key=x", 1))
        self.assertEqual(strange, "/v1beta/models/a%2F..%2Fb%3Fkey%3Dx:streamGenerateContent?alt=sse")

    def test_a_signature_goes_back_with_its_part(self) -> None:
        sent = contents(ProviderBlock("google", SIGNED), USE, TextBlock("x"))
        self.assertEqual(sent[1]["parts"], [{"functionCall": CALL, **SIGNED}, {"text": "x"}])
        alone = {"text": "", **SIGNED}
        self.assertEqual(contents(TextBlock("x"), ProviderBlock("google", alone))[1]["parts"], [{"text": "x"}, alone])

    def test_calls_of_another_provider_are_marked_for_models_that_check(self) -> None:
        first, second = contents(USE, ToolUse("c2", "t", {}))[1]["parts"]
        self.assertEqual(first["thoughtSignature"], "skip_thought_signature_validator")
        self.assertNotIn("thoughtSignature", second)
        (old,) = contents(USE, model="gemini-2.5-pro")[1]["parts"]
        self.assertNotIn("thoughtSignature", old)

    def test_results_name_their_call(self) -> None:
        sent = contents(USE)
        response = {"id": "c1", "name": "execute_code", "response": {"output": "done"}}
        self.assertEqual(sent[2]["parts"], [{"functionResponse": response}])


class AnswerTests(SynchronousTestCase):
    def test_signatures_keep_their_place(self) -> None:
        reply = play(
            parts({"text": "Look"}),
            parts({"text": "ing."}),
            parts({"functionCall": CALL, **SIGNED}, {"functionCall": {"name": "t"}}),
            parts({"text": "", **SIGNED}, finish="STOP"),
        )
        assert reply is not None
        self.assertEqual(
            reply.content,
            (
                TextBlock("Looking."),
                ProviderBlock("google", SIGNED),
                USE,
                ToolUse("r1_1", "t", {}),
                ProviderBlock("google", {"text": "", **SIGNED}),
            ),
        )
        self.assertEqual((reply.stop_reason, reply.model), ("tool_use", "m-1"))

    def test_a_call_without_a_signature_stands_after_the_text_before_it(self) -> None:
        reply = play(parts({"text": "Look."}, {"functionCall": CALL}, {"text": "Done."}, finish="STOP"))
        assert reply is not None
        self.assertEqual(reply.content, (TextBlock("Look."), USE, TextBlock("Done.")))

    def test_signed_text_stays_apart(self) -> None:
        reply = play(parts({"text": "a"}), parts({"text": "b", **SIGNED}), parts({"text": "c"}, finish="STOP"))
        assert reply is not None
        kept = (TextBlock("a"), ProviderBlock("google", SIGNED), TextBlock("b"), TextBlock("c"))
        self.assertEqual(reply.content, kept)

    def test_an_answer_without_a_reason_to_stop_is_not_complete(self) -> None:
        self.assertIsNone(play(parts({"text": "a"})))

    def test_blocked_prompts_and_answers_are_refusals(self) -> None:
        blocked: tuple[dict[str, Any], ...] = (
            {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}},
            *({"candidates": [{"finishReason": why}]} for why in ("SAFETY", "BLOCKLIST", "SPII", "OTHER")),
            parts(finish="RECITATION"),
        )
        for event in blocked:
            for more in ((), (parts({"text": "a"}, finish="STOP"),)):
                reply = play(parts({"text": "So"}), event, *more)
                assert reply is not None
                with self.assertRaises(ModelError) as caught:
                    require_answer(reply)
                self.assertEqual(caught.exception.kind, "refused")

    def test_a_wrong_call_is_tried_again(self) -> None:
        with self.assertRaises(ModelError) as caught:
            play(parts(finish="MALFORMED_FUNCTION_CALL"))
        self.assertTrue(caught.exception.retryable)

    def test_usage_counts_thoughts_and_the_cache(self) -> None:
        counts = {
            "promptTokenCount": 30,
            "cachedContentTokenCount": 20,
            "candidatesTokenCount": 4,
            "thoughtsTokenCount": 6,
        }
        reply = play(parts({"text": "a"}, finish="STOP", usageMetadata=counts))
        assert reply is not None
        self.assertEqual(reply.usage, TokenUsage(10, 10, 20))


class FailureTests(SynchronousTestCase):
    def failure(self, code: int, **error: Any) -> ModelError:
        return GoogleDialect().failure(code, json.dumps([{"error": error}]).encode())

    def test_a_wrong_key_has_status_400(self) -> None:
        info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
        for error in ({"message": "API key not valid. Please pass a valid API key."}, {"details": [info]}):
            self.assertEqual(self.failure(400, status="INVALID_ARGUMENT", **error).kind, "authentication")

    def test_the_delay_stands_in_the_body(self) -> None:
        retry = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17.5s"}
        error = self.failure(429, message="quota", status="RESOURCE_EXHAUSTED", details=[retry])
        self.assertEqual((error.kind, error.retryable, error.retry_after), ("rate-limited", True, 17.5))

    def test_errors_in_the_stream(self) -> None:
        for status, kind, retryable in (
            ("UNAVAILABLE", "overloaded", True),
            ("RESOURCE_EXHAUSTED", "rate-limited", True),
            ("INVALID_ARGUMENT", "invalid-request", False),
        ):
            with self.assertRaises(ModelError) as caught:
                play({"error": {"code": 1, "message": "m", "status": status}})
            self.assertEqual((caught.exception.kind, caught.exception.retryable), (kind, retryable))
