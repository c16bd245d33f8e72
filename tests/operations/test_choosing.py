"""Which session ``last`` is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import Unavailable
from ironcurtain.home.host_numbers import HostNumber
from ironcurtain.operations.choosing import newest
from tests.console.doubles import session


class NewestTests(SynchronousTestCase):
    def test_session_of_another_host_is_never_the_last_one(self) -> None:
        far = replace(session(1), number=HostNumber("build-3", 9))
        self.assertEqual(newest([far, session(2)], [2], terminal=False), 2)
        self.assertIsNone(newest([far], [], terminal=False))

    def test_no_older_one_is_taken_for_one_whose_process_hangs(self) -> None:
        error = self.assertRaises(Unavailable, newest, [session(2)], [2, 3], terminal=False)
        self.assertIn("session 3", str(error))
        self.assertEqual(newest([session(3), session(2)], [1, 2, 3], terminal=False), 3)

    def test_ended_ones_and_those_without_a_terminal_are_passed_over(self) -> None:
        shown = replace(session(1), terminal=True)
        found = [shown, session(2), session(3, state="closed")]
        self.assertEqual((newest(found, [], terminal=False), newest(found, [], terminal=True)), (2, 1))

    def test_session_that_ended_in_one_process_and_goes_on_in_another_is_open(self) -> None:
        both = [session(1), session(1, state="closed")]
        for found in (both, both[::-1]):
            self.assertEqual(newest(found, [1], terminal=False), 1)

    @given(st.sets(st.integers(1, 9)), st.sets(st.integers(1, 9)))
    def test_it_is_the_newest_of_all_or_an_error(self, answered: set[int], registered: set[int]) -> None:
        try:
            found = newest(map(session, answered), registered, terminal=False)
        except Unavailable:
            self.assertNotIn(max(answered | registered), answered)
        else:
            self.assertEqual(found, max(answered | registered, default=None))
