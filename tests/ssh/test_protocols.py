"""A connection after the login: channels, windows and limits."""

from __future__ import annotations

import struct
from typing import Any

from twisted.conch.ssh.common import NS
from twisted.conch.ssh.connection import (
    MSG_CHANNEL_DATA,
    MSG_CHANNEL_OPEN_FAILURE,
    MSG_CHANNEL_WINDOW_ADJUST,
    MSG_GLOBAL_REQUEST,
    MSG_REQUEST_FAILURE,
)

from ironcurtain.ssh.protocols import CHANNELS
from tests.ssh.transports import TransportTestCase


class ConnectionTests(TransportTestCase):
    def open(self, made: Any, kind: bytes = b"session", window: int = 2**20, largest: int = 32768) -> list[int]:
        made.service.ssh_CHANNEL_OPEN(NS(kind) + struct.pack(">3L", 5, window, largest))
        return made.kinds()  # type: ignore[no-any-return]

    def run_it(self, made: Any, command: bytes, channel: int = 0) -> None:
        made.service.ssh_CHANNEL_REQUEST(struct.pack(">L", channel) + NS(b"exec") + b"\0" + NS(command))

    def test_only_so_many_sessions_and_nothing_else(self) -> None:
        made, _ = self.login()
        self.assertEqual(self.open(made, b"direct-tcpip"), [MSG_CHANNEL_OPEN_FAILURE])
        self.assertEqual(self.open(made, largest=0), [MSG_CHANNEL_OPEN_FAILURE])
        for _ in range(CHANNELS):
            self.assertNotIn(MSG_CHANNEL_OPEN_FAILURE, self.open(made))
        self.assertEqual(self.open(made), [MSG_CHANNEL_OPEN_FAILURE])

    def test_no_global_request_is_granted(self) -> None:
        made, _ = self.login()
        made.service.ssh_GLOBAL_REQUEST(NS(b"tcpip-forward") + b"\1" + NS(b"") + struct.pack(">L", 0))
        self.assertEqual(made.kinds(), [MSG_REQUEST_FAILURE])

    def test_a_peer_that_does_not_answer(self) -> None:
        made, wire = self.login()
        self.clock.advance(15)
        self.assertEqual(made.kinds(), [MSG_GLOBAL_REQUEST])
        made.service.ssh_REQUEST_FAILURE(b"")
        for _ in range(3):
            self.clock.advance(15)
        self.assertFalse(wire.disconnecting)
        self.clock.advance(15)
        self.assertTrue(wire.disconnecting)

    def test_new_keys_from_time_to_time(self) -> None:
        made, _ = self.login()
        made._timers["rekey"].reset(1)
        self.clock.advance(1)
        self.assertTrue(made.blocked)

    def test_no_more_than_the_window_is_sent(self) -> None:
        made, _ = self.login()
        self.open(made, window=100_000)
        self.run_it(made, b"bulk")
        (bulk,) = self.programs.bulk
        self.assertEqual(self.sizes(made), 100_000)
        made.service.ssh_CHANNEL_WINDOW_ADJUST(struct.pack(">2L", 0, 32768))
        self.assertEqual(self.sizes(made), 32768)
        self.assertLess(bulk.channel._queued, 40_000)

    def test_a_full_tcp_buffer_stops_everything(self) -> None:
        made, _ = self.login()
        made.pauseProducing()
        self.open(made)
        self.run_it(made, b"bulk")
        self.assertEqual(self.sizes(made), 0)
        made.resumeProducing()
        self.assertEqual(self.sizes(made), 2**20)

    def test_a_program_that_does_not_stop_is_ended(self) -> None:
        made, _ = self.login()
        self.open(made, window=0)
        self.run_it(made, b"speak")
        (speaker,) = self.programs.speakers
        speaker.channel.write(b"x" * (5 * 1024 * 1024))
        self.assertTrue(speaker.was_lost)
        self.assertLess(speaker.channel._queued, 1000)

    def test_a_program_that_holds_gets_no_more_than_the_window(self) -> None:
        made, _ = self.login()
        self.open(made)
        self.run_it(made, b"speak")
        (speaker,) = self.programs.speakers
        speaker.channel.hold(True)
        made.kinds()
        for _ in range(2):
            made.service.ssh_CHANNEL_DATA(struct.pack(">L", 0) + NS(b"x" * 30_000))
        self.assertNotIn(MSG_CHANNEL_WINDOW_ADJUST, made.kinds())
        speaker.channel.hold(False)
        self.assertEqual(made.kinds(), [MSG_CHANNEL_WINDOW_ADJUST])
        self.assertEqual(speaker.channel.localWindowLeft, 65536)

    def test_what_comes_before_the_program_is_bounded(self) -> None:
        made, _ = self.login()
        self.open(made)
        for _ in range(3):
            made.service.ssh_CHANNEL_DATA(struct.pack(">L", 0) + NS(b"x" * 30_000))
        self.assertNotIn(MSG_CHANNEL_WINDOW_ADJUST, made.kinds())
        self.assertTrue(made.service.channels[0].localClosed)

    def test_requests_that_cannot_be_read(self) -> None:
        made, _ = self.login()
        self.open(made)
        for name in (b"pty-req", b"window-change", b"env", b"exec", b"\xff", b"subsystem", b"x11-req", b"signal"):
            made.service.ssh_CHANNEL_REQUEST(struct.pack(">L", 0) + NS(name) + b"\0" + b"\0\0")
        self.assertEqual(self.programs.speakers, [])

    def test_sizes_that_no_terminal_has(self) -> None:
        made, _ = self.login()
        self.open(made)
        for columns, rows, wanted in ((0, 0, (80, 24)), (65535, 65535, (1000, 500)), (132, 43, (132, 43))):
            request = NS(b"xterm") + struct.pack(">4L", columns, rows, 0, 0) + NS(b"")
            made.service.ssh_CHANNEL_REQUEST(struct.pack(">L", 0) + NS(b"pty-req") + b"\0" + request)
            self.assertEqual(made.service.channels[0].size(), wanted)

    def test_only_the_colours_of_the_environment(self) -> None:
        made, _ = self.login()
        self.open(made)
        channel = made.service.channels[0]
        for name, value, wanted in (
            (b"LD_PRELOAD", b"x", 0),
            (b"COLORTERM", b"$(x)", 0),
            (b"LANG", b"C", 0),
            (b"COLORTERM", b"truecolor", 1),
        ):
            self.assertEqual(channel.requestReceived(b"env", NS(name) + NS(value)), wanted)
        self.assertEqual(dict(channel.environ), {"COLORTERM": "truecolor"})

    def sizes(self, made: Any) -> int:
        """:returns: bytes of data that were sent since the last time."""
        sent, made.sent = made.sent, []
        return sum(len(payload) - 8 for kind, payload in sent if kind == MSG_CHANNEL_DATA)
