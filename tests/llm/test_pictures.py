from __future__ import annotations

import base64
import contextlib
import json
import struct
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import UsageError
from ironcurtain.llm.anthropic import AnthropicDialect
from ironcurtain.llm.compaction import Room, Strategy, shorten
from ironcurtain.llm.conversation import Conversation, keep_newest
from ironcurtain.llm.dialect import Dialect
from ironcurtain.llm.google import GoogleDialect
from ironcurtain.llm.model import Block, ChatMessage, ImageBlock, ModelRequest, TextBlock, ToolResult, ToolUse
from ironcurtain.llm.openai import OpenAiDialect
from ironcurtain.llm.openai_chat import OpenAiChatDialect
from ironcurtain.llm.pictures import (
    KEPT,
    LEFT_OUT,
    SIDE_LIMIT,
    SIZE_LIMIT,
    description,
    image_block,
    image_tokens,
    images_of,
)
from ironcurtain.llm.text_tools import written_prompt

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack("!2I", 640, 480)
GIF = b"GIF89a" + struct.pack("<2H", 3, 4)
JPEG = b"\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x11\x08" + struct.pack("!2H", 20, 30)
WEBP = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a" + struct.pack("<2H", 50, 60)
WEBP_LOSSLESS = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + struct.pack("<I", 49 | 59 << 14)
WEBP_EXTENDED = b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0" + bytes((49, 0, 0, 59, 0, 0))
SHOT = ImageBlock("image/png", b"shot", 1024, 768)
WRITTEN = base64.b64encode(b"shot").decode()
USES = (ToolUse("t1", "execute_code", {"code": "1"}), ToolUse("t2", "execute_code", {"code": "2"}))
RESULTS = (ToolResult("t1", "seen", False, (SHOT,)), ToolResult("t2", "boom", True, (SHOT,)))


def sent(dialect: Dialect, model: str = "m-1") -> dict[str, Any]:
    messages = (
        ChatMessage("user", (TextBlock("Look."),)),
        ChatMessage("assistant", USES),
        ChatMessage("user", (*RESULTS, TextBlock("Go on."))),
    )
    body: dict[str, Any] = json.loads(dialect.body(ModelRequest("", messages, (), model, 100)))
    return body


class DialectTests(SynchronousTestCase):
    def test_anthropic_has_pictures_in_results_but_not_in_errors(self) -> None:
        picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": WRITTEN}}
        self.assertEqual(
            sent(AnthropicDialect())["messages"][-1]["content"],
            [
                {
                    "type": "tool_result",
                    "tool_use_id": "t1",
                    "content": [{"type": "text", "text": "seen"}, picture],
                    "is_error": False,
                },
                {"type": "tool_result", "tool_use_id": "t2", "content": "boom", "is_error": True},
                {"type": "text", "text": "Go on."},
                {**picture, "cache_control": {"type": "ephemeral"}},
            ],
        )

    def test_openai_has_pictures_in_outputs(self) -> None:
        picture = {"type": "input_image", "image_url": f"data:image/png;base64,{WRITTEN}", "detail": "auto"}
        self.assertEqual(
            [item["output"] for item in sent(OpenAiDialect())["input"] if item["type"] == "function_call_output"],
            [
                [{"type": "input_text", "text": "seen"}, picture],
                [{"type": "input_text", "text": "Error: boom"}, picture],
            ],
        )

    def test_chat_completions_have_pictures_in_a_message_after_all_results(self) -> None:
        picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{WRITTEN}"}}
        self.assertEqual(
            sent(OpenAiChatDialect())["messages"][-3:],
            [
                {"role": "tool", "tool_call_id": "t1", "content": "seen"},
                {"role": "tool", "tool_call_id": "t2", "content": "Error: boom"},
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "[Pictures that the tools above returned:]"},
                        picture,
                        picture,
                        {"type": "text", "text": "Go on."},
                    ],
                },
            ],
        )

    def test_gemini_has_pictures_in_responses_of_functions(self) -> None:
        picture = {"inlineData": {"mimeType": "image/png", "data": WRITTEN}}
        first, second, said = sent(GoogleDialect(), "gemini-3.1-pro")["contents"][-1]["parts"]
        self.assertEqual(
            first["functionResponse"],
            {"id": "t1", "name": "execute_code", "response": {"output": "seen"}, "parts": [picture]},
        )
        self.assertEqual(second["functionResponse"]["parts"], [picture])
        self.assertEqual(said, {"text": "Go on."})

    def test_older_gemini_has_pictures_after_all_responses(self) -> None:
        picture = {"inlineData": {"mimeType": "image/png", "data": WRITTEN}}
        first, second, *others = sent(GoogleDialect(), "gemini-2.5-pro")["contents"][-1]["parts"]
        self.assertEqual(set(first["functionResponse"]) | set(second["functionResponse"]), {"id", "name", "response"})
        told = {"text": "[Pictures that the tools above returned:]"}
        self.assertEqual(others, [{"text": "Go on."}, told, picture, told, picture])

    def test_models_that_read_only_text_are_told_that_there_were_pictures(self) -> None:
        messages = (ChatMessage("assistant", USES), ChatMessage("user", RESULTS))
        written = written_prompt(ModelRequest("", messages, (), "m", 1))
        self.assertEqual(written.count("[1 picture is left out: you read only text]"), 2)
        self.assertNotIn(WRITTEN, written)


class KindTests(SynchronousTestCase):
    def test_kind_and_size_are_read_from_the_first_bytes(self) -> None:
        for data, kind, size in (
            (PNG, "image/png", (640, 480)),
            (GIF, "image/gif", (3, 4)),
            (JPEG, "image/jpeg", (30, 20)),
            (WEBP, "image/webp", (50, 60)),
            (WEBP_LOSSLESS, "image/webp", (50, 60)),
            (WEBP_EXTENDED, "image/webp", (50, 60)),
        ):
            image = image_block(data)
            self.assertEqual((image.media_type, (image.width, image.height), image.data), (kind, size, data))

    def test_other_data_is_refused(self) -> None:
        for data in (b"", b"<svg/>", b"BM" + bytes(60), PNG[:20], JPEG[:-3], b"\xff\xd8\xff\xe0\0\0" * 9, WEBP[:20]):
            with self.assertRaisesRegex(UsageError, "only PNG, JPEG, GIF and WebP"):
                image_block(data)

    def test_too_large_pictures_are_refused(self) -> None:
        for width, height in ((SIDE_LIMIT + 1, 1), (1, SIDE_LIMIT + 1), (0, 5), (2**32 - 1, 2**32 - 1)):
            with self.assertRaisesRegex(UsageError, f"{width}x{height} pixels"):
                image_block(PNG[:16] + struct.pack("!2I", width, height))
        with self.assertRaisesRegex(UsageError, "bytes"):
            image_block(PNG + bytes(SIZE_LIMIT))

    @given(st.sampled_from((b"", PNG[:8], GIF[:6], JPEG[:3], WEBP[:12], WEBP[:16], WEBP_LOSSLESS[:16])), st.binary())
    def test_any_data_is_a_picture_within_bounds_or_refused(self, start: bytes, rest: bytes) -> None:
        with contextlib.suppress(UsageError):
            image = image_block(start + rest)
            self.assertTrue(0 < image.width <= SIDE_LIMIT and 0 < image.height <= SIDE_LIMIT)

    def test_description_has_a_digest_and_no_data(self) -> None:
        digest = "8dccea5217902053"
        self.assertEqual(description(SHOT), f"image/png 1024x768, 4 bytes, sha256 {digest}")
        self.assertNotIn("shot", repr(SHOT))


class TokenTests(SynchronousTestCase):
    def test_tokens_follow_the_formula_of_the_provider(self) -> None:
        for model, size, tokens in (
            ("claude-opus-5-5", (1024, 768), 1049),
            ("claude-opus-5-5", (1568 * 2, 1568), 1640),
            ("gpt-4o", (1024, 1024), 765),
            ("gpt-4o", (2048, 4096), 1105),
            ("gpt-6.1-sol", (1024, 768), 768),
            ("gpt-6.1-sol", (2000, 2000), 1536),
            ("gemini-3.1-pro", (1024, 768), 1120),
            ("gemini-2.5-pro", (300, 384), 258),
            ("gemini-2.5-pro", (1024, 768), 516),
            ("qwen3-vl", (1024, 768), 1036),
        ):
            self.assertEqual(image_tokens(ImageBlock("image/png", b"", *size), model), tokens, f"{model} {size}")


def size(block: Block) -> int:
    match block:
        case TextBlock(text):
            return len(text)
        case ToolResult(_, content, _, images):
            return len(content) + 300 * len(images)
    return 10


def seen(turns: int, pictures: int) -> Conversation:
    """:returns: a conversation whose turns each have so many uses of a tool that shows a picture."""
    conversation = Conversation()
    for turn in range(turns):
        conversation.say("Look.")
        for number in range(pictures):
            name = f"{turn}.{number}"
            conversation.answer([ToolUse(name, "execute_code", {})])
            conversation.results([ToolResult(name, "seen", False, (ImageBlock("image/png", name.encode(), 9, 9),))])
        conversation.answer([TextBlock("I see.")])
    return conversation


def names(conversation: Conversation) -> list[str]:
    return [image.data.decode() for image in images_of(conversation.messages)]


class KeepingTests(SynchronousTestCase):
    def test_conversation_keeps_the_newest_half_of_too_many_pictures(self) -> None:
        self.assertEqual(len(names(seen(4, KEPT // 4))), KEPT)
        kept = names(seen(1, KEPT + 1))
        self.assertEqual(kept, [f"0.{number}" for number in range(KEPT // 2 + 1, KEPT + 1)])

    def test_result_says_that_its_picture_is_gone(self) -> None:
        past = keep_newest(seen(1, 2).past, 1)
        first, second = (
            block for message in past.messages for block in message.content if isinstance(block, ToolResult)
        )
        self.assertEqual((first.content, first.images), (f"seen\n{LEFT_OUT.format(count=1)}", ()))
        self.assertEqual((second.content, len(second.images)), ("seen", 1))

    def test_oldest_pictures_go_before_anything_else(self) -> None:
        past = seen(3, 2).past
        found = shorten(past, Strategy.TRUNCATE, Room(1300, 1250, 10, 5), size)
        self.assertEqual((found.images, found.lean, found.gone), (3, 0, ()))
        self.assertEqual([i.data for i in images_of(found.past.messages)], [b"1.1", b"2.0", b"2.1"])

    def test_pictures_of_the_newest_turn_go_too_rather_than_that_it_does_not_fit(self) -> None:
        found = shorten(seen(1, 9).past, Strategy.TRUNCATE, Room(1600, 1500, 10, 5), size)
        self.assertEqual(found.images, 3)
        self.assertEqual([image.data for image in images_of(found.past.messages)][-1], b"0.8")
