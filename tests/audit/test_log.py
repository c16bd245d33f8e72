from __future__ import annotations

import os

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.audit import chain
from ironcurtain.audit.log import TEXT_LIMIT, AuditLog
from ironcurtain.audit.syncing import SYNC_SECONDS, InThread
from ironcurtain.errors import AuditUnavailable
from ironcurtain.secrets.redaction import Redactor
from tests.audit.doubles import ManualThread, at_once, open_files, scratch


class LogTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.path = scratch(self) / "audit.jsonl"

    def open(self, in_thread: InThread = at_once) -> AuditLog:
        return AuditLog(self.path, "session-1", Redactor(), self.clock, lambda: 1.5e9, in_thread)

    def close(self, log: AuditLog) -> None:
        self.successResultOf(Deferred.fromCoroutine(log.close()))

    def records(self) -> list[dict[str, object]]:
        found = [chain.read_record(line) for line in self.path.read_bytes().splitlines()]
        return [record for record in found if record is not None]

    def verify(self) -> chain.ChainReport:
        with open(self.path, "rb") as file:
            return chain.verify(file)


class WritingTests(LogTestCase):
    def test_a_record_is_in_the_file_before_append_returns(self) -> None:
        log = self.open()
        number = log.append("call", callId="c1", arguments={"path": "/workspace/a"})
        last = self.records()[-1]
        self.assertEqual((last["sequence"], last["kind"], last["callId"]), (number, "call", "c1"))
        self.assertEqual(last["arguments"], {"path": "/workspace/a"})
        self.assertEqual(log.head, self.verify().head)

    def test_several_records_at_once_are_links_of_the_chain(self) -> None:
        log = self.open()
        number = log.extend(
            (("outcome", {"callId": "c1"}), ("call", {"callId": "c2", "tool": "Bearer abcdefghijklmnop"}))
        )
        self.assertEqual(log.append("end"), number + 1)
        self.assertEqual([record["kind"] for record in self.records()], ["begin", "outcome", "call", "end"])
        self.assertEqual((self.verify().problems, self.records()[2]["tool"]), ([], "[redacted authorization]"))

    def test_the_first_record_names_version_and_session(self) -> None:
        self.open()
        (begin,) = self.records()
        self.assertEqual(
            begin,
            {
                "sequence": 1,
                "time": "2017-07-14T02:40:00.000Z",
                "kind": "begin",
                "version": chain.UNSIGNED_VERSION,
                "session": "session-1",
                "previous": chain.START,
            },
        )

    def test_the_file_is_for_its_owner_only(self) -> None:
        old = os.umask(0)
        self.addCleanup(os.umask, old)
        self.open()
        self.assertEqual(self.path.stat().st_mode & 0o7777, 0o600)

    def test_values_that_are_no_text_or_number_keep_the_chain_readable(self) -> None:
        log = self.open()
        log.append("call", arguments={"cut \ud83d": ["\udce9", float("nan"), 2**70, -(2**70)]})
        log.append("end")
        self.assertEqual(self.verify().problems, [])
        self.assertEqual(self.records()[1]["arguments"], {"cut \\ud83d": ["\\udce9", None, 2**70, -(2**70)]})

    def test_long_texts_are_cut(self) -> None:
        log = self.open()
        log.append("call", arguments={"content": "ä" * (TEXT_LIMIT + 5)})
        (content,) = self.records()[-1]["arguments"].values()  # type: ignore[attr-defined]
        self.assertEqual(content, "ä" * TEXT_LIMIT + "[5 more characters]")

    def test_what_cannot_be_written_down_leaves_the_chain_whole(self) -> None:
        log = self.open()
        with self.assertRaises(TypeError):
            log.append("call", arguments=object())
        log.append("end")
        self.assertEqual(self.verify().problems, [])

    def test_nothing_can_be_written_after_closing(self) -> None:
        log = self.open()
        self.close(log)
        self.close(log)
        with self.assertRaisesRegex(AuditUnavailable, "closed"):
            log.append("call")
        self.assertEqual(self.clock.getDelayedCalls(), [])


class OpeningTests(LogTestCase):
    def refused(self, message: str) -> None:
        before = open_files(alone=True)
        with self.assertRaisesRegex(AuditUnavailable, message):
            self.open()
        self.assertEqual(open_files(), before)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_a_log_is_continued(self) -> None:
        for number in range(3):
            log = self.open()
            log.append("call", callId=f"c{number}")
            self.close(log)
        self.assertEqual(self.verify().problems, [])
        kinds = [record["kind"] for record in self.records()]
        self.assertEqual(kinds, ["begin", "call", "resumed", "call", "resumed", "call"])

    def test_a_last_line_longer_than_one_read_is_continued(self) -> None:
        log = self.open()
        log.append("call", arguments=["x" * TEXT_LIMIT] * 3)
        self.close(log)
        self.close(self.open())
        self.assertEqual((self.verify().problems, self.verify().records), ([], 3))

    def test_a_newer_version_is_refused_and_left_alone(self) -> None:
        line = (
            chain.make_line(1, chain.timestamp(0.0), "begin", {"version": chain.FORMAT_VERSION + 1}, chain.START)
            + b"\n"
        )
        self.path.write_bytes(line)
        self.refused("format version 3: use a newer ironcurtain")
        self.assertEqual(self.path.read_bytes(), line)

    def test_a_link_is_not_followed(self) -> None:
        target = self.path.with_name("target")
        self.path.symlink_to(target)
        self.refused("cannot open")
        self.assertFalse(target.exists())

    def test_what_is_no_file_is_refused(self) -> None:
        os.mkfifo(self.path)
        self.refused("not a regular file")
        self.path.unlink()
        self.path.mkdir()
        self.refused("cannot open")


class RecoveryTests(LogTestCase):
    def torn_at(self, whole: bytes, cut: int) -> None:
        self.path.write_bytes(whole[:cut])
        log = self.open()
        log.append("call", callId="after")
        self.close(log)

    def written(self) -> bytes:
        log = self.open()
        log.append("call", callId="c1", arguments={"text": "grün"})
        log.append("outcome", callId="c1", status="success")
        self.close(log)
        return self.path.read_bytes()

    def test_a_line_torn_anywhere_is_sealed(self) -> None:
        whole = self.written()
        ends = {0, *(place + 1 for place, byte in enumerate(whole) if byte == 0x0A)}
        for cut in range(len(whole)):
            self.torn_at(whole, cut)
            report, kinds = self.verify(), [record["kind"] for record in self.records()]
            self.assertEqual(report.problems, [], f"cut at {cut}")
            self.assertEqual("recovered" in kinds, cut not in ends, f"cut at {cut}")
            self.assertTrue(self.path.read_bytes().startswith(whole[:cut]), f"cut at {cut}")

    def test_a_recovery_torn_anywhere_is_sealed_too(self) -> None:
        whole = self.written()
        self.path.write_bytes(whole[:-20])
        self.close(self.open())
        recovered = self.path.read_bytes()
        for cut in range(len(whole) - 20, len(recovered)):
            self.torn_at(recovered, cut)
            self.assertEqual(self.verify().problems, [], f"cut at {cut}")

    def test_a_recovery_accounts_for_each_torn_line(self) -> None:
        whole = self.written()
        self.torn_at(whole[:-20] + b'\n{"sequence":4,"ki', len(whole))
        lines = self.path.read_bytes().splitlines(keepends=True)
        self.assertEqual(chain.verify(lines).recovered, 1)
        torn = [index for index, line in enumerate(lines) if chain.read_record(line[:-1]) is None]
        self.assertEqual(len(torn), 2)
        for index in torn:
            self.assertFalse(chain.verify(lines[:index] + lines[index + 1 :]).intact)
            self.assertFalse(chain.verify([*lines[:index], b"{}\n", *lines[index:]]).intact)
            self.assertFalse(chain.verify([*lines[:index], b"x" + lines[index], *lines[index + 1 :]]).intact)

    def test_the_recovery_says_how_much_was_torn(self) -> None:
        whole = self.written()
        self.torn_at(whole, len(whole) - 20)
        lines = whole[:-20].split(b"\n")
        recovered = next(record for record in self.records() if record["kind"] == "recovered")
        self.assertEqual(recovered["tornBytes"], len(lines[-1]))
        self.assertEqual(recovered["tornDigest"], chain.digest(lines[-1]))
        self.assertEqual(recovered["sequence"], 3)


class DurabilityTests(LogTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.thread = ManualThread()

    def test_one_sync_covers_all_that_was_written_before_it_began(self) -> None:
        log = self.open(self.thread)
        first = [log.durable(log.append("call")) for _ in range(100)]
        self.assertEqual(self.thread.begun, 1)
        self.thread.run()
        self.assertEqual(sum(done.called for done in first), 1)
        self.thread.run()
        for done in first:
            self.successResultOf(done)
        self.assertEqual((self.thread.begun, self.thread.waiting), (2, []))

    def test_what_is_written_during_a_sync_waits_for_the_next(self) -> None:
        log = self.open(self.thread)
        early = log.durable(log.append("call"))
        late = log.durable(log.append("call"))
        self.thread.run()
        self.successResultOf(early)
        self.assertNoResult(late)
        self.thread.run()
        self.successResultOf(late)

    def test_what_is_on_disk_needs_no_sync(self) -> None:
        log = self.open(self.thread)
        number = log.append("call")
        log.durable(number)
        self.thread.run()
        self.successResultOf(log.durable(number))
        self.assertEqual(self.thread.begun, 1)

    def test_records_nobody_waits_for_are_synced_within_a_second(self) -> None:
        log = self.open(self.thread)
        number = log.append("call")
        self.clock.advance(SYNC_SECONDS)
        self.thread.run()
        self.successResultOf(log.durable(number))
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_closing_waits_for_the_disk(self) -> None:
        log = self.open(self.thread)
        first = log.durable(log.append("call"))
        log.append("end")
        closing = Deferred.fromCoroutine(log.close())
        self.thread.run()
        self.successResultOf(first)
        self.assertNoResult(closing)
        self.thread.run()
        self.successResultOf(closing)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_a_waiter_that_goes_away_harms_nobody(self) -> None:
        log = self.open(self.thread)
        gone, stays = log.durable(log.append("call")), log.durable(1)
        gone.addErrback(lambda _: None)
        gone.cancel()
        self.thread.run()
        self.successResultOf(stays)

    def test_closing_that_is_given_up_leaves_no_descriptor(self) -> None:
        before = open_files(alone=True)
        closing = Deferred.fromCoroutine(self.open(self.thread).close())
        closing.addErrback(lambda _: None)
        closing.cancel()
        self.assertEqual(open_files(), before)
        self.assertEqual(self.clock.getDelayedCalls(), [])
