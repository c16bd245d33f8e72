from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.registries.semver import precedence


class PrecedenceTests(SynchronousTestCase):
    def test_versions_are_in_the_order_of_the_standard(self) -> None:
        ordered = (
            *("1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11"),
            *("1.0.0-rc.1", "1.0.0", "1.0.1", "1.2.0", "1.10.0", "2.0.0"),
        )
        ranks = [rank for version in ordered if (rank := precedence(version)) is not None]
        self.assertEqual(len(ranks), len(ordered))
        self.assertEqual(sorted(ranks), ranks)
        self.assertEqual(precedence("1.0.0+build"), precedence("v1.0.0"))

    def test_numbers_of_any_length_are_compared(self) -> None:
        ordered = [f"1.0.0-{digits}" for digits in ("09", "10", "9" * 5000, "1" + "0" * 5000)]
        ranks = [rank for version in ordered if (rank := precedence(version)) is not None]
        self.assertEqual(sorted(ranks), ranks)

    def test_other_texts_have_no_rank(self) -> None:
        for text in ("", "1", "1.0", "latest", "1.0.0-", "1.0.0 ", "\u0661.0.0", "1" * 17 + ".0.0"):
            self.assertIsNone(precedence(text), text)
