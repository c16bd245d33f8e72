from __future__ import annotations

import base64
import struct

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase, TestCase

from ironcurtain.builtin_agent.replies import reply
from ironcurtain.codemode.model import Tool, ToolReply
from ironcurtain.codemode.monty import MontyInterpreter, MontyInterpreters
from ironcurtain.codemode.pictures import HELD, HELD_BYTES, SHOWN, Pictures
from ironcurtain.codemode.pool import close_pool
from ironcurtain.jsonrpc import codec
from ironcurtain.llm.model import ImageBlock

SHOT = ImageBlock("image/png", b"shot", 1024, 768)
HANDLE = {"id": "picture-1", "media_type": "image/png", "width": 1024, "height": 768}
TAKE = Tool("desktop", "screenshot", "Take a picture.", {"type": "object", "properties": {}})


class PicturesTests(SynchronousTestCase):
    def test_handle_has_sizes_and_shows_the_picture(self) -> None:
        pictures = Pictures()
        self.assertEqual(pictures.handles(["legend", SHOT, 3]), ["legend", HANDLE, 3])
        pictures.show(HANDLE)
        pictures.show("picture-1")
        self.assertEqual((pictures.take(), pictures.take()), ((SHOT, SHOT), ()))

    def test_handle_of_another_session_is_refused(self) -> None:
        ours, theirs = Pictures(), Pictures()
        theirs.handles([SHOT, SHOT])
        ours.handles(SHOT)
        with self.assertRaisesRegex(ValueError, "no 'picture-2' any more"):
            ours.show("picture-2")

    def test_program_shows_a_bounded_number(self) -> None:
        pictures = Pictures()
        handle = pictures.handles(SHOT)
        for _ in range(SHOWN):
            pictures.show(handle)
        with self.assertRaisesRegex(ValueError, "at most 8"):
            pictures.show(handle)
        self.assertEqual(len(pictures.take()), SHOWN)
        pictures.show(handle)

    def test_oldest_are_given_up(self) -> None:
        for image, kept in ((SHOT, HELD), (ImageBlock("image/png", bytes(HELD_BYTES // 4), 1, 1), 4)):
            pictures = Pictures()
            handles = pictures.handles([image] * (kept + 1))
            with self.assertRaises(ValueError):
                pictures.show(handles[0])
            pictures.show(handles[1])

    @given(st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.dictionaries(st.text(), inner)))
    def test_anything_else_is_refused(self, other: object) -> None:
        with self.assertRaises((TypeError, ValueError)):
            Pictures().show(other)


class InterpreterTests(TestCase):
    async def interpreter(self, answer: ToolReply) -> MontyInterpreter:
        self.addCleanup(lambda: Deferred.fromCoroutine(close_pool()))
        made = await MontyInterpreters(Clock())([TAKE], lambda *call: succeed(answer))
        self.addCleanup(lambda: Deferred.fromCoroutine(made.close()))
        return made

    async def test_program_shows_a_picture_of_which_it_has_only_the_handle(self) -> None:
        interpreter = await self.interpreter(ToolReply(["legend", SHOT]))
        result = await interpreter.run("words, shot = desktop.screenshot()\nshow(shot)\nshot")
        self.assertEqual((result.shown, result.error), ((SHOT,), None))
        self.assertEqual(result.value, repr(HANDLE))
        self.assertNotIn(base64.b64encode(b"shot").decode(), str(result))
        again = await interpreter.run("show(shot)\nshow(shot['id'])")
        self.assertEqual(again.shown, (SHOT, SHOT))
        self.assertEqual((await interpreter.run("1")).shown, ())

    async def test_program_that_shows_what_is_not_there_fails(self) -> None:
        interpreter = await self.interpreter(ToolReply(SHOT))
        for code in ("show('picture-9')", "show(3)", "tools.show({'id': 'x'})"):
            result = await interpreter.run(code)
            self.assertRegex(str(result.error), "any more: make it again|takes a picture")
            self.assertEqual(result.shown, ())


def result(*parts: object, **more: object) -> ToolReply:
    return reply(codec.encode({"content": list(parts), **more}))


class ReplyTests(SynchronousTestCase):
    def setUp(self) -> None:
        png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack("!2I", 4, 3)
        self.image = ImageBlock("image/png", png, 4, 3)
        self.data = base64.b64encode(png).decode()
        self.part = {"type": "image", "mimeType": "image/png", "data": self.data}

    def test_picture_is_the_value_or_a_part_of_it(self) -> None:
        text = {"type": "text", "text": "legend"}
        self.assertEqual(result(self.part).value, self.image)
        self.assertEqual(result(text, self.part).value, ["legend", self.image])
        self.assertEqual(result(self.part, structuredContent={"scale": 1}).value, [{"scale": 1}, self.image])

    def test_embedded_picture_is_one_too(self) -> None:
        for kind in ("image/png", "Image/PNG", "application/octet-stream", ""):
            held = {"uri": "file:///a.png", "mimeType": kind, "blob": self.data}
            self.assertEqual(result({"type": "resource", "resource": held}).value, self.image, kind)
        other = {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "application/pdf", "blob": "JVBE"}}
        self.assertEqual(result(other).value, [other])

    def test_kind_is_what_the_data_says(self) -> None:
        self.assertEqual(result({**self.part, "mimeType": "image/svg+xml"}).value, self.image)

    def test_what_cannot_be_shown_is_described(self) -> None:
        for data, words in (
            (base64.b64encode(b"<svg/>").decode(), "only PNG"),
            ("*", "not in base64"),
            ("A" * 8_000_000, "too large"),
        ):
            self.assertIn(words, result({**self.part, "data": data}).value)

    def test_sound_is_described_and_not_passed_on(self) -> None:
        sound = {"type": "audio", "mimeType": "audio/wav", "data": "UklGRgAA"}
        self.assertEqual(result(sound).value, "[sound of 6 bytes, which is not passed on]")

    def test_failed_call_says_its_texts_and_has_no_picture(self) -> None:
        found = result({"type": "text", "text": "the window is gone"}, self.part, isError=True)
        self.assertEqual(found, ToolReply(None, "the window is gone"))
