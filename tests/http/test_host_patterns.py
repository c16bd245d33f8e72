"""Lists of hosts in settings."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.http.host_patterns import HostPatterns


class MatchTests(SynchronousTestCase):
    def test_pattern_with_a_star_matches_names_below_only(self) -> None:
        patterns = HostPatterns(["A.Example", "*.b.example", "127.0.0.1"])
        for name in ("a.example", "x.b.example", "x.y.b.example", "127.0.0.1"):
            self.assertTrue(patterns.matches(name), name)
        for name in ("b.example", "badb.example", "x.a.example", "a.example.evil", "b.example.", "", "27.0.0.1"):
            self.assertFalse(patterns.matches(name), name)
        self.assertFalse(HostPatterns([]).matches("a.example"))

    def test_what_is_no_host_is_refused(self) -> None:
        for wrong in (
            "",
            "*",
            "*.",
            "a*.example",
            "*.*.example",
            "a.example:443",
            "https://a",
            "a.",
            "*.127.0.0.1",
            "0x7f.1",
        ):
            with self.assertRaises(ValueError, msg=wrong) as caught:
                HostPatterns(["fine.example", wrong])
            self.assertIn(repr(wrong), str(caught.exception))
