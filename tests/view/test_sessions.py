"""Sentences about sessions."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.view.sessions import remarks
from tests.console.doubles import session


class PayerTests(SynchronousTestCase):
    def test_sessions_without_a_model_of_their_own_have_no_payer(self) -> None:
        both = ("your Claude subscription", "the API key for openai from the variable OPENAI_API_KEY")
        said = remarks([session(1), session(2, payers=both[:1]), session(3, payers=both)])
        self.assertEqual(
            list(said),
            [f"Session 2 is paid by {both[0]}.", f"Session 3 is paid by {both[0]}; {both[1]}."],
        )
