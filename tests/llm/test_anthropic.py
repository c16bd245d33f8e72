from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.llm.anthropic import AnthropicDialect
from ironcurtain.llm.model import (
    ChatMessage,
    ModelRequest,
    ProviderBlock,
    TextBlock,
    ToolResult,
    ToolSpec,
    ToolUse,
)
from tests.model_stub.anthropic import check_body

TOOL = ToolSpec("execute_code", "Run it.", {"type": "object", "properties": {"code": {"type": "string"}}})
HELLO = ChatMessage("user", (TextBlock("Hello"),))
THOUGHT = ProviderBlock("anthropic", {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"})


def body(*messages: ChatMessage, system: str = "Be good.", tools: tuple[ToolSpec, ...] = (TOOL,)) -> dict[str, Any]:
    request = ModelRequest(system, messages, tools, "claude-opus-5-5", 1000)
    return check_body(AnthropicDialect().body(request))


def conversations() -> st.SearchStrategy[tuple[ChatMessage, ...]]:
    """Conversations as an agent makes them: the model may think, say nothing, and ask for several tools."""
    text = st.builds(TextBlock, st.text(max_size=10))
    answer = st.tuples(st.booleans(), st.lists(text, max_size=2), st.integers(0, 2), st.booleans())
    return st.tuples(st.lists(answer, max_size=4), st.text(max_size=5)).map(lambda parts: _conversation(*parts))


def _conversation(answers: list[tuple[bool, list[TextBlock], int, bool]], last: str) -> tuple[ChatMessage, ...]:
    messages = [HELLO]
    for number, (thinks, texts, tools, failed) in enumerate(answers):
        uses = tuple(ToolUse(f"t{number}_{i}", "execute_code", {"code": "1"}) for i in range(tools))
        messages.append(ChatMessage("assistant", ((THOUGHT,) if thinks and uses else ()) + (*texts, *uses)))
        results = tuple(ToolResult(use.id, "", failed) for use in uses)
        messages.append(ChatMessage("user", results or (TextBlock(f"Go on. {last}"),)))
    return tuple(messages)


class BodyTests(SynchronousTestCase):
    @given(conversations())
    def test_every_conversation_follows_the_rules_of_the_api(self, messages: tuple[ChatMessage, ...]) -> None:
        sent = body(*messages)
        said = [
            block["text"] for message in sent["messages"] for block in message["content"] if block["type"] == "text"
        ]
        meant = [block.text for message in messages for block in message.content if isinstance(block, TextBlock)]
        self.assertEqual(said, [text for text in meant if text.strip()])

    def test_a_whole_request(self) -> None:
        mark = {"type": "ephemeral"}
        sent = body(
            HELLO,
            ChatMessage("assistant", (THOUGHT, TextBlock("Look."), ToolUse("t1", "execute_code", {"code": "1"}))),
            ChatMessage("user", (ToolResult("t1", "boom", True),)),
        )
        self.assertEqual((sent["model"], sent["max_tokens"], sent["stream"]), ("claude-opus-5-5", 1000, True))
        self.assertEqual(sent["system"], [{"type": "text", "text": "Be good.", "cache_control": mark}])
        tool = {"name": "execute_code", "description": "Run it.", "input_schema": TOOL.schema, "cache_control": mark}
        self.assertEqual(sent["tools"], [tool])
        self.assertEqual(sent["messages"][1]["content"][0], THOUGHT.data)
        result = {
            "type": "tool_result",
            "tool_use_id": "t1",
            "content": "boom",
            "is_error": True,
            "cache_control": mark,
        }
        self.assertEqual(sent["messages"][2], {"role": "user", "content": [result]})

    def test_only_the_last_of_several_tools_is_marked(self) -> None:
        marked = ["cache_control" in tool for tool in body(HELLO, tools=(TOOL, TOOL))["tools"]]
        self.assertEqual(marked, [False, True])

    def test_without_system_prompt_or_tools_the_fields_are_left_out(self) -> None:
        self.assertEqual(set(body(HELLO, system=" ", tools=())), {"model", "max_tokens", "stream", "messages"})

    def test_blocks_of_another_provider_are_left_out(self) -> None:
        foreign = ChatMessage("assistant", (ProviderBlock("openai", {"type": "reasoning"}), TextBlock("Yes.")))
        sent = body(HELLO, foreign, HELLO)
        self.assertEqual(sent["messages"][1]["content"], [{"type": "text", "text": "Yes."}])

    def test_reasoning_at_the_end_is_not_marked(self) -> None:
        encoded = json.loads(
            AnthropicDialect().body(ModelRequest("", (HELLO, ChatMessage("assistant", (THOUGHT,))), (), "m", 1))
        )
        self.assertEqual(encoded["messages"][-1]["content"], [THOUGHT.data])

    def test_an_empty_answer_does_not_leave_two_turns_of_the_user(self) -> None:
        sent = body(HELLO, ChatMessage("assistant", ()), HELLO)
        self.assertEqual([message["role"] for message in sent["messages"]], ["user"])
        self.assertEqual(len(sent["messages"][0]["content"]), 2)


class FailureTests(SynchronousTestCase):
    def failure(self, status: int, message: str, type: str = "some_error") -> tuple[str, bool]:
        error = AnthropicDialect().failure(status, json.dumps({"error": {"type": type, "message": message}}).encode())
        self.assertIn(message, str(error))
        return error.kind, error.retryable

    def test_statuses(self) -> None:
        for status, kind, retryable in (
            (400, "invalid-request", False),
            (401, "authentication", False),
            (402, "authentication", False),
            (403, "authentication", False),
            (404, "invalid-request", False),
            (413, "context-overflow", False),
            (429, "rate-limited", True),
            (500, "overloaded", True),
            (503, "overloaded", True),
            (529, "overloaded", True),
        ):
            self.assertEqual(self.failure(status, "because"), (kind, retryable), status)

    def test_a_full_context_is_told_from_other_bad_requests(self) -> None:
        for message in (
            "prompt is too long: 207791 tokens > 200000 maximum",
            "input length and `max_tokens` exceed context limit: 199759 + 8192 > 200000, decrease input length",
        ):
            self.assertEqual(self.failure(400, message), ("context-overflow", False))
        error = AnthropicDialect().failure(413, b"")
        self.assertIn("start a new session", str(error))

    @given(st.integers(300, 599), st.binary(max_size=100))
    def test_any_body_gives_a_printable_sentence(self, status: int, body: bytes) -> None:
        self.assertTrue(str(AnthropicDialect().failure(status, body)).isprintable())

    def test_a_long_page_is_cut(self) -> None:
        error = AnthropicDialect().failure(502, b"<html>\x1b[2J" + b"x" * 100_000)
        self.assertLess(len(str(error)), 500)
        self.assertIn("<html> [2J", str(error))
