"""Lines broken into rows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.shell.messages import ProposedStep
from ironcurtain.text.columns import Span, cells, items, rows, unstyled
from ironcurtain.view.look import Look
from ironcurtain.view.steps import PURPOSE_ROWS, command_rows, listed, risk_line

TEXT = st.text(st.sampled_from("abc  日é\u0301/-"), max_size=200)


class RowTests(SynchronousTestCase):
    """Text."""

    @given(TEXT, TEXT, st.integers(2, 60), st.integers(0, 20))
    def test_rows_fit_and_hold_all_words(self, first: str, second: str, width: int, indent: int) -> None:
        found = rows((Span(first, "bold"), Span(second)), width, indent)
        texts = [unstyled(row) for row in found]
        self.assertLessEqual(max(map(cells, texts)), max(width, 3))
        self.assertEqual("".join("".join(texts).split()), "".join((first + second).split()))

    def test_styles_are_kept(self) -> None:
        self.assertEqual(
            rows((Span("one ", "bold"), Span("two three", "dim")), 9, 2),
            [(Span("one ", "bold"), Span("two", "dim")), (Span("  "), Span("three", "dim"))],
        )

    def test_an_empty_line_is_a_row(self) -> None:
        self.assertEqual([unstyled(row) for row in rows((), 10)], [""])


class EffectTests(SynchronousTestCase):
    """What a step changes, and where."""

    def test_places_with_hidden_characters_are_escaped(self) -> None:
        step = ProposedStep(number=1, command="rm x", where=("a\u202eb", "\u0430bc", "c\nd"))
        for line in (risk_line(step, Look(), brief=False), risk_line(step, Look(), brief=True)):
            self.assertIn("a\\u202eb, \\u0430bc, c\\nd", unstyled(line))


class ListTests(SynchronousTestCase):
    """A step in a list of a narrow terminal."""

    def test_long_names_do_not_cut_off_the_verdict(self) -> None:
        first = (Span("  1  "),)
        for decision, words in (("escalate", "needs your approval"), ("deny", "denied by policy")):
            where = ("a" * 100, "b" * 100, "c" * 100)
            step = ProposedStep(number=1, command="rm \u202e", where=where, decision=decision, purpose="why " * 50)
            shown = [unstyled(row) for row in listed(step, first, 60, 20, Look())[0]]
            self.assertEqual(len(shown), 1 + PURPOSE_ROWS)
            joined = " ".join(" ".join(shown).split())
            self.assertIn(words, joined)
            self.assertIn("hidden characters", joined)

    def test_verdict_follows_short_names(self) -> None:
        step = ProposedStep(number=1, command="rm x", where=("x",))
        (_, about), _ = listed(step, (Span("  1  "),), 80, 20, Look())
        self.assertEqual(unstyled(about), "     effect unknown: x · needs your approval · cannot be undone")


class CommandTests(SynchronousTestCase):
    """Commands, which are shown exactly as they are."""

    @given(st.text(st.sampled_from("abc  日é\u0301/-\n\x1b"), max_size=300), st.integers(4, 60))
    def test_nothing_is_left_out(self, command: str, width: int) -> None:
        look = Look()
        joined = ""
        for row in command_rows(command, width, look):
            self.assertLessEqual(cells(unstyled(row)), width)
            continues = len(row) == 2
            joined += row[0].text + ("" if continues else "\n")
        self.assertEqual(joined, look.text(command) + "\n")


class ItemTests(SynchronousTestCase):
    """Parts side by side."""

    @given(st.lists(st.integers(1, 30), min_size=1, max_size=8), st.integers(1, 80))
    def test_they_fit_and_none_is_broken(self, sizes: list[int], width: int) -> None:
        found = [unstyled(line) for line in items([(Span("x" * size),) for size in sizes], width)]
        self.assertTrue(all(cells(line) <= width for line in found))
        if max(sizes) <= width:
            self.assertEqual([len(word) for line in found for word in line.split()], sizes)
