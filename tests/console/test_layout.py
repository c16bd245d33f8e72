"""Frames: as large as the screen, and with the essential on the first one."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.console.details import Details
from ironcurtain.console.keys import enter, press
from ironcurtain.console.layout import Frame, frame
from ironcurtain.console.rows import row
from ironcurtain.console.state import ConsoleState, Section, key_of
from ironcurtain.escalation.model import Outcome
from ironcurtain.operations.model import EscalationView
from ironcurtain.text.columns import cells, unstyled
from ironcurtain.view.escalations import outcome_of_all
from tests.console.doubles import NOW, escalation, session

NASTY = "\x1b]0;owned\x07\u202e\u200b\x9b2J" + "漢" * 40 + "\n" * 5


def lines(picture: Frame) -> list[str]:
    """:returns: a frame without styles."""
    return [unstyled(line) for line in picture.lines]


def decision(number: int) -> EscalationView:
    """:returns: an escalation that was decided, the later the greater its number."""
    return escalation(number, outcome="denied", by="grace", closed_at=NOW - 1000 + number)


class SizeTests(SynchronousTestCase):
    """Any terminal."""

    @given(
        st.integers(1, 220),
        st.integers(1, 60),
        st.integers(0, 9),
        st.lists(st.sampled_from(["a", "y", "tab", "?", "/", "page down", "j", "enter", "m"]), max_size=6),
    )
    def test_a_frame_has_the_size_of_the_screen(self, columns: int, rows: int, count: int, keys: list[str]) -> None:
        nasty = dict.fromkeys(("label", "rule", "reason", "server", "tool", "by"), NASTY)
        arguments = {"path": NASTY, "text": NASTY * 9, NASTY: [NASTY]}
        views = [escalation(n, arguments, **nasty, outcome="denied" if n % 3 == 2 else "") for n in range(count)]
        state = ConsoleState().news([session(n, label=NASTY) for n in range(3)], views, NOW)
        for key in keys:
            picture = frame(state, Details(), columns, rows, NOW, NASTY)
            state, _ = press(state.drawn(picture.shown, 0.0), key, 0.0)
        picture = frame(state, Details(), columns, rows, NOW, NASTY)
        self.assertEqual(len(picture.lines), rows)
        self.assertEqual([line for line in lines(picture) if cells(line) > columns or not line.isprintable()], [])
        if picture.cursor is not None:
            self.assertTrue(picture.cursor[0] < columns and picture.cursor[1] < rows)

    def test_text_on_too_few_columns_does_not_count_as_shown(self) -> None:
        """Its lines are cut: what stands at their ends was never on the screen."""
        state = ConsoleState().news([session()], [escalation(1)], NOW)
        shown = {columns: frame(state, Details(), columns, 40, NOW).shown.whole for columns in (1, 10, 11)}
        self.assertEqual(shown, {1: None, 10: None, 11: key_of(state.pending[0])})


class FirstScreenTests(SynchronousTestCase):
    """What is there without scrolling, on 80 columns and 24 rows."""

    def test_everything_that_a_decision_needs(self) -> None:
        busy = [session(number, label=f"codex: task {number}") for number in range(1, 9)]
        arguments = {"path": "/home/ada/notes.txt", "content": "line\n" * 4000, "mode": 7, "force": True, "last": None}
        views = [escalation(number, arguments, tool="write_file", reason="why " * 200) for number in range(1, 30)]
        state = ConsoleState().news(busy, [*views, escalation(40, outcome="denied", by="grace", closed_at=NOW)], NOW)
        text = "\n".join(lines(frame(state, Details(), 80, 24, NOW)))
        for part in (
            "filesystem.write_file", "session 1, builtin: mend the tests", "path = /home/ada/notes.txt",
            "(20,000 characters, below)", "mode = 7", "force = true", "and 1 more arguments", "digest 0000000000000000",
            "rule   outside-the-workspace: why why", "4:59 left", "a approve", "d deny", "8 sessions", "29 waiting",
        ):  # fmt: skip
            self.assertIn(part, text)

    def test_what_is_out_of_sight_is_counted(self) -> None:
        state = ConsoleState().news([], [escalation(number) for number in range(30)], NOW)
        self.assertIn("WAITING 30, 21 not shown", "\n".join(lines(frame(state, Details(), 80, 24, NOW))))

    def test_whose_sessions_the_lists_lack_stands_above_the_keys(self) -> None:
        lacking = ("Without 2 sessions of build-3, which is lost: it was heard last at 12:00:00.", "Without 1 of desk.")
        state = msgspec.structs.replace(ConsoleState().news([session()], [escalation(1)], NOW), lacking=lacking)
        for columns in (80, 120):
            for message in ("", "approved"):
                foot = " ".join(lines(frame(state.with_message(message), Details(), columns, 24, NOW))[-5:])
                for words in (*lacking, message):
                    self.assertIn(words, " ".join(foot.split()))

    def test_what_a_filter_hides_is_counted(self) -> None:
        state = ConsoleState().news([], [escalation(number) for number in range(5)], NOW)
        state, _ = enter(state, "/filter file3", 0.0)
        self.assertIn("filter: file3 (4 waiting hidden)", lines(frame(state, Details(), 80, 24, NOW))[0])


class SpareRowsTests(SynchronousTestCase):
    """Rows that the text does not need."""

    @given(
        st.sampled_from([(80, 24), (60, 17), (100, 40), (160, 24)]),
        st.integers(0, 12),
        st.integers(0, 30),
        st.integers(0, 60),
        st.integers(1, 40),
        st.sampled_from(["", "\t", "\t\t"]),
    )
    def test_none_is_blank_while_a_row_of_a_shown_list_is_out_of_sight(
        self, size: tuple[int, int], sessions: int, waiting: int, decided: int, length: int, keys: str
    ) -> None:
        text = "\n".join(str(number) for number in range(length))
        views = [escalation(number, {"text": text}) for number in range(1, waiting + 1)]
        views += [decision(number) for number in range(100, 100 + decided)]
        state = ConsoleState().news([session(number) for number in range(1, sessions + 1)], views, NOW)
        for _ in keys:
            state, _ = press(state, "tab", 0.0)
        shown = lines(frame(state, Details(), *size, NOW))
        if any("not shown" in line for line in shown):
            width = 64 if size[0] >= 120 else size[0]
            self.assertEqual([line for line in shown[1:-3] if not line[:width].strip()], [])

    @given(st.integers(1, 12), st.integers(1, 30), st.integers(0, 60), st.integers(1, 40))
    def test_the_text_of_a_call_gives_up_none_that_it_needs(
        self, sessions: int, waiting: int, decided: int, length: int
    ) -> None:
        text = "\n".join(str(number) for number in range(length))
        views = [escalation(number, {"text": text}) for number in range(1, waiting + 1)]
        decisions = [decision(number) for number in range(100, 100 + decided)]
        state = ConsoleState().news([session(number) for number in range(1, sessions + 1)], [*views, *decisions], NOW)
        details = Details()
        shown = frame(state, details, 80, 24, NOW).shown
        self.assertEqual(shown.whole, key_of(views[0]))
        self.assertGreaterEqual(shown.page, min(len(details.text(state, 79, NOW).lines), 24 - 3 - 3 - 6 - 1))

    def test_the_history_has_them_while_nothing_waits(self) -> None:
        state = ConsoleState().news([session()], [decision(number) for number in range(1, 28)], NOW)
        shown = "\n".join(lines(frame(state, Details(), 80, 24, NOW)))
        self.assertIn("HISTORY 27, 12 not shown", shown)
        for number in range(26, 12, -1):
            self.assertIn(f"  {number} ", shown)


class ScrollTests(SynchronousTestCase):
    """Long texts."""

    def test_all_of_a_text_can_be_read(self) -> None:
        value = "\n".join(f"row {number:03d}" for number in range(100))
        state, seen = ConsoleState().news([], [escalation(1, {"text": value})], NOW), ""
        for _ in range(30):
            picture = frame(state, Details(), 60, 20, NOW)
            seen += "\n".join(lines(picture))
            state, _ = press(state.drawn(picture.shown, 0.0), "page down", 0.0)
        self.assertEqual([number for number in range(100) if f"row {number:03d}" not in seen], [])
        for _ in range(30):
            state, _ = press(state, "page up", 0.0)
        self.assertEqual(state.scroll, 0)
        state, _ = press(state, "G", 0.0)
        self.assertIn("row 099", "\n".join(lines(frame(state, Details(), 60, 20, NOW))))
        self.assertEqual(press(state, "g", 0.0)[0].scroll, 0)

    def test_a_click_finds_the_row(self) -> None:
        state = ConsoleState().news([session(7)], [escalation(1), escalation(2)], NOW)
        picture = frame(state, Details(), 80, 24, NOW)
        row = next(at for at, line in enumerate(lines(picture)) if line.startswith("  2  s1 "))
        target = picture.at(5, row)
        assert target is not None
        self.assertEqual((target.section, target.number), (Section.WAITING, 2))
        self.assertIsNone(picture.at(5, 23))


class ApprovalsTests(SynchronousTestCase):
    def test_the_first_of_two_is_named_beside_the_call_and_counted_in_its_row(self) -> None:
        details, state = Details(), ConsoleState()
        waits = escalation(approvals=2)
        known = state.news((), (waits,), NOW)
        first = [unstyled(line) for line in details.text(known, 80, NOW).lines]
        self.assertIn("needs the approvals of 2 people", first)
        known = known.news((), (msgspec.structs.replace(waits, approved_by=("bob",)),), NOW)
        second = [unstyled(line) for line in details.text(known, 80, NOW).lines]
        self.assertIn("approved by bob; needs another person's approval, too", second)
        self.assertIn("1/2 approvals", unstyled(row(known.pending[0], known.pending, 80, NOW, False, False)))

    def test_who_approves_first_is_told_that_it_waits(self) -> None:
        waits, other = (escalation(n, approvals=2, approved_by=("ada",)) for n in (3, 4))
        self.assertIn("3 approved by ada; needs another person", outcome_of_all(Outcome.APPROVED, {3: waits})[0])
        said = outcome_of_all(Outcome.APPROVED, {3: waits, 4: other})[0]
        self.assertIn("of which 3, 4 need another person", said)
