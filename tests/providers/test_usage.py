from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.llm.model import TokenUsage
from ironcurtain.providers.anthropic import ANTHROPIC
from ironcurtain.providers.google import GOOGLE
from ironcurtain.providers.openai import OPENAI
from ironcurtain.providers.provider import ModelProvider
from ironcurtain.providers.registry import OTHER
from ironcurtain.providers.usage import HELD_LIMIT, UsageReader

LIE = {"usage": {"input_tokens": 1, "output_tokens": 1}, "usageMetadata": {"promptTokenCount": 1}}
"""What a model may write so as to seem cheap."""


def sse(*events: Any, end: str = "\n") -> bytes:
    lines = []
    for event in events:
        if isinstance(event, dict) and "type" in event:
            lines.append(f"event: {event['type']}")
        lines += [f"data: {event if isinstance(event, str) else msgspec.json.encode(event).decode()}", ""]
    return "".join(line + end for line in lines).encode()


MESSAGES_START = {
    "type": "message_start",
    "message": {
        "model": "claude-opus-5-5",
        "usage": {
            "input_tokens": 20,
            "cache_creation_input_tokens": 300,
            "cache_read_input_tokens": 4000,
            "output_tokens": 1,
        },
    },
}
MESSAGES_TEXT = {
    "type": "content_block_delta",
    "index": 0,
    "delta": {"type": "text_delta", "text": '"usage": {"output_tokens": 1}}\n'},
}
MESSAGES_END = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 500}}
MESSAGES = sse(MESSAGES_START, MESSAGES_TEXT, {"type": "ping"}, MESSAGES_END, {"type": "message_stop"})

RESPONSES_USAGE = {
    "input_tokens": 1000,
    "input_tokens_details": {"cached_tokens": 900},
    "output_tokens": 70,
    "output_tokens_details": {"reasoning_tokens": 60},
    "total_tokens": 1070,
}
RESPONSES = sse(
    {"type": "response.created", "response": {"model": "gpt-6.1-sol", "usage": None}},
    {"type": "response.output_text.delta", "delta": msgspec.json.encode(LIE).decode()},
    {"type": "response.output_item.done", "item": LIE},
    {"type": "response.completed", "response": {"model": "gpt-6.1-sol", "output": [LIE], "usage": RESPONSES_USAGE}},
)
CHAT = sse(
    {"object": "chat.completion.chunk", "model": "gpt-4.1", "choices": [{"delta": {"content": "hi"}}], "usage": None},
    {
        "object": "chat.completion.chunk",
        "model": "gpt-4.1",
        "choices": [],
        "usage": {"prompt_tokens": 30, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 10}},
    },
    "[DONE]",
)
GEMINI_FIRST = {
    "candidates": [{"content": {"parts": [{"functionCall": {"name": "x", "args": LIE}}]}}],
    "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 5, "totalTokenCount": 105},
    "modelVersion": "gemini-3.1-pro",
}
GEMINI_LAST = {
    "candidates": [],
    "usageMetadata": {
        "promptTokenCount": 100,
        "cachedContentTokenCount": 60,
        "toolUsePromptTokenCount": 7,
        "candidatesTokenCount": 50,
        "thoughtsTokenCount": 30,
    },
}
GEMINI = sse(GEMINI_FIRST, GEMINI_LAST, end="\r\n")

STREAMS: tuple[tuple[ModelProvider, bytes, TokenUsage, str], ...] = (
    (ANTHROPIC, MESSAGES, TokenUsage(20, 500, 4000, 300), "claude-opus-5-5"),
    (OPENAI, RESPONSES, TokenUsage(100, 70, 900), "gpt-6.1-sol"),
    (OPENAI, CHAT, TokenUsage(20, 4, 10), "gpt-4.1"),
    (GOOGLE, GEMINI, TokenUsage(47, 80, 60), "gemini-3.1-pro"),
)


def read(provider: ModelProvider, data: bytes, size: int = 1 << 30) -> UsageReader:
    reader = UsageReader(provider.count)
    for start in range(0, len(data), size):
        reader.feed(data[start : start + size])
    return reader


class StreamTests(SynchronousTestCase):
    @given(st.sampled_from(STREAMS), st.integers(1, 300))
    def test_any_slicing_gives_the_providers_counts(
        self, stream: tuple[ModelProvider, bytes, TokenUsage, str], size: int
    ) -> None:
        provider, data, usage, model = stream
        reader = read(provider, data, size)
        self.assertEqual((reader.usage, reader.model), (usage, model))
        self.assertEqual(reader.estimate(10_000_000), usage)

    def test_a_provider_of_unknown_shapes_is_understood_if_it_uses_known_ones(self) -> None:
        for _, data, usage, _ in STREAMS:
            self.assertEqual(read(OTHER, data).usage, usage)

    @given(
        st.lists(st.sampled_from([*MESSAGES.splitlines(True), b"data: ", b'{"usage":', b"\r", b"\n", b"}"])),
        st.integers(1, 50),
    )
    def test_whatever_comes_any_slicing_gives_the_same(self, lines: list[bytes], size: int) -> None:
        data = b"event: x\n" + b"".join(lines)
        self.assertEqual(read(ANTHROPIC, data, size).usage, read(ANTHROPIC, data).usage)

    def test_counts_are_told_as_they_come(self) -> None:
        reader = UsageReader(ANTHROPIC.count)
        self.assertIsNone(reader.usage)
        reader.feed(sse(MESSAGES_START))
        self.assertEqual(reader.usage, TokenUsage(20, 1, 4000, 300))

    def test_an_unfinished_line_does_not_count(self) -> None:
        self.assertIsNone(read(OPENAI, CHAT[: CHAT.index(b"\n\ndata: [DONE]")]).usage)

    def test_a_line_over_the_limit_is_passed_over_without_being_held(self) -> None:
        for size in (1 << 16, 1 << 30):
            reader = read(ANTHROPIC, b"data: " + b"x" * (HELD_LIMIT + 1), size)
            for line in (b'"usage"\n' + MESSAGES).splitlines(True):
                reader.feed(line)
            self.assertEqual(reader.usage, TokenUsage(20, 500, 4000, 300))

    def test_an_endless_line_takes_bounded_memory(self) -> None:
        reader = UsageReader(ANTHROPIC.count)
        reader.feed(b"data: ")
        for _ in range(3 * HELD_LIMIT // 65536):
            reader.feed(b'"usage"x' * 8192)
            self.assertLessEqual(sum(map(len, reader._held)), HELD_LIMIT)
        self.assertEqual(reader._held, [])

    def test_what_is_no_json_means_nothing(self) -> None:
        for line in (
            b'data: {"usage":',
            b'data: "usage"',
            b'data: {"usage":{"input_tokens":-1}}',
            b'x"usage"',
            b'data: "usage\xff',
        ):
            self.assertIsNone(read(ANTHROPIC, b": x\n" + line + b"\n\n").usage)


class JsonTests(SynchronousTestCase):
    def read(self, provider: ModelProvider, answer: Any, size: int = 7) -> UsageReader:
        return read(provider, b" \n" + msgspec.json.format(msgspec.json.encode(answer)), size)

    def test_each_provider(self) -> None:
        message = {"type": "message", "model": "claude", "content": [{"type": "tool_use", "input": LIE}]}
        counts = {"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": None}
        reader = self.read(ANTHROPIC, {**message, "usage": counts})
        self.assertEqual((reader.usage, reader.model), (TokenUsage(3, 4), "claude"))
        self.assertEqual(self.read(OPENAI, {"output": [LIE], "usage": RESPONSES_USAGE}).usage, TokenUsage(100, 70, 900))
        self.assertEqual(self.read(GOOGLE, GEMINI_LAST).usage, TokenUsage(47, 80, 60))
        self.assertEqual(self.read(GOOGLE, [GEMINI_FIRST, GEMINI_LAST]).usage, TokenUsage(47, 80, 60))

    def test_an_answer_cut_at_the_limit_of_tokens_is_known(self) -> None:
        stopped = {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 5}}
        incomplete = {"incomplete_details": {"reason": "max_output_tokens"}, "usage": {"input_tokens": 1}}
        finished = {"candidates": [{"finishReason": "MAX_TOKENS"}], "usageMetadata": {"promptTokenCount": 1}}
        for provider, cut in (
            (ANTHROPIC, stopped),
            (OPENAI, {"type": "response.incomplete", "response": incomplete}),
            (GOOGLE, finished),
        ):
            reader = UsageReader(provider.count)
            reader.feed(sse(cut))
            self.assertTrue(reader.cut, provider.name)
            whole = UsageReader(provider.count)
            whole.feed(sse({"usage": {"output_tokens": 5}, "usageMetadata": {"promptTokenCount": 1}}))
            self.assertFalse(whole.cut, provider.name)

    def test_words_of_the_model_alone_are_no_counts(self) -> None:
        self.assertIsNone(self.read(ANTHROPIC, {"content": [{"type": "tool_use", "input": LIE}]}).usage)

    def test_half_an_answer_has_none_and_more_may_come(self) -> None:
        data = msgspec.json.encode({"usage": {"input_tokens": 3, "output_tokens": 4}})
        reader = UsageReader(ANTHROPIC.count)
        reader.feed(data[:-1])
        self.assertIsNone(reader.usage)
        reader.feed(data[-1:])
        self.assertEqual((reader.usage, reader.usage), (TokenUsage(3, 4), TokenUsage(3, 4)))

    def test_errors_and_other_answers_have_none(self) -> None:
        for body in (b"", b"<html>", b'{"error": {"message": "usage"}}', b"[1, 2]", b"{" * 100_000, b'{"usage": 5}'):
            self.assertIsNone(read(OPENAI, body).usage)

    def test_an_answer_over_the_limit_is_not_held(self) -> None:
        reader = read(OPENAI, b'{"x": "' + b"x" * HELD_LIMIT, 1 << 16)
        self.assertEqual((reader.usage, reader._held), (None, []))


class EstimateTests(SynchronousTestCase):
    def test_an_answer_that_is_broken_off_costs_what_was_asked_and_sent(self) -> None:
        reader = read(ANTHROPIC, sse(MESSAGES_START, *[MESSAGES_TEXT] * 100))
        estimate = reader.estimate(50_000)
        self.assertEqual((estimate.input_tokens, estimate.cache_read_tokens), (20, 4000))
        self.assertGreater(estimate.output_tokens, 500)

    def test_where_the_prompt_was_not_counted_its_size_is(self) -> None:
        self.assertEqual(read(OPENAI, b"").estimate(40_000), TokenUsage(10_000))

    def test_it_is_never_below_what_the_provider_told(self) -> None:
        start = {"type": "message_start", "message": {"usage": {"input_tokens": 1, "output_tokens": 9999}}}
        self.assertEqual(read(ANTHROPIC, sse(start)).estimate(0).output_tokens, 9999)
