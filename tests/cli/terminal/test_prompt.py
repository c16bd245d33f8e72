"""The terminal surface on a real pseudo-terminal."""

from __future__ import annotations

import codecs
import contextlib
import math
import os
import pty
import re
import signal
import subprocess
import sys
import termios
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from prompt_toolkit.styles import DEFAULT_ATTRS
from twisted.internet import reactor as installed
from twisted.internet.defer import Deferred
from twisted.internet.task import LoopingCall, deferLater
from twisted.trial.unittest import SynchronousTestCase, TestCase

from ironcurtain.cli.terminal.plain import standard_surface
from ironcurtain.cli.terminal.prompt import STYLE, PromptSurface
from ironcurtain.text.columns import Span
from ironcurtain.view.look import COLORED
from ironcurtain.view.narration import Live

reactor: Any = installed

ESCAPES = re.compile(r"\x1b(\[[0-9;?]*[a-zA-Z]|\][^\x07]*\x07|[=>78])")


class Heard:
    """Keeps what the person did."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.began: list[float] = []
        self.own: list[str] = []
        self.others: list[str] = []

    def typed(self, line: str, began: float, own: str = "") -> None:
        self.lines.append(line)
        self.began.append(began)
        self.own.append(own)

    def interrupt(self) -> None:
        self.others.append("interrupt")

    def input_ended(self) -> None:
        self.others.append("end")

    def lost(self, why: str) -> None:
        self.others.append("lost")


class TerminalCase(TestCase):
    """A terminal of 80 columns, and the person's end of it."""

    environ: Mapping[str, str] = MappingProxyType({"TERM": "xterm-256color"})

    def setUp(self) -> None:
        self.person, terminal = pty.openpty()
        self.addCleanup(self.hang_up)
        termios.tcsetwinsize(terminal, (24, 80))
        self.source = os.fdopen(terminal, "r", encoding="utf-8")
        self.sink = os.fdopen(os.dup(terminal), "w", encoding="utf-8")
        self.addCleanup(self.close_streams)
        os.set_blocking(self.person, False)
        self.before = termios.tcgetattr(terminal)
        self.time = 5.0
        surface = standard_surface(reactor, self.source, None, self.sink, self.environ, lambda: self.time)
        assert isinstance(surface, PromptSurface)
        self.surface, self.heard, self.seen = surface, Heard(), ""
        self.decode = codecs.getincrementaldecoder("utf-8")().decode  # a read may end within a character

    def hang_up(self) -> None:
        """The person closes the terminal."""
        if self.person >= 0:
            os.close(self.person)
            self.person = -1

    def close_streams(self) -> None:
        """Close the program's end; what it wrote to a terminal that is gone is lost."""
        self.source.close()
        with contextlib.suppress(OSError):
            self.sink.close()

    async def open(self) -> None:
        """Take the terminal, and wait for the input line."""
        await deferLater(reactor, 0)  # the reactor runs from here on, and with it what wakes Python for signals
        self.surface.open(self.heard, True)
        self.addCleanup(lambda: Deferred.fromCoroutine(self.surface.close()))
        await self.until(lambda: "> " in self.seen)

    async def until(self, met: Any) -> None:
        """Read the terminal until a condition is met; the test's own time limit ends it otherwise."""

        def look() -> None:
            with contextlib.suppress(BlockingIOError):
                self.seen += self.decode(os.read(self.person, 65536)) if self.person >= 0 else ""
            if met() and looking.running:
                looking.stop()

        looking = LoopingCall(look)
        await looking.start(0.01)

    async def press(self, keys: str, met: Any) -> None:
        """Press keys, and wait for what they do."""
        os.write(self.person, keys.encode())
        await self.until(met)

    @property
    def text(self) -> str:
        """What was seen, without escape sequences."""
        return ESCAPES.sub("", self.seen)


class KeyTests(TerminalCase):
    async def test_a_line(self) -> None:
        await self.open()
        await self.press("hello\r", lambda: self.heard.lines == ["hello"])

    async def test_an_earlier_line_comes_back_with_the_up_key(self) -> None:
        await self.open()
        await self.press("hello\r", lambda: self.heard.lines == ["hello"])
        self.seen = ""
        await self.until(lambda: os.write(self.person, b"\x1b[A") and "hello" in self.text)
        await self.press("\r", lambda: self.heard.lines == ["hello", "hello"])
        self.assertEqual(self.heard.own, ["hello", ""])

    async def test_several_lines_pasted_are_one_message(self) -> None:
        await self.open()
        await self.press("\x1b[200~one\ntwo\x1b[201~", lambda: "two" in self.seen)
        await self.press("\r", lambda: self.heard.lines == ["one\ntwo"])
        self.assertEqual(self.heard.own, [""])

    async def test_what_is_pasted_or_comes_from_the_history_is_not_typed(self) -> None:
        await self.open()
        await self.press("see \x1b[200~read ~/a\x1b[201~ or not\r", lambda: len(self.heard.lines) == 1)
        await self.press("read it\r", lambda: len(self.heard.lines) == 2)
        self.surface.put_back("read it")
        await self.press(" now\r", lambda: len(self.heard.lines) == 3)
        await self.press("\x1b[200~read ~/a\x1b[201~\x15\x19\r", lambda: len(self.heard.lines) == 4)
        self.assertEqual(self.heard.lines, ["see read ~/a or not", "read it", "read it now", "read ~/a"])
        self.assertEqual(self.heard.own, ["see \n or not", "read it", "read it now", ""])

    async def test_a_line_with_pasted_text_was_never_begun(self) -> None:
        await self.open()
        await self.press("/app\x1b[200~rove\x1b[201~", lambda: "rove" in self.text)
        await self.press("\r", lambda: self.heard.lines == ["/approve"])
        await self.press("x\r", lambda: len(self.heard.lines) == 2)
        self.assertEqual(self.heard.began, [-math.inf, 5.0])

    async def test_when_typing_began(self) -> None:
        await self.open()
        await self.press("/app", lambda: "/app" in self.text)
        self.time = 9.0
        await self.press("rove\r", lambda: self.heard.lines == ["/approve"])
        await self.press("x\r", lambda: len(self.heard.lines) == 2)
        self.assertEqual(self.heard.began, [5.0, 9.0])

    async def test_ctrl_c_clears_the_line_first(self) -> None:
        await self.open()
        await self.press("hello", lambda: "hello" in self.text)
        await self.press("\x03\r", lambda: self.heard.lines == [""])
        self.assertEqual(self.heard.others, [])
        await self.press("\x03", lambda: self.heard.others == ["interrupt"])

    async def test_ctrl_d_ends_only_an_empty_line(self) -> None:
        await self.open()
        await self.press("ab\x02\x04\r", lambda: self.heard.lines == ["a"])
        await self.press("\x04", lambda: self.heard.others == ["end"])

    async def test_text_put_back_is_in_the_line(self) -> None:
        await self.open()
        self.surface.put_back("one")
        await self.press(" two\r", lambda: self.heard.lines == ["one two"])

    async def test_invalid_bytes_become_valid_text(self) -> None:
        await self.open()
        os.write(self.person, b"a\xff\xfeb\r")
        await self.until(lambda: self.heard.lines)
        self.heard.lines[0].encode("utf-8")


class DrawTests(TerminalCase):
    async def test_what_is_printed_stands_above_what_changes(self) -> None:
        await self.open()
        self.surface.show(Live(("unfinished",), (Span("* busy 3 s", "dim"),)))
        await self.until(lambda: "busy" in self.text)
        self.seen = ""
        self.surface.print([(Span("✓ ", "good"), Span("done")), ()])
        await self.until(lambda: re.search(r"✓ done\s+unfinished\s+\* busy 3 s\s+> ", self.text))
        self.assertIn("\x1b[0;32m✓", self.seen)

    async def test_an_escape_character_does_not_get_through(self) -> None:
        await self.open()
        self.surface.print([(Span("a\x1b[2Jb"),)])
        await self.until(lambda: "[2Jb" in self.seen)
        self.assertNotIn("\x1b[2J", self.seen)

    async def test_the_bell_and_the_title(self) -> None:
        await self.open()
        self.surface.bell("escalation 3 waits")
        await self.until(lambda: "\x07\x1b]2;ironcurtain: escalation 3 waits\x07" in self.seen)
        self.surface.calm()
        await self.until(lambda: "\x1b]2;ironcurtain\x07" in self.seen)

    async def test_the_terminal_is_never_asked_anything(self) -> None:
        await self.open()
        self.assertNotIn("\x1b[6n", self.seen)

    async def test_a_resize_is_noticed(self) -> None:
        await self.open()
        self.assertEqual(self.surface.width(), 79)
        termios.tcsetwinsize(self.sink.fileno(), (50, 200))
        self.assertEqual(self.surface.width(), 199)


class StyleTests(SynchronousTestCase):
    def test_each_style_of_a_line_is_told_from_plain_text(self) -> None:
        for name in COLORED:
            self.assertNotEqual(STYLE.get_attrs_for_style_str(f"class:{name}"), DEFAULT_ATTRS, name)


class NoColourTests(TerminalCase):
    environ = MappingProxyType({"TERM": "xterm-256color", "NO_COLOR": "1"})

    async def test_there_are_no_colours(self) -> None:
        await self.open()
        self.surface.print([(Span("red", "bad"),)])
        await self.until(lambda: "red" in self.seen)
        self.assertIsNone(re.search(r"\x1b\[[0-9;]*\b(3[0-7]|9[0-7]|38)\b", self.seen))


class RestoreTests(TerminalCase):
    def modes(self) -> list[Any]:
        """:returns: the terminal's modes."""
        return termios.tcgetattr(self.source.fileno())

    async def test_the_terminal_is_as_it_was(self) -> None:
        await self.open()
        self.assertFalse(self.modes()[3] & termios.ICANON)
        self.surface.show(Live((), (Span("* busy"),)))
        await self.surface.close()
        self.assertEqual(self.modes(), self.before)
        await self.until(lambda: self.seen.endswith("\x1b[23;0t"))
        self.assertGreater(self.seen.rindex("\x1b[?2004l"), self.seen.rindex("\x1b[?2004h"))
        self.surface.print([(Span("after"),)])
        await self.until(lambda: "after" in self.seen)

    async def test_closing_before_it_was_drawn(self) -> None:
        self.surface.open(self.heard, True)
        await self.surface.close()
        self.assertEqual(self.modes(), self.before)

    async def test_a_terminal_that_goes_away_is_reported(self) -> None:
        await self.open()
        self.hang_up()
        await self.until(lambda: self.heard.others == ["lost"])

    async def test_the_reactor_still_learns_that_a_child_has_ended(self) -> None:
        """prompt_toolkit lets asyncio take over how Python is woken for signals; see the surface."""
        program = [sys.executable, "-m", "tests.cli.terminal.on_a_terminal"]
        running = subprocess.Popen(program, stdin=self.source, stderr=self.sink)
        self.addCleanup(running.wait)
        await self.until(lambda: running.poll() is not None)
        self.assertEqual(running.returncode, 0, self.seen)
        self.assertEqual(self.modes(), self.before)

    async def test_how_python_is_woken_is_given_back(self) -> None:
        await self.open()
        wakeup = signal.set_wakeup_fd(-1)
        signal.set_wakeup_fd(wakeup)
        await self.surface.close()
        after = signal.set_wakeup_fd(-1)
        signal.set_wakeup_fd(after)
        self.assertEqual(wakeup, after)


class DumbTests(TerminalCase):
    def setUp(self) -> None:
        super().setUp()
        surface = standard_surface(reactor, self.source, None, self.sink, {"TERM": "dumb"}, lambda: 0.0)
        self.assertFalse(surface.live)

    def test_a_terminal_that_can_only_print_is_plain(self) -> None:
        for environ in ({}, {"TERM": ""}):
            self.assertFalse(standard_surface(reactor, self.source, None, self.sink, environ, lambda: 0.0).live)
