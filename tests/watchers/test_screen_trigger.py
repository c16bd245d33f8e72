from __future__ import annotations

import io
from collections.abc import Callable, Sequence

from PIL import Image, ImageDraw, ImageFont
from twisted.internet.task import Clock
from twisted.trial.unittest import TestCase

from ironcurtain.errors import Unavailable
from ironcurtain.senses.client import SensesWorker
from ironcurtain.senses.model import Box, Line
from ironcurtain.watchers.model import Event, Kind, Watcher
from ironcurtain.watchers.screen_trigger import POLL_SECONDS, ScreenTrigger, Shot
from tests.machine import demand_sandbox
from tests.mitm_proxy.waiting import until
from tests.programs import program

WIDTH, HEIGHT = 640, 320


def screen(*texts: str, caret: bool = False) -> bytes:
    """:returns: a screen with lines of text."""
    picture = Image.new("RGB", (WIDTH, HEIGHT), "white")
    draw = ImageDraw.Draw(picture)
    for number, text in enumerate(texts):
        draw.text((40, 40 + 60 * number), text, "black", ImageFont.load_default(22))
    if caret:
        draw.rectangle((500, 300, 501, 315), "black")
    written = io.BytesIO()
    picture.save(written, "PNG")
    return written.getvalue()


class Illiterate(SensesWorker):
    """Cannot read."""

    async def lines_of(self, png: bytes, region: Box | None = None, hidden: Sequence[Box] = ()) -> list[Line]:
        raise Unavailable("the program tesseract is missing")


class ScreenTriggerTests(TestCase):
    def setUp(self) -> None:
        demand_sandbox()
        program("tesseract")
        self.clock, self.shown, self.said = Clock(), screen("Building"), list[str]()
        self.fired, self.hidden = list[Event](), tuple[Box, ...]()
        self.worker = SensesWorker()
        self.on_event: Callable[[Event], object] = lambda event: None

    async def trigger(self, pattern: str = "") -> ScreenTrigger:
        watcher = Watcher("eyes", Kind.SCREEN_CHANGE, "Look.", pattern=pattern, app="make")
        made = ScreenTrigger(watcher, self.clock, self.worker, self.look, self.said.append)
        self.addCleanup(made.stop)
        made.start(self.take)
        await until(self.clock.getDelayedCalls, "the first look")
        return made

    def take(self, event: Event) -> None:
        """An event."""
        self.fired.append(event)
        self.on_event(event)

    async def look(self) -> Shot:
        if not self.shown:
            raise Unavailable("there is no desktop")
        return Shot(self.shown, Box(0, 0, WIDTH, HEIGHT), self.hidden)

    async def after(self, png: bytes) -> list[Event]:
        """:returns: the events that a change of the screen causes."""
        self.shown, before = png, len(self.fired)
        self.clock.advance(POLL_SECONDS)
        await until(self.clock.getDelayedCalls, "the end of a look")
        return self.fired[before:]

    async def test_text_that_appears_is_an_event_and_what_was_there_is_none(self) -> None:
        await self.trigger()
        self.assertEqual(await self.after(self.shown), [])
        [event] = await self.after(screen("Building", "The build has failed"))
        self.assertEqual(event.data, {"app": "make", "text": "The build has failed"})
        self.assertEqual(await self.after(self.shown), [])

    async def test_pattern_chooses_lines(self) -> None:
        await self.trigger("build*failed")
        self.assertEqual(await self.after(screen("Building", "Almost done")), [])
        [event] = await self.after(screen("Building", "The build has FAILED", "Almost done"))
        self.assertEqual(event.data["text"], "The build has FAILED")

    async def test_change_without_a_reader_is_an_event(self) -> None:
        self.worker = Illiterate()
        await self.trigger()
        [event] = await self.after(screen("Building", "The build has failed"))
        self.assertEqual(event.data["text"], "")

    async def test_pattern_without_a_reader_is_said(self) -> None:
        self.worker = Illiterate()
        await self.trigger("failed")
        for text in ("The build has failed", "Something else is on the screen now"):
            self.assertEqual(await self.after(screen("Building", text)), [])
        self.assertEqual(self.said, ["the program tesseract is missing"])

    async def test_equal_text_has_an_equal_digest(self) -> None:
        await self.trigger("ready")
        first = await self.after(screen("Building", "", "Get ready now"))
        self.assertEqual(await self.after(screen("Building")), [])
        second = await self.after(screen("Building", "", "Get ready now"))
        self.assertEqual(first, second)
        self.assertTrue(first[0].digest)

    async def test_caret_is_no_change_and_starts_no_reading(self) -> None:
        await self.trigger()
        self.assertEqual(await self.after(screen("Building", caret=True)), [])

    async def test_what_the_own_run_changed_is_no_event(self) -> None:
        trigger = await self.trigger()
        self.shown = screen("Building", "The agent wrote this")
        await trigger.settle()
        self.assertEqual(await self.after(self.shown), [])
        self.assertEqual(len(await self.after(screen("Building", "The agent wrote this", "And this is new"))), 1)

    async def test_hidden_part_is_not_read(self) -> None:
        await self.trigger()
        self.hidden = (Box(0, 80, WIDTH, 60),)
        [event] = await self.after(screen("Hello Ann", "Password hunter2", "Welcome back"))
        self.assertEqual(event.data["text"], "Hello Ann\\nWelcome back")

    async def test_missing_desktop_is_said_once_and_looked_for_again(self) -> None:
        known, self.shown = self.shown, b""
        await self.trigger()
        self.assertEqual(await self.after(b""), [])
        self.assertEqual(self.said, ["there is no desktop"])
        self.assertEqual(await self.after(known), [])
        self.assertEqual(len(await self.after(screen("Building", "The build has failed"))), 1)

    async def test_picture_that_cannot_be_read_is_said_and_the_next_is_compared(self) -> None:
        await self.trigger()
        self.assertEqual(await self.after(b"GIF89a"), [])
        self.assertEqual(self.said, [])
        self.assertEqual(await self.after(b"GIF89a"), [])
        self.assertRegex(self.said[0], "no PNG file")
        self.assertEqual(len(await self.after(screen("Building", "The build has failed"))), 1)

    async def test_nothing_follows_when_an_event_stops_it(self) -> None:
        trigger = await self.trigger()
        self.on_event = lambda event: trigger.stop()
        self.shown = screen("Building", "The build has failed")
        self.clock.advance(POLL_SECONDS)
        await until(lambda: self.fired, "the event")
        self.assertEqual(self.clock.getDelayedCalls(), [])
