"""Whether a key is a decision: cases by name, and random keys at random moments."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.escalation.decision_keys import (
    QUIET_SECONDS,
    DecisionKeys,
    Offer,
    Page,
    Part,
    ShownPart,
    Verdict,
    needed,
)
from ironcurtain.escalation.model import Outcome

OFFER = Offer("one", {"a": ["text"], "d": ()}, notes="n#", views=("j", "escape"))
LATER = QUIET_SECONDS


class PressTests(SynchronousTestCase):
    """A question whose text is on the screen since a moment."""

    def setUp(self) -> None:
        self.keys = DecisionKeys()
        self.keys.show("text", 10.0)
        self.keys.appear("one", 10.0)

    def test_a_second_after_the_question_a_key_decides(self) -> None:
        self.assertEqual(self.keys.press("a", OFFER, 10.0 + LATER - 0.01), Verdict.EARLY)
        self.setUp()
        self.assertEqual(self.keys.press("a", OFFER, 10.0 + LATER), Verdict.DECIDES)

    def test_a_key_that_was_early_counts_as_the_last_one(self) -> None:
        self.keys.press("a", OFFER, 10.9)
        self.assertEqual(self.keys.press("a", OFFER, 11.8), Verdict.EARLY)
        self.assertEqual(self.keys.press("a", OFFER, 12.8), Verdict.DECIDES)

    def test_every_key_delays_a_decision(self) -> None:
        for key in ("j", "escape", "z"):
            self.setUp()
            self.keys.press(key, OFFER, 20.0)
            self.assertEqual(self.keys.press("a", OFFER, 20.9), Verdict.EARLY, key)
        self.setUp()
        self.keys.strike(20.0)
        self.assertEqual(self.keys.press("d", OFFER, 20.9), Verdict.EARLY)

    def test_two_keys_of_one_moment_do_one_thing(self) -> None:
        self.assertEqual(self.keys.press("d", OFFER, 20.0), Verdict.DECIDES)
        self.assertEqual(self.keys.press("d", OFFER, 20.0), Verdict.EARLY)

    def test_several_keys_in_one_read_decide_nothing(self) -> None:
        self.assertEqual(self.keys.press("a", OFFER, 20.0, alone=False), Verdict.CROWDED)
        self.assertEqual(self.keys.press("n", OFFER, 30.0, alone=False), Verdict.CROWDED)

    def test_a_key_that_is_not_offered_means_nothing(self) -> None:
        self.assertEqual(self.keys.press("y", OFFER, 20.0), Verdict.MEANINGLESS)

    def test_what_was_not_shown_whole_is_not_approved(self) -> None:
        self.keys.keep(())
        self.assertEqual(self.keys.press("a", OFFER, 20.0), Verdict.UNSEEN)
        self.assertEqual(self.keys.press("d", OFFER, 30.0), Verdict.DECIDES)
        self.assertEqual(self.keys.missing(["text"]), ["text"])

    def test_a_question_that_is_hidden_or_another_appears_anew(self) -> None:
        self.keys.appear(None, 20.0)
        self.assertEqual(self.keys.press("d", OFFER, 20.0), Verdict.EARLY)
        self.keys.appear("one", 30.0)
        self.assertEqual(self.keys.press("d", OFFER, 30.5), Verdict.EARLY)
        self.keys.appear("two", 40.0)
        self.assertEqual(self.keys.press("d", OFFER, 50.0), Verdict.EARLY)
        self.keys.appear("one", 60.0)
        self.assertEqual(self.keys.press("d", OFFER, 60.5), Verdict.EARLY)

    def test_a_note_is_begun_at_once_but_not_in_the_midst_of_a_text(self) -> None:
        self.assertEqual(self.keys.press("n", OFFER, 10.1), Verdict.ACTS)
        self.setUp()
        self.keys.press("j", OFFER, 10.1)
        self.assertEqual(self.keys.press("#", OFFER, 10.2), Verdict.ACTS)
        self.setUp()
        self.keys.strike(10.1)
        self.keys.press("j", OFFER, 11.0)
        self.assertEqual(self.keys.press("n", OFFER, 11.9), Verdict.EARLY)
        self.assertEqual(self.keys.press("n", OFFER, 13.0), Verdict.ACTS)
        self.keys.appear(None, 14.0)
        self.assertEqual(self.keys.press("n", OFFER, 20.0), Verdict.EARLY)

    def test_from_when_on_keys_count(self) -> None:
        self.assertEqual(self.keys.due("one"), 10.0 + LATER)
        self.keys.press("j", OFFER, 12.0)
        self.assertEqual(self.keys.due("one"), 12.0 + LATER)
        self.assertIsNone(self.keys.due("two"))
        self.keys.appear(None, 13.0)
        self.assertIsNone(self.keys.due("one"))

    def test_equal_calls_are_those_that_were_shown_last(self) -> None:
        self.keys.show("text", 12.0, calls=5)
        self.assertEqual((self.keys.calls("text"), self.keys.calls("other")), (5, None))


class WordTests(SynchronousTestCase):
    """A command that is typed out."""

    def setUp(self) -> None:
        self.keys = DecisionKeys()
        self.keys.show("text", 10.0)

    def test_it_is_begun_after_the_question_and_ends_a_second_after_it(self) -> None:
        for began, now, verdict in (
            (9.0, 30.0, Verdict.EARLY),
            (10.0, 30.0, Verdict.EARLY),
            (10.1, 10.9, Verdict.EARLY),
            (10.1, 11.0, Verdict.DECIDES),
        ):
            self.assertEqual(self.keys.word(["text"], began, now), verdict, (began, now))

    def test_what_was_not_shown_is_not_meant(self) -> None:
        self.assertEqual(self.keys.word(["text", "other"], 20.0, 30.0), Verdict.UNSEEN)

    def test_that_it_is_shown_again_does_not_begin_anew(self) -> None:
        self.keys.show("text", 19.9)
        self.assertEqual(self.keys.word(["text"], 15.0, 20.0), Verdict.DECIDES)


GAPS = st.one_of(st.sampled_from((0.0, 0.1, 0.5, 0.99, 1.0, 1.01, 3.0)), st.floats(0, 3))
EVENTS = st.one_of(
    st.tuples(st.just("press"), st.sampled_from("adnjz#"), st.booleans()),
    st.tuples(st.just("strike")),
    st.tuples(st.just("appear"), st.sampled_from(("one", "two", None))),
    st.tuples(st.just("show"), st.sampled_from(("text", "more"))),
)


class RandomTests(SynchronousTestCase):
    """A model of what a person plainly did: they read a question for a second, rested, and pressed one key of it."""

    @given(st.lists(st.tuples(GAPS, EVENTS), max_size=40))
    def test_nothing_is_decided_that_was_not_plainly_decided(
        self, stream: list[tuple[float, tuple[object, ...]]]
    ) -> None:
        keys, now = DecisionKeys(), 0.0
        history: list[tuple[float, str]] = []
        question: object = None
        shown: set[object] = set()
        for gap, (kind, *rest) in stream:
            now += gap
            match kind:
                case "show":
                    keys.show(rest[0], now)
                    shown.add(rest[0])
                case "appear":
                    keys.appear(rest[0], now)
                    if rest[0] != question:
                        history.append((now, "question"))
                    question = rest[0]
                case "strike":
                    keys.strike(now)
                    history.append((now, "key"))
                case _:
                    verdict = keys.press(str(rest[0]), OFFER, now, bool(rest[1]))
                    rested = all(at + QUIET_SECONDS <= now for at, _ in history)
                    plain = rested and question == "one" and rest[1] and (rest[0] == "d" or "text" in shown)
                    self.assertEqual(verdict is Verdict.DECIDES, bool(plain and rest[0] in ("a", "d")))
                    history.append((now, "key"))


class ReadingTests(SynchronousTestCase):
    """A text that is read a page at a time."""

    def setUp(self) -> None:
        self.keys = DecisionKeys()

    def missing_after(self, *pages: tuple[int, int, int]) -> list[str]:
        """:returns: the text, unless it was shown whole. Each page has first row, rows and width; it has 20 rows."""
        for first, rows, width in pages:
            self.keys.read("text", Page(first, rows, 20, width), 0.0)
        return self.keys.missing(["text"])

    def test_pages_that_follow_each_other_are_the_whole_text(self) -> None:
        self.assertEqual(self.missing_after((0, 8, 80), (7, 8, 80)), ["text"])
        self.assertEqual(self.missing_after((14, 6, 80)), [])

    def test_the_end_alone_is_not_the_whole_text(self) -> None:
        self.assertEqual(self.missing_after((12, 8, 80), (0, 8, 80)), ["text"])

    def test_rows_of_another_width_do_not_count(self) -> None:
        self.assertEqual(self.missing_after((0, 10, 80), (10, 10, 60)), ["text"])

    def test_what_was_shown_stays_so(self) -> None:
        self.assertEqual(self.missing_after((0, 20, 80), (5, 2, 60)), [])

    def test_pages_are_forgotten_with_the_text(self) -> None:
        self.missing_after((0, 10, 80))
        self.keys.keep(())
        self.assertEqual(self.missing_after((10, 10, 80)), ["text"])

    @given(st.lists(st.tuples(st.integers(0, 19), st.integers(1, 9)), max_size=12))
    def test_every_row_was_on_the_screen(self, pages: list[tuple[int, int]]) -> None:
        keys, seen = DecisionKeys(), set[int]()
        for first, rows in pages:
            rows = min(rows, 20 - first)
            keys.read("text", Page(first, rows, 20, 80), 0.0)
            seen |= set(range(first, first + rows))
            self.assertTrue(keys.missing(["text"]) or seen == set(range(20)))


class PartTests(SynchronousTestCase):
    def test_a_denial_needs_less_than_an_approval(self) -> None:
        self.assertEqual([part.part for part in needed(1, "d", Outcome.DENIED)], [Part.ROW])
        self.assertEqual([part.part for part in needed(1, "d", Outcome.APPROVED)], [Part.CALL])
        kept = needed(1, "d", Outcome.APPROVED, keep=True)
        self.assertEqual([part.part for part in kept], [Part.CALL, Part.SCOPE])

    def test_other_arguments_were_not_shown(self) -> None:
        keys = DecisionKeys()
        keys.show(ShownPart(1, "d", Part.CALL), 0.0)
        self.assertEqual(keys.missing(needed(1, "d", Outcome.APPROVED)), [])
        self.assertEqual(len(keys.missing(needed(1, "e", Outcome.APPROVED))), 1)
