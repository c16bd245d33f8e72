"""Patterns of forms: those that are checked match as in ECMA-262, in little time, and the others are left alone."""

from __future__ import annotations

import re
import time

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.escalation.form_patterns import PATTERN_LIMIT, matcher
from ironcurtain.escalation.form_values import VALUE_LIMIT

MOST_SECONDS = 2.0
"""Seconds of the processor for one text; a hundredth of it is usual."""

PIECES = (*"ab019_-^$|.()[]*+?,{}\\/&~ \n", "\\d", "\\W", "\\s", "\\b", "(?:", "[^", "a-z", "{2,3}", "\\u0062", "\\x61")


class MatchingTests(SynchronousTestCase):
    def matches(self, pattern: str, text: str) -> bool:
        """:returns: whether a pattern, which is checked, matches."""
        fits = matcher(pattern)
        assert fits is not None, pattern
        return fits(text)

    def test_patterns_match_as_in_ecma_262(self) -> None:
        for pattern, right, wrong in (
            ("b", "abc", "acd"),  # anywhere
            ("^[a-z]+$", "abc", "ab1"),
            ("^a$", "a", "a\n"),  # no line end
            (r"^\d{3}-\d{4}$", "555-1234", "\u0665\u0665\u0665-1234"),  # ASCII digits only
            (r"^\w+@\w+\.com$", "a@b.com", "\u00e9@b.com"),
            (r"^\s*$", "\ufeff\u00a0 \t", "\x1c"),
            (r"\bfoo\b", "\u00e9foo", "afoob"),
            ("^.$", "\U0001f600", "\u2028"),
            (r"^[\w.-]+$", "a.b-c", "a b"),
            (r"^[\D]$", "a", "1"),
            (r"^[\]\[]+$", "[]", "a"),
            ("^[&~-]{2,}$", "&&", "ab"),  # an intersection elsewhere
            (r"^(?<owner>[^/]+)\/(?:[^/]+)$", "o/r", "o/r/x"),
            ("^(?:a|b)*?c$", "abac", "abab"),
        ):
            self.assertEqual((self.matches(pattern, right), self.matches(pattern, wrong)), (True, False), pattern)

    def test_patterns_that_mean_something_else_or_backtrack_are_left_to_the_server(self) -> None:
        for pattern in (
            *(r"(a)\1", "(?=a)", "(?!a)", "(?<=a)", "(?<!a)", "(?i)a", r"\p{L}", r"\k<a>", r"\cA", r"\0", "\\ud83d"),
            *(
                "[",
                "(a",
                "a)",
                "]",
                "}",
                "a{1,2",
                "[]",
                "[^]",
                "[z-a]",
                r"[a-\d]",
                "[a-c-e]",
                "*a",
                "a**",
                "^*",
                "a{2}{3}",
            ),
            *("x" * (PATTERN_LIMIT + 1), "(?:[a-z]{100}){100}"),
        ):
            self.assertIsNone(matcher(pattern), pattern)

    def test_no_pattern_takes_long(self) -> None:
        text = "a" * (VALUE_LIMIT - 1) + "!"
        for pattern in ("^(a+)+$", "^(a|a)*$", "(?:[a-z]{0,500}){2}x", "(?:[a-z]?){1000}x", r"^(\w+\s?){1000}$"):
            began = time.process_time()
            self.assertFalse(self.matches(pattern, text))
            self.assertLess(time.process_time() - began, MOST_SECONDS, pattern)

    @given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), st.text("ab01_- \n/&~^", max_size=8))
    def test_what_is_checked_matches_as_with_another_engine(self, pattern: str, text: str) -> None:
        if (fits := matcher(pattern)) is None:
            return
        try:
            ends = re.sub(r"(\\.)|\$", lambda found: found[1] or r"\Z", pattern, flags=re.DOTALL)
            other = re.compile(ends, re.ASCII)
        except re.error:  # such as possessive quantifiers, which ECMA-262 does not have
            return
        self.assertEqual(fits(text), other.search(text) is not None)
