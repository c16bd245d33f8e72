from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.llm.tokens import count_tokens


class CountTests(SynchronousTestCase):
    def test_known_texts(self) -> None:
        for text, count in (("", 0), ("hello world", 2), ("a" * 80, 10)):
            self.assertEqual(count_tokens(text), count)

    def test_claude_makes_more_of_them(self) -> None:
        self.assertEqual(count_tokens("hello world", "claude-opus-5-5"), 3)

    @given(st.text(st.characters(codec=None), max_size=60))
    def test_any_text_is_counted(self, text: str) -> None:
        self.assertLessEqual(count_tokens(text), len(text.encode("utf-8", "replace")))
