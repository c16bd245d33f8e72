from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.audit import chain
from ironcurtain.audit.checkpoints import SIGN_SECONDS, SIGNED_RECORDS
from ironcurtain.audit.log import AuditLog
from ironcurtain.audit.signing import SignedHead, SigningKey
from ironcurtain.audit.verification import DESCRIPTION, Expected, LogReport, verify_lines, verify_log
from ironcurtain.secrets.redaction import Redactor
from tests.audit.doubles import at_once, scratch

SESSION = "session-1"
NAME = "file:w"


class SignedLogTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.directory = scratch(self)
        self.path = self.directory / "audit.jsonl"
        self.key = SigningKey.load_or_make(self.directory / "audit")
        self.heads: list[SignedHead] = []
        self.expected = Expected(SESSION, key=self.key.public)

    def open(self, session: str = SESSION, path: Path | None = None, key: SigningKey | None = None) -> AuditLog:
        now = self.clock.seconds
        return AuditLog(
            path or self.path, session, Redactor(), self.clock, now, at_once, key or self.key, self.heads.append
        )

    def close(self, log: AuditLog) -> None:
        self.successResultOf(Deferred.fromCoroutine(log.close()))
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def write(self, calls: int = 3, session: str = SESSION, path: Path | None = None, end: bool = True) -> None:
        log = self.open(session, path)
        for number in range(calls):
            log.append("call", callId=f"c{number}")
        if end:
            log.append("end", reason="")
        self.close(log)

    def lines(self) -> list[bytes]:
        return self.path.read_bytes().splitlines(keepends=True)

    def kinds(self) -> list[str]:
        return [json.loads(line)["kind"] for line in self.lines()]

    def check(self, lines: list[bytes] | None = None, **changed: Any) -> LogReport:
        expected = replace(self.expected, **changed)
        return verify_log(self.path, expected) if lines is None else verify_lines(lines, expected)

    def assertNamed(self, report: LogReport, line: int, words: str) -> None:
        self.assertFalse(report.intact)
        self.assertEqual((report.problems[0].line, words in report.problems[0].what), (line, True), report.problems)

    def rechained(self, lines: list[bytes]) -> list[bytes]:
        """What somebody without the key can do: write a chain anew that fits together."""
        made, previous = list[bytes](), chain.START
        for number, line in enumerate(lines, 1):
            record = json.loads(line)
            fields = {n: v for n, v in record.items() if n not in ("sequence", "time", "kind", "previous")}
            new = chain.make_line(number, record["time"], record["kind"], fields, previous)
            previous = chain.digest(new)
            made.append(new + b"\n")
        self.assertEqual(chain.verify(made).problems, [])
        return made


class SigningTests(SignedLogTestCase):
    def test_start_and_end_are_signed(self) -> None:
        self.write()
        self.assertEqual(self.kinds(), ["begin", "checkpoint", "call", "call", "call", "end", "checkpoint"])
        report = self.check(ended=True)
        self.assertEqual((report.problems, report.version, report.chain.ended), ([], chain.FORMAT_VERSION, True))
        self.assertEqual(list(report.proofs()), ["Records 1 to 7 are as they were signed at 1970-01-01T00:00:00.000Z."])
        self.assertEqual(self.heads[-1].head, chain.digest(self.lines()[5][:-1]))

    def test_decisions_are_signed_at_once(self) -> None:
        log = self.open()
        number = log.append("decision", callId="c1", outcome="approved", by="ana")
        self.assertEqual((self.kinds()[-2:], number), (["decision", "checkpoint"], 3))
        self.close(log)

    def test_many_records_are_signed(self) -> None:
        log = self.open()
        for _ in range(2 * SIGNED_RECORDS):
            log.append("call")
        log.extend([("outcome", {}), ("call", {})] * SIGNED_RECORDS)
        self.assertEqual(self.kinds().count("checkpoint"), 4)
        self.assertEqual(self.check().problems, [])
        self.close(log)

    def test_a_record_is_signed_after_a_while(self) -> None:
        log = self.open()
        log.append("call")
        self.clock.advance(SIGN_SECONDS - 1)
        self.assertEqual(self.kinds()[-1], "call")
        (sentence,) = [text for text in self.check().proofs() if "last signature" in text]
        self.assertEqual(sentence, "1 record after the last signature is chained, but not signed.")
        self.clock.advance(1)
        self.assertEqual(self.kinds()[-2:], ["call", "checkpoint"])
        self.clock.pump([SIGN_SECONDS] * 3)
        self.assertEqual(self.kinds().count("checkpoint"), 2)
        log.append("call")
        self.close(log)

    def test_a_log_of_the_version_without_signatures_is_refused_also_when_continued(self) -> None:
        log = AuditLog(self.path, SESSION, Redactor(), self.clock, self.clock.seconds, at_once)
        log.append("call")
        log.append("end")
        self.close(log)
        report = self.check(ended=True)
        self.assertNamed(report, 1, "without signatures")
        self.assertEqual((report.version, len(report.problems)), (chain.UNSIGNED_VERSION, 1))
        self.assertNamed(self.check(key=None), 1, "without signatures")
        self.write()
        self.assertNamed(self.check(), 1, "without signatures")

    def test_what_was_not_signed_before_a_crash_stays_unproved(self) -> None:
        log = self.open()
        log.append("call", callId="c1")
        self.close(log)
        self.write()
        report = self.check()
        self.assertEqual((report.problems, report.unsigned, report.unproved), ([], [(3, 3)], 1))
        self.assertIn("Records 3 to 3 had no signature", list(report.proofs())[1])

    def test_a_crash_anywhere_is_no_forgery(self) -> None:
        self.write(1)
        whole = self.path.read_bytes()
        for cut in range(0, len(whole), 7):
            self.path.write_bytes(whole[:cut])
            self.close(self.open())
            self.assertEqual(self.check().problems, [], f"cut at {cut}")

    def test_another_key_is_named(self) -> None:
        self.write()
        other = SigningKey.load_or_make(self.directory / "other").public
        self.assertNamed(self.check(key=other), 2, self.key.public.id)
        self.assertNamed(self.check(key=None), 2, "--key")


class TamperingTests(SignedLogTestCase):
    """What somebody can do who can write the file, but not sign."""

    def test_another_sessions_log(self) -> None:
        self.write(session="session-2")
        self.assertNamed(self.check(), 1, "belongs to session session-2")

    def test_a_symbolic_link(self) -> None:
        self.write()
        self.path.rename(self.directory / "moved")
        self.path.symlink_to(self.directory / "moved")
        self.assertNamed(self.check(), 1, "symbolic link")

    def test_a_log_that_is_gone(self) -> None:
        self.assertNamed(self.check(), 1, "is missing")
        self.path.mkdir()
        self.assertNamed(self.check(), 1, "cannot be read")

    def test_a_chain_written_anew_without_some_records(self) -> None:
        self.write(40)
        lines = self.lines()
        self.assertNamed(self.check(self.rechained(lines[:10] + lines[30:])), 24, "wrong signature: records 3 to 23")

    def test_a_chain_written_anew_without_signatures(self) -> None:
        self.write()
        unsigned = [line for line in self.lines() if b'"checkpoint"' not in line]
        self.assertNamed(self.check(self.rechained(unsigned)), 2, "without a signature")

    def test_an_end_or_a_decision_without_its_signature(self) -> None:
        """Cut the last signature and what precedes it, and chain another end."""
        self.write()
        lines = self.lines()
        for kind in ("end", "decision", "permission", "permission-revoked"):
            forged = json.dumps({"kind": kind, "time": "", "outcome": "approved"}).encode()
            for kept in (2, 3, 4):
                cut = self.rechained([*lines[:kept], forged])
                self.assertNamed(self.check(cut), kept + 2, f"written together with '{kind}'")
                self.assertNamed(self.check(cut, ended=True), kept + 2, f"written together with '{kind}'")
                more = self.rechained([*lines[:kept], forged, lines[2]])
                self.assertNamed(self.check(more), kept + 2, f"follows '{kind}' without a signature")

    def test_a_forged_end_that_was_continued_stays_unproved(self) -> None:
        self.write()
        forged = json.dumps({"kind": "end", "time": ""}).encode()
        self.path.write_bytes(b"".join(self.rechained([*self.lines()[:3], forged])))
        self.write()
        report = self.check()
        self.assertEqual((report.unsigned, report.unproved), ([(3, 4)], 2))

    def test_another_end_than_the_description_has(self) -> None:
        """Cut to an earlier end, which is signed."""
        self.write()
        first = self.lines()
        self.write()
        lines = self.lines()
        last = SignedHead(SESSION, len(lines), chain.digest(lines[-1][:-1]), "", "")
        self.assertEqual(self.check(heads={DESCRIPTION: [last]}).problems, [])
        self.assertEqual(self.check(heads={DESCRIPTION: [last]}).witnessed_through, 0)
        self.assertNamed(self.check(first, heads={DESCRIPTION: [last]}), len(first) + 1, "session.json has the head")

    def test_an_older_signature_is_no_newer_one(self) -> None:
        self.write()
        lines = self.lines()
        self.assertNamed(self.check(self.rechained([*lines[:4], lines[1]])), 5, "wrong signature")

    def test_appended_after_the_end(self) -> None:
        self.write()
        for extra in ("call", "policy", "end"):
            more = self.rechained([*self.lines(), json.dumps({"kind": extra, "time": ""}).encode()])
            self.assertNamed(self.check(more), 8, "after the end")
        resumed = json.dumps({"kind": "resumed", "time": "", "session": SESSION}).encode()
        self.assertNamed(self.check(self.rechained([*self.lines(), resumed])), 9, "written together with 'resumed'")
        call = json.dumps({"kind": "call", "time": ""}).encode()
        self.assertNamed(self.check(self.rechained([*self.lines(), resumed, call])), 9, "without a signature")

    def test_cut_after_its_end(self) -> None:
        self.write()
        lines = self.lines()
        self.assertNamed(self.check(lines[:1]), 2, "written together with 'begin'")
        for cut in range(2, 6):
            self.assertNamed(self.check(lines[:cut], ended=True), cut + 1, "the log has no end")
            self.assertTrue(self.check(lines[:cut]).intact)
            self.assertIn("unless a witness", list(self.check(lines[:cut]).proofs())[-1])

    def test_a_signature_with_more_members(self) -> None:
        self.write()
        lines = self.lines()
        lines[-1] = lines[-1].replace(b'"kind"', b'"more":1,"kind"')
        self.assertNamed(self.check(lines), 7, "is not a signature")

    def test_only_what_precedes_the_first_bad_record_is_proved(self) -> None:
        log = self.open()
        for number in range(6):
            log.append("decision", callId=f"c{number}")
        lines = self.lines()
        lines[6] = lines[6].replace(b'"c2"', b'"c9"')
        report = self.check(lines)
        self.assertNamed(report, 8, "does not follow")
        self.assertEqual(report.signed_through, 6)
        self.assertIn("line 8", list(report.proofs())[-1])
        self.close(log)

    @settings(deadline=None)
    @given(st.data())
    def test_no_change_of_what_is_signed_passes(self, data: st.DataObject) -> None:
        if not self.path.exists():
            self.write(12)
        lines = self.lines()
        index = data.draw(st.integers(0, len(lines) - 2))
        record = json.loads(lines[index])
        name = data.draw(st.sampled_from(sorted(record)))
        record[name] = data.draw(st.text().filter(lambda text: text != record[name]))
        changed = [*lines[:index], json.dumps(record).encode() + b"\n", *lines[index + 1 :]]
        self.assertFalse(self.check(changed).intact)

    @settings(deadline=None)
    @given(st.lists(st.binary(max_size=80) | st.sampled_from((b'{"sequence":1,"kind":"checkpoint"}', b"{}"))))
    def test_any_bytes_are_judged(self, lines: list[bytes]) -> None:
        self.assertFalse(self.check([line + b"\n" for line in lines]).intact)


class WitnessedTests(SignedLogTestCase):
    def test_the_same_head_is_said(self) -> None:
        self.write()
        report = self.check(heads={NAME: self.heads})
        self.assertEqual((report.problems, report.witnessed_through), ([], 6))
        self.assertIn("The witness has the same head of record 6.", list(report.proofs()))

    def test_a_chain_that_was_replaced(self) -> None:
        """By somebody who has the key as well."""
        self.write()
        seen = list(self.heads)
        self.path.unlink()
        self.write(4)
        self.assertTrue(self.check().intact)
        self.assertNamed(self.check(heads={NAME: seen}), 7, "the witness has another digest (file:w, ")

    def test_a_chain_that_was_cut(self) -> None:
        self.write()
        for cut in (2, 5):
            lines = self.lines()[:cut]
            self.assertTrue(self.check(lines).intact)
            self.assertNamed(self.check(lines, heads={NAME: self.heads}), cut + 1, "the log ends at")

    def test_a_cut_last_record(self) -> None:
        self.write()
        self.assertEqual(self.check(self.lines()[:6], heads={NAME: self.heads}).witnessed_through, 6)

    def test_a_witness_without_heads_proves_nothing(self) -> None:
        self.write()
        self.assertNamed(self.check(heads={NAME: []}, required=frozenset((NAME,))), 8, "no head of this session")

    def test_a_witness_that_the_log_names_must_have_the_end(self) -> None:
        now = self.clock.seconds
        log = AuditLog(
            *(self.path, SESSION, Redactor(), self.clock, now, at_once, self.key, self.heads.append), witnesses=(NAME,)
        )
        log.append("end")
        self.close(log)
        report = self.check(heads={NAME: self.heads})
        self.assertEqual((report.problems, report.witnesses, report.witnessed_through), ([], {NAME}, 3))
        self.assertNamed(self.check(heads={NAME: self.heads[:1]}), 5, "has no head after record 1")
        self.assertNamed(self.check(heads={NAME: []}), 5, "no head of this session")
        self.assertEqual(self.check(heads={"file:other": []}).problems, [])
        self.assertEqual(self.check(self.lines()[:2], heads={NAME: self.heads[:1]}).problems, [])
