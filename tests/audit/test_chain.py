from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.audit import chain

TEXTS = st.text(st.characters(), max_size=12)
"""Halves of surrogate pairs among them: no text, but an agent may send one."""

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
RECORDS = st.lists(
    st.tuples(st.sampled_from(("call", "decision", "outcome", "end")), st.dictionaries(st.just("arguments"), VALUES)),
    max_size=5,
)


def make_lines(records: list[tuple[str, dict[str, Any]]]) -> list[bytes]:
    lines, previous = [], chain.START
    for number, (kind, fields) in enumerate([("begin", {"version": chain.FORMAT_VERSION}), *records], 1):
        line = chain.make_line(number, chain.timestamp(1.5e9 + number), kind, fields, previous)
        previous = chain.digest(line)
        lines.append(line + b"\n")
    return lines


def check(data: bytes) -> chain.ChainReport:
    return chain.verify(data.splitlines(keepends=True) if b"\r" not in data else _split(data))


def _split(data: bytes) -> list[bytes]:
    return [part + b"\n" for part in data.split(b"\n")[:-1]] + ([data.rsplit(b"\n")[-1]] if data[-1:] != b"\n" else [])


class VerifyTests(SynchronousTestCase):
    @settings(deadline=None)
    @given(RECORDS)
    def test_what_was_written_verifies(self, records: list[tuple[str, dict[str, Any]]]) -> None:
        lines = make_lines(records)
        report = chain.verify(lines)
        self.assertEqual(report.problems, [])
        self.assertEqual(report.records, len(lines))
        self.assertEqual(report.head, chain.digest(lines[-1][:-1]))
        self.assertEqual(report.ended, bool(records) and records[-1][0] == "end")

    @settings(deadline=None)
    @given(RECORDS, st.data())
    def test_a_changed_byte_is_found(self, records: list[tuple[str, dict[str, Any]]], data: st.DataObject) -> None:
        """In the last line by its digest alone: nothing follows that could vouch for it."""
        lines = make_lines(records)
        whole = bytearray(b"".join(lines))
        place = data.draw(st.integers(0, len(whole) - 1))
        whole[place] = data.draw(st.integers(0, 255).filter(lambda byte: byte != whole[place]))
        report = check(bytes(whole))
        if place < len(whole) - len(lines[-1]):
            self.assertFalse(report.intact)
        else:
            self.assertTrue(not report.intact or report.head != chain.verify(lines).head)

    @settings(deadline=None)
    @given(RECORDS, st.data())
    def test_a_removed_or_inserted_byte_is_found(
        self, records: list[tuple[str, dict[str, Any]]], data: st.DataObject
    ) -> None:
        lines = make_lines(records)
        whole = b"".join(lines)
        place = data.draw(st.integers(0, len(whole) - 1))
        inserted = bytes([data.draw(st.integers(0, 255))])
        for changed in (whole[:place] + whole[place + 1 :], whole[:place] + inserted + whole[place:]):
            if changed != whole:
                report = check(changed)
                self.assertTrue(not report.intact or report.head != chain.verify(lines).head)
                self.assertTrue(not report.intact or place >= len(whole) - len(lines[-1]))

    @settings(deadline=None)
    @given(RECORDS.filter(bool), st.data())
    def test_removed_inserted_and_swapped_lines_are_found(
        self, records: list[tuple[str, dict[str, Any]]], data: st.DataObject
    ) -> None:
        lines = make_lines(records)
        one = data.draw(st.integers(0, len(lines) - 2))
        other = data.draw(st.integers(0, len(lines) - 1).filter(lambda index: index != one))
        swapped = list(lines)
        swapped[one], swapped[other] = swapped[other], swapped[one]
        foreign = data.draw(st.sampled_from((lines[one], b"\n", b"{}\n", b"garbage\n", b'{"kind":"end"}\n')))
        inserted = [*lines[:other], foreign, *lines[other:]]
        for changed in (lines[:one] + lines[one + 1 :], inserted, swapped, [*lines, foreign]):
            self.assertFalse(chain.verify(changed).intact)

    @settings(deadline=None)
    @given(RECORDS.filter(bool), st.data())
    def test_lines_cut_off_the_end_show_in_the_head(
        self, records: list[tuple[str, dict[str, Any]]], data: st.DataObject
    ) -> None:
        lines = make_lines(records)
        report = chain.verify(lines[: data.draw(st.integers(1, len(lines) - 1))])
        self.assertTrue(report.intact)
        self.assertNotEqual(report.head, chain.verify(lines).head)

    def test_no_record_at_all_is_a_problem(self) -> None:
        self.assertFalse(chain.verify([]).intact)

    def test_a_newer_version_is_a_problem(self) -> None:
        line = chain.make_line(1, chain.timestamp(0.0), "begin", {"version": chain.FORMAT_VERSION + 1}, chain.START)
        (problem,) = chain.verify([line + b"\n"]).problems
        self.assertIn("version 3", problem.what)

    def test_numbers_go_up_by_one(self) -> None:
        """Somebody who forges the digests too is caught where a number is missing or comes twice."""
        first = make_lines([])[0]
        for number in (1, 3):
            forged = chain.make_line(number, chain.timestamp(1.5e9), "call", {}, chain.digest(first[:-1]))
            (problem,) = chain.verify([first, forged + b"\n"]).problems
            self.assertEqual(problem.what, f"has number {number}, expected 2")

    def test_problems_name_their_lines(self) -> None:
        lines = make_lines([("call", {}), ("outcome", {}), ("end", {})])
        lines[1] = lines[1].replace(b"call", b"cell")
        self.assertEqual([problem.line for problem in chain.verify(lines).problems], [3])

    def test_a_torn_end_is_named(self) -> None:
        lines = make_lines([("call", {})])
        (problem,) = chain.verify([lines[0], lines[1][:-1]]).problems
        self.assertEqual((problem.line, "incomplete" in problem.what), (2, True))

    @settings(deadline=None)
    @given(st.binary(max_size=200))
    def test_any_bytes_are_read_without_a_crash(self, data: bytes) -> None:
        self.assertFalse(check(data).intact)

    def test_deep_nesting_is_no_record(self) -> None:
        depth = 100_000
        self.assertIsNone(chain.read_record(b'{"sequence":1,"kind":"x","a":' + b"[" * depth + b"]" * depth + b"}"))
