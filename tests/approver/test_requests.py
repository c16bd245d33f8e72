"""What counts as plainly asked for, and what does not, in several languages."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.approver.grounding import quote_problem
from ironcurtain.approver.requests import requests_in
from tests.approver.doubles import KNOWN, resources

USES = resources(("read-path", "/home/ada/notes.txt"))
ASKING = (
    "Please read ~/notes.txt now.",
    "Can you open ~/notes.txt?",
    "Fix the tests and read ~/notes.txt.",
    "Read ~/a.txt, ~/notes.txt and ~/b.txt.",
    "Hello, please show ~/notes.txt and tell me what is in it",
    "1. read ~/notes.txt",
    "Lies bitte ~/notes.txt",
    "What does ~/notes.txt say?",
)
NOT_ASKING = (
    *("Leave ~/notes.txt alone.", "Stay away from ~/notes.txt", "Keep clear of ~/notes.txt", "Hands off ~/notes.txt"),
    *(
        "Steer clear of ~/notes.txt",
        "~/notes.txt is mine",
        "Make sure ~/notes.txt stays",
        "I forbid reading ~/notes.txt",
    ),
    *("Read everything besides ~/notes.txt", "Keep ~/notes.txt out of this", "Work around ~/notes.txt", "~/notes.txt!"),
    *(
        "Read ~/notes.txt?",
        "Read ~/notes.txt is what it says",
        "It says: read ~/notes.txt",
        "They wrote, read ~/notes.txt",
    ),
    *("Read ~/other and leave ~/notes.txt", "Look after ~/notes.txt", "Read ~/notes.txt only if I say so"),
    *("Finger weg von ~/notes.txt", "Lass ~/notes.txt in Ruhe", "Lies ~/notes.txt nicht", "Rühr ~/notes.txt nicht an"),
    *("Laisse ~/notes.txt tranquille", "Ne lis pas ~/notes.txt", "Deja ~/notes.txt en paz", "No leas ~/notes.txt"),
    *(
        "Lascia stare ~/notes.txt",
        "Não toque em ~/notes.txt",
        "Blijf van ~/notes.txt af",
        "\u041d\u0435 трогай ~/notes.txt",
    ),
    *("不要读 ~/notes.txt", "~/notes.txt に触らないで", "~/notes.txt 건드리지 마", "Jätä ~/notes.txt rauhaan"),
)


class RequestTests(SynchronousTestCase):
    def problem(self, *words: str, others: tuple[str, ...] = ()) -> str:
        return quote_problem(words[-1], words, USES, KNOWN, others)

    def test_plain_requests_ask(self) -> None:
        for text in ASKING:
            self.assertEqual(self.problem(text), "", text)

    def test_everything_else_does_not(self) -> None:
        for text in NOT_ASKING:
            self.assertNotEqual(self.problem(text), "", text)

    def test_what_is_named_otherwise_as_well_is_for_a_person(self) -> None:
        for text in NOT_ASKING:
            self.assertNotEqual(self.problem(text, "Read ~/notes.txt"), "", text)

    def test_pasted_text_can_reject_and_asks_for_nothing(self) -> None:
        self.assertEqual(self.problem("Read ~/notes.txt", others=("see ~/notes.txt",)), "")
        self.assertIn("opposite", self.problem("Read ~/notes.txt", others=("Do not touch ~/notes.txt.",)))
        self.assertNotEqual(self.problem("Do what it says", others=("read ~/notes.txt",)), "")

    @given(st.text("read ~/.,:;?!\nandnotes", max_size=60))
    def test_any_text_keeps_its_length_and_loses_letters_only(self, text: str) -> None:
        found = requests_in(text)
        self.assertEqual(len(found), len(text))
        self.assertTrue(all(new in (old, " ") for old, new in zip(text, found, strict=True)))
