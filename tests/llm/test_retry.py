from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.llm.anthropic import AnthropicDialect
from ironcurtain.llm.failures import RetryPolicy, asked_delay

NOW = "Sat, 21 Nov 2026 09:00:00 GMT"


class RetryPolicyTests(SynchronousTestCase):
    def test_each_wait_is_twice_as_long_up_to_the_longest(self) -> None:
        policy = RetryPolicy(attempts=9, first_delay=1, longest_delay=10)
        self.assertEqual([policy.delay(failed, None, lambda: 1.0) for failed in range(1, 7)], [1, 2, 4, 8, 10, 10])

    @given(st.integers(1, 4), st.floats(0, 1))
    def test_jitter_stays_in_the_upper_half(self, failed: int, chance: float) -> None:
        delay = RetryPolicy().delay(failed, None, lambda: chance)
        assert delay is not None
        longest = 2.0 ** (failed - 1)
        self.assertTrue(longest / 2 <= delay <= longest)

    def test_it_gives_up_after_the_last_attempt(self) -> None:
        self.assertIsNone(RetryPolicy(attempts=3).delay(3, None, lambda: 0.0))
        self.assertIsNone(RetryPolicy(attempts=3).delay(3, 1.0, lambda: 0.0))

    def test_what_the_server_asks_for_is_kept_to_exactly(self) -> None:
        self.assertEqual(RetryPolicy().delay(1, 17.0, lambda: 0.3), 17.0)

    def test_a_server_that_asks_for_too_much_is_not_asked_again(self) -> None:
        self.assertIsNone(RetryPolicy(longest_asked=60).delay(1, 60.5, lambda: 0.0))

    def test_hundreds_of_failures_do_not_overflow(self) -> None:
        self.assertEqual(RetryPolicy(attempts=1000).delay(999, None, lambda: 1.0), 30.0)


class HeaderTests(SynchronousTestCase):
    def test_seconds(self) -> None:
        self.assertEqual(asked_delay("7", None), 7.0)
        self.assertEqual(asked_delay(" 0.5 ", None), 0.5)

    def test_a_date_counts_from_the_servers_own_clock(self) -> None:
        self.assertEqual(asked_delay("Sat, 21 Nov 2026 09:00:30 GMT", NOW), 30.0)

    def test_a_date_that_has_passed_means_now(self) -> None:
        self.assertEqual(asked_delay("Sat, 21 Nov 2026 08:00:00 GMT", NOW), 0.0)

    def test_a_date_without_the_servers_date_says_nothing(self) -> None:
        self.assertIsNone(asked_delay("Sat, 21 Nov 2026 09:00:30 GMT", None))

    @given(st.text(max_size=30), st.text(max_size=30))
    def test_rubbish_is_never_an_error(self, value: str, date: str) -> None:
        asked = asked_delay(value, date)
        self.assertTrue(asked is None or asked >= 0)

    def test_no_header_says_nothing(self) -> None:
        self.assertIsNone(asked_delay(None, NOW))

    def test_which_statuses_pass(self) -> None:
        passing = [status for status in range(201, 600) if AnthropicDialect().failure(status, b"").retryable]
        self.assertEqual(passing, [429, *range(500, 600)])
