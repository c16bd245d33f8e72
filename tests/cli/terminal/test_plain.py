from __future__ import annotations

import io
import math
import os
import tempfile
from typing import Any, TextIO

from twisted.internet import reactor as installed
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase, TestCase

from ironcurtain.cli.terminal.plain import PlainSurface, standard_surface
from ironcurtain.text.columns import Span
from ironcurtain.view.look import ASCII, UNICODE
from ironcurtain.view.narration import Live

reactor: Any = installed


class Heard:
    """Keeps what was typed."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.began: list[float] = []
        self.done: Deferred[list[str]] = Deferred()

    def typed(self, line: str, began: float, own: str = "") -> None:
        assert own == ("" if began == math.inf else line)  # a pipe and a file are no person
        self.lines.append(line)
        self.began.append(began)

    def interrupt(self) -> None:
        raise AssertionError("nobody pressed Ctrl-C")

    def input_ended(self) -> None:
        self.done.callback(self.lines)

    def lost(self, why: str) -> None:
        raise AssertionError(why)


def stream(encoding: str) -> io.TextIOWrapper:
    """:returns: a stream that keeps what is written."""
    return io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="\n")


class OutputTests(SynchronousTestCase):
    def test_answers_and_all_else_go_different_ways(self) -> None:
        out, err = stream("utf-8"), stream("utf-8")
        surface = PlainSurface(reactor, None, out, err, reactor.seconds)
        surface.print([(Span("✓ ", "good"), Span("done")), ()])
        surface.print([(Span("42"),)], answer=True)
        surface.show(Live(("tail",), (Span("status"),)))
        surface.bell("escalation 3 waits")
        surface.calm()
        surface.put_back("text")
        self.assertEqual(written(err), "✓ done\n\n".encode())
        self.assertEqual(written(out), b"42\n")

    def test_the_encoding_is_respected(self) -> None:
        err = stream("ascii")
        surface = PlainSurface(reactor, None, None, err, reactor.seconds)
        surface.print([(Span("naïve…"),)])
        self.assertEqual(written(err), b"na\\xefve...\n")
        self.assertIs(surface.signs, ASCII)
        self.assertIs(PlainSurface(reactor, None, None, stream("utf-8"), reactor.seconds).signs, UNICODE)

    def test_streams_that_are_not_there(self) -> None:
        PlainSurface(reactor, None, None, None, reactor.seconds).print([(Span("lost"),)])


def written(kept: io.TextIOWrapper) -> bytes:
    """:returns: what was written so far."""
    buffer = kept.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue()


class InputTests(TestCase):
    def read(self, source: TextIO | None, reads: bool = True) -> Heard:
        """Begin to read."""
        heard = Heard()
        surface = PlainSurface(reactor, source, None, None, reactor.seconds)
        surface.open(heard, reads)
        self.addCleanup(lambda: Deferred.fromCoroutine(surface.close()))
        return heard

    def pipe(self) -> tuple[TextIO, int]:
        """:returns: both ends of a pipe."""
        ours, theirs = os.pipe()
        source = os.fdopen(ours, encoding="utf-8")
        self.addCleanup(source.close)
        return source, theirs

    async def test_lines_from_a_pipe(self) -> None:
        source, end = self.pipe()
        os.write(end, "eins\nz\xff\u00fc".encode() + b"\xff")
        os.write(end, b"ei\n\ndrei")
        os.close(end)
        heard = self.read(source)
        self.assertEqual(await heard.done, ["eins", "z\xffü\ufffdei", "", "drei"])
        self.assertEqual(heard.began, [math.inf] * 4)

    async def test_lines_at_a_terminal_have_a_time(self) -> None:
        person, terminal = os.openpty()
        source = os.fdopen(terminal, encoding="utf-8")
        self.addCleanup(source.close)
        os.write(person, b"/approve 1\n\x04")
        before = reactor.seconds()
        heard = self.read(source)
        self.addCleanup(os.close, person)
        self.assertEqual(await heard.done, ["/approve 1"])
        self.assertTrue(before <= heard.began[0] <= reactor.seconds())

    async def test_a_character_in_two_pieces(self) -> None:
        source, end = self.pipe()
        heard = self.read(source)
        os.write(end, b"\xc3")
        wait: Deferred[None] = Deferred()
        reactor.callLater(0.01, wait.callback, None)
        await wait
        os.write(end, b"\xbc\n")
        os.close(end)
        self.assertEqual(await heard.done, ["ü"])

    async def test_a_file(self) -> None:
        with tempfile.TemporaryFile("w+", encoding="utf-8") as file:
            file.write("one\ntwo\n")
            file.seek(0)
            self.assertEqual(await self.read(file).done, ["one", "two"])

    async def test_nothing(self) -> None:
        with open(os.devnull, encoding="utf-8") as nothing:
            self.assertEqual(await self.read(nothing).done, [])
        self.assertEqual(await self.read(None).done, [])

    def test_the_descriptor_stays_blocking_for_its_other_owners(self) -> None:
        source, end = self.pipe()
        self.addCleanup(os.close, end)
        self.read(source)
        self.assertTrue(os.get_blocking(source.fileno()))

    def test_a_pipe_is_left_alone_if_no_lines_are_wanted(self) -> None:
        source, end = self.pipe()
        os.close(end)
        heard = self.read(source, reads=False)
        self.assertNoResult(heard.done)


class ChoiceTests(SynchronousTestCase):
    def test_what_is_no_terminal_is_plain(self) -> None:
        for source, err in ((None, None), (stream("utf-8"), stream("utf-8"))):
            surface = standard_surface(reactor, source, None, err, {"TERM": "xterm"}, lambda: 0.0)
            self.assertFalse(surface.live)
