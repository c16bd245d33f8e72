from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.mitm_proxy.reached_limit import LONGEST, ReachedLimit, wait_words
from ironcurtain.mitm_proxy.recording import Troubles

NOW = 1_790_000_000.0

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["error", "details", "resets_at", "x"]), inner),
)


class ReachedLimitTests(SynchronousTestCase):
    def seconds(self, body: object = None, **headers: str) -> float | None:
        limit = ReachedLimit(tuple((name.replace("_", "-"), value) for name, value in headers.items()))
        limit.feed(json.dumps(body).encode())
        return limit.seconds(NOW)

    def test_each_provider_says_it_elsewhere(self) -> None:
        retry = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}
        for found, seconds in (
            (self.seconds(anthropic_ratelimit_unified_reset=str(int(NOW) + 7200), retry_after="60"), 7200),
            (self.seconds(retry_after="60"), 60),
            (self.seconds({"error": {"type": "usage_limit_reached", "resets_in_seconds": 90}}), 90),
            (self.seconds({"error": {"type": "usage_limit_reached", "resets_at": NOW + 30}}), 30),
            (self.seconds({"error": {"code": 429, "details": [{}, retry]}}), 34.5),
            (self.seconds({"error": "x"}), None),
            (self.seconds(retry_after="-1"), None),
            (self.seconds({"error": {"resets_at": NOW - 1}}), None),
            (self.seconds({"error": {"resets_at": NOW + LONGEST + 1}}), None),
        ):
            self.assertEqual(found, seconds)

    @given(VALUES, st.text(), st.text())
    def test_any_answer_can_be_read(self, body: object, reset: str, after: str) -> None:
        found = self.seconds(body, anthropic_ratelimit_unified_reset=reset, retry_after=after)
        self.assertTrue(found is None or 0 < found <= LONGEST)

    def test_it_is_told_in_words(self) -> None:
        for seconds, words in (
            (1, "until 14:13 UTC (1 min)"),
            (7200, "until 16:13 UTC (2 h)"),
            (7800, "until 16:23 UTC (2 h 10 min)"),
            (90_000, "until 2026-09-22 15:13 UTC (1 d 1 h)"),
        ):
            self.assertEqual(wait_words(seconds, NOW), words)
        told = Troubles("api.example.com", "the key", "change it").after(429, "", "until 15:33 UTC (2 h)")
        self.assertIn("a limit of the account is reached, until 15:33 UTC (2 h)", told)
