from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.terminal.provenance import KEY, PASTE, Provenance


class ProvenanceTests(SynchronousTestCase):
    @given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 5), st.text("ab", max_size=5))))
    def test_only_single_letters_that_were_put_in_are_typed(self, edits: list[tuple[int, int, str]]) -> None:
        line, keyed = Provenance(), 0
        for at, gone, new in edits:
            line.change(line.text[:at] + new + line.text[at + gone :], KEY)
            keyed += len(new) <= 1
        self.assertLessEqual(len(line.own().replace("\n", "")), keyed + 4 * len(edits))

    @given(st.text("ab"), st.text("xy", min_size=2), st.text("ab"))
    def test_no_pasted_letter_is_typed_and_a_gap_is_seen(self, before: str, pasted: str, after: str) -> None:
        line = Provenance()
        for letter in before:
            line.change(line.text + letter, KEY)
        line.change(line.text + pasted, PASTE)
        for letter in after:
            line.change(line.text + letter, KEY)
        self.assertEqual(line.text, before + pasted + after)
        self.assertEqual(line.own(), before + ("\n" if before else "") + after)
