from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.audit.signing import SignedHead
from ironcurtain.audit.witness import FIRST_DELAY, LAST_SECONDS, LONGEST_DELAY, Witnesses, make_sinks
from ironcurtain.audit.witness_lines import head_line, read_heads, witness_file
from ironcurtain.errors import ConfigurationError, Unavailable
from ironcurtain.home.layout import Home
from ironcurtain.services.line_sinks import FileSink, JournalSink, LineSink, SyslogSink
from tests.audit.doubles import ManualThread, scratch


def head(number: int) -> SignedHead:
    return SignedHead("session-1", number, "ab", "now", "key", "sig")


class LineTests(SynchronousTestCase):
    def test_heads_are_read_back_from_any_log(self) -> None:
        lines = [head_line(head(1)), b"Nov 25 02:00:00 host ironcurtain[7]: " + head_line(head(2)), b"other\n", b"{}\n"]
        self.assertEqual(list(read_heads(lines)), [head(1), head(2)])

    @settings(deadline=None)
    @given(st.lists(st.binary() | st.binary().map(lambda end: b'{"session":"' + end)))
    def test_any_bytes_are_read(self, lines: list[bytes]) -> None:
        self.assertTrue(all(isinstance(each, SignedHead) for each in read_heads(lines)))


class ChoiceTests(SynchronousTestCase):
    def test_each_place_has_its_sink(self) -> None:
        directory = scratch(self)
        outside = f"file:{directory}/heads"
        sinks = make_sinks(Home(directory / "home", directory), (outside, "syslog", "journald"))
        self.assertEqual([type(sink) for sink in sinks.values()], [FileSink, SyslogSink, JournalSink])
        self.assertEqual((witness_file(outside), witness_file("syslog")), (directory / "heads", None))

    def test_a_file_in_the_home_is_no_witness(self) -> None:
        directory = scratch(self)
        home = Home(directory / "home", directory)
        home.path.mkdir()
        (directory / "link").symlink_to(home.path)
        for place in (home.path / "heads", directory / "link" / "heads", directory / "x" / ".." / "home" / "heads"):
            with self.assertRaisesRegex(ConfigurationError, "must be elsewhere"):
                make_sinks(home, (f"file:{place}",))


class SendingTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock, self.thread, self.told = Clock(), ManualThread(), list[str]()
        self.path, self.unsent = scratch(self) / "heads", scratch(self) / "unsent"

    def witnesses(self, sink: LineSink | None = None) -> Witnesses:
        chosen = sink or FileSink(self.path, b'{"session":"')
        writers = {"file:heads": lambda line: self.thread(lambda: chosen.write(line))}
        return Witnesses(writers, self.unsent, self.clock, self.told.append)

    def test_the_newest_head_is_sent_and_waited_for(self) -> None:
        witnesses = self.witnesses()
        for number in range(1, 5):
            witnesses.send(head(number))
        done = Deferred.fromCoroutine(witnesses.finish())
        self.assertNoResult(done)
        self.thread.run()
        self.assertNoResult(done)
        self.thread.run()
        self.successResultOf(done)
        self.assertEqual(list(read_heads(self.path.read_bytes().splitlines())), [head(1), head(4)])
        self.assertEqual((self.told, self.path.stat().st_mode & 0o777, self.clock.getDelayedCalls()), ([], 0o600, []))

    def test_one_that_cannot_be_reached_is_said_once_and_when_it_is_back(self) -> None:
        witnesses = self.witnesses()
        witnesses.send(head(1))
        self.thread.fail(Unavailable("no such disk"))
        witnesses.send(head(2))
        self.assertEqual(self.thread.waiting, [])
        self.clock.advance(FIRST_DELAY)
        self.thread.fail(Unavailable("no such disk"))
        self.assertEqual(len(self.told), 1)
        self.assertIn("file:heads cannot be reached (no such disk)", self.told[0])
        witnesses.send(head(3))
        self.clock.advance(2 * FIRST_DELAY)
        self.thread.run()
        self.assertEqual((len(self.told), "again" in self.told[-1]), (2, True))
        self.assertEqual(list(read_heads(self.path.read_bytes().splitlines())), [head(3)])
        self.assertEqual(list(self.unsent.iterdir()), [])
        self.successResultOf(Deferred.fromCoroutine(witnesses.finish()))

    def test_delays_grow_up_to_a_limit(self) -> None:
        witnesses = self.witnesses()
        witnesses.send(head(1))
        delays = []
        for _ in range(9):
            self.thread.fail(Unavailable("no such disk"))
            (call,) = self.clock.getDelayedCalls()
            delays.append(call.getTime() - self.clock.seconds())
            self.clock.advance(delays[-1])
        self.assertEqual(delays, [1, 2, 4, 8, 16, 32, LONGEST_DELAY, LONGEST_DELAY, LONGEST_DELAY])
        self.thread.run()
        self.successResultOf(Deferred.fromCoroutine(witnesses.finish()))

    def test_what_it_lacks_at_the_end_a_later_session_sends(self) -> None:
        witnesses = self.witnesses()
        witnesses.send(head(1))
        self.thread.fail(Unavailable("no such disk"))
        done = Deferred.fromCoroutine(witnesses.finish())
        self.thread.fail(Unavailable("no such disk"))
        self.successResultOf(done)
        self.assertEqual((len(self.told), self.clock.getDelayedCalls()), (1, []))
        later = self.witnesses()
        later.send(other := SignedHead("session-2", 9, "cd", "now", "key", "sig"))
        self.thread.run()
        self.thread.run()
        self.assertEqual(list(read_heads(self.path.read_bytes().splitlines())), [other, head(1)])
        self.assertEqual(list(self.unsent.iterdir()), [])
        self.successResultOf(Deferred.fromCoroutine(later.finish()))

    def test_one_that_does_not_answer_at_the_end_gets_the_head_later(self) -> None:
        witnesses = self.witnesses()
        witnesses.send(head(1))
        done = Deferred.fromCoroutine(witnesses.finish())
        self.clock.advance(LAST_SECONDS)
        self.successResultOf(done)
        (kept,) = self.unsent.iterdir()
        self.assertEqual(list(read_heads([kept.read_bytes()])), [head(1)])

    def test_heads_that_cannot_be_kept_disturb_nobody(self) -> None:
        self.unsent.write_text("in the way")
        witnesses = self.witnesses()
        witnesses.send(head(1))
        self.thread.fail(Unavailable("no such disk"))
        self.clock.advance(FIRST_DELAY)
        self.thread.run()
        self.successResultOf(Deferred.fromCoroutine(witnesses.finish()))
        self.assertEqual(list(read_heads(self.path.read_bytes().splitlines())), [head(1)])

    def test_the_end_does_not_wait_for_ever(self) -> None:
        witnesses = self.witnesses()
        witnesses.send(head(1))
        done = Deferred.fromCoroutine(witnesses.finish())
        self.clock.advance(LAST_SECONDS)
        self.successResultOf(done)
        self.assertIn("no answer", self.told[0])
        self.thread.run()
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_without_witnesses_nothing_is_waited_for(self) -> None:
        witnesses = Witnesses({}, self.unsent, self.clock, self.told.append)
        witnesses.send(head(1))
        self.successResultOf(Deferred.fromCoroutine(witnesses.finish()))
        self.assertEqual((self.thread.begun, self.clock.getDelayedCalls()), (0, []))
