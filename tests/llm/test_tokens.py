from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.llm.tokens import MOST_TOKENS_A_BYTE, TokenSum, count_tokens

ANY_TEXT = st.text(st.characters(codec=None), max_size=60)


class CountTests(SynchronousTestCase):
    def test_known_texts(self) -> None:
        for text, count in (("", 0), ("hello world", 2), ("a" * 80, 10)):
            self.assertEqual(count_tokens(text), count)

    def test_claude_makes_more_of_them(self) -> None:
        self.assertEqual(count_tokens("hello world", "claude-opus-5-5"), 3)

    @given(ANY_TEXT)
    def test_any_text_is_counted(self, text: str) -> None:
        size = len(text.encode("utf-8", "replace"))
        self.assertLessEqual(count_tokens(text), size)
        self.assertLessEqual(count_tokens(text, "claude"), size * MOST_TOKENS_A_BYTE)


class SumTests(SynchronousTestCase):
    @given(st.integers(0, 200), st.lists(ANY_TEXT, max_size=4), st.integers(0, 400))
    def test_limit_is_held_as_if_all_were_counted(self, counted: int, texts: list[str], limit: int) -> None:
        total = TokenSum(count_tokens, counted).plus(*texts)
        exact = counted + sum(map(count_tokens, texts))
        self.assertEqual(total.within(limit), exact <= limit)
        self.assertEqual(total.value(), exact)
        self.assertEqual(total.plus("hello world").value(), exact + 2)

    def test_texts_that_fit_in_any_case_are_not_counted(self) -> None:
        total = TokenSum(self.fail, 10).plus("12345", "12345")
        self.assertTrue(total.within(10 + 10 * MOST_TOKENS_A_BYTE))
        self.assertRaises(self.failureException, total.within, 9 + 10 * MOST_TOKENS_A_BYTE)
