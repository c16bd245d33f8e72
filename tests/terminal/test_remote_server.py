"""A viewer in another process, as the terminal's owner sees it."""

from __future__ import annotations

from twisted.internet.testing import StringTransport
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import NotAllowed, NotFound
from ironcurtain.terminal.hub import Hub
from ironcurtain.terminal.model import Mode, ProgramExit
from ironcurtain.terminal.remote import AttachFactory
from ironcurtain.terminal.sequences import RESTORE
from ironcurtain.terminal.wire import (
    PATIENCE_SECONDS,
    Frame,
    FrameReader,
    Hello,
    Resize,
    Welcome,
    data_frames,
    frame,
    line,
    read_welcome,
)
from tests.terminal.doubles import Stage


class ServerTests(SynchronousTestCase):
    """One connection."""

    def setUp(self) -> None:
        self.stage = Stage()
        self.server = AttachFactory(self.check, self.stage.clock).buildProtocol(None)
        self.transport = StringTransport()
        self.server.makeConnection(self.transport)

    def check(self, hello: Hello) -> Hub:
        if hello.token != "secret":
            raise NotAllowed("the token is wrong or used up")
        if hello.session != "7":
            raise NotFound(f"there is no session {hello.session}")
        return self.stage.hub

    def ask(self, mode: Mode = Mode.DRIVE, token: str = "secret", session: str = "7", more: bytes = b"") -> Welcome:
        self.server.dataReceived(line(Hello(session, mode, 90, 30, token)) + more)
        found, _, self.rest = self.transport.value().partition(b"\n")
        self.transport.clear()
        return read_welcome(found)

    def frames(self) -> list[Frame]:
        data, self.rest = self.rest + self.transport.value(), b""
        self.transport.clear()
        return list(FrameReader().feed(data))

    def test_the_screen_and_what_follows(self) -> None:
        self.stage.hub.received(b"before")
        self.assertEqual(self.ask(), Welcome())
        self.stage.hub.received(b"after")
        self.assertEqual(self.frames(), [b"<90 30 1:before>", b"after"])

    def test_keys_and_sizes(self) -> None:
        self.ask(more=data_frames(b"l"))
        self.server.dataReceived(data_frames(b"s\r") + frame(Resize(100, 40)))
        self.stage.clock.advance(1)
        self.assertEqual(self.stage.program.typed, b"ls\r")
        self.assertEqual(self.stage.program.sizes, [(90, 30), (100, 40)])

    def test_an_observers_keys_go_nowhere(self) -> None:
        self.ask(Mode.OBSERVE, more=data_frames(b"ls\r") + frame(Resize(100, 40)))
        self.stage.clock.advance(1)
        self.assertEqual((self.stage.program.typed, self.stage.program.sizes), (b"", []))

    def test_refusals(self) -> None:
        answer = self.ask(token="guessed")
        self.assertEqual((answer.code, answer.message), ("NOT_ALLOWED", "the token is wrong or used up"))
        self.assertFalse(self.transport.disconnecting)
        self.assertEqual(self.stage.hub.viewers, 0)
        self.server.connectionLost()
        self.assertEqual(self.stage.clock.getDelayedCalls(), [])

    def test_a_terminal_that_is_closed(self) -> None:
        self.stage.hub.ended(ProgramExit(137, "out of memory"))
        answer = self.ask()
        self.assertEqual((answer.code, self.frames()), ("NOT_FOUND", []))
        self.assertIn("out of memory", answer.message)

    def test_what_breaks_the_protocol_is_dropped(self) -> None:
        for wrong in (b"{}\n", b"x" * 5000, b"\xff\n"):
            self.setUp()
            self.server.dataReceived(wrong)
            self.assertTrue(self.transport.disconnecting, wrong)
            self.assertEqual(self.transport.value(), b"")
        for wrong in (b"z\0\0\0\0", frame(ProgramExit(0)), b"d\xff\xff\xff\xff"):
            self.setUp()
            self.ask(more=wrong)
            self.assertTrue(self.transport.disconnecting, wrong)

    def test_who_says_nothing_is_cut_off(self) -> None:
        self.stage.clock.advance(PATIENCE_SECONDS - 0.1)
        self.assertFalse(self.transport.disconnecting)
        self.stage.clock.advance(0.1)
        self.assertTrue(self.transport.disconnecting)

    def test_a_viewer_that_does_not_read(self) -> None:
        self.ask()
        self.server.pauseProducing()
        self.stage.hub.received(b"1")
        self.stage.hub.received(b"2")
        self.assertTrue(self.stage.program.paused)
        self.server.resumeProducing()
        self.assertFalse(self.stage.program.paused)
        self.assertEqual(self.frames()[1:], [b"1", b"2"])

    def test_a_program_that_does_not_read(self) -> None:
        self.ask()
        self.stage.hub.input_full(True)
        self.assertEqual(self.transport.producerState, "paused")
        self.stage.hub.input_full(False)
        self.assertEqual(self.transport.producerState, "producing")

    def test_the_end(self) -> None:
        self.ask()
        self.stage.hub.ended(ProgramExit(7, "ended with status 7"))
        self.assertEqual(self.frames()[1:], [RESTORE, ProgramExit(7, "ended with status 7")])
        self.server.dataReceived(data_frames(b"late"))
        self.assertFalse(self.transport.disconnecting)  # a viewer that still writes would not read the end
        self.server.connectionLost()
        self.assertEqual(self.stage.program.typed, b"")
        self.assertEqual(self.stage.clock.getDelayedCalls(), [])

    def test_who_does_not_close_after_the_end_is_cut_off(self) -> None:
        self.ask()
        self.stage.hub.input_full(True)
        self.stage.hub.ended(ProgramExit(0))
        self.assertEqual(self.transport.producerState, "producing")  # else it would not be seen to close
        self.stage.clock.advance(PATIENCE_SECONDS - 0.1)
        self.assertFalse(self.transport.disconnecting)
        self.stage.clock.advance(0.1)
        self.assertTrue(self.transport.disconnecting)

    def test_a_viewer_that_goes_leaves_the_program_running(self) -> None:
        self.ask()
        self.server.connectionLost()
        self.assertEqual((self.stage.hub.viewers, self.stage.hub.over), (0, None))
        self.stage.hub.received(b"x")
        self.stage.hub.ended(ProgramExit(0))
        self.assertEqual(self.stage.clock.getDelayedCalls(), [])
