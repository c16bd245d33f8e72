from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.session.agent_events import AgentToolFinished
from ironcurtain.session.events import AgentText, SessionEvent, StepFinished, TurnStarted
from ironcurtain.text.columns import cells
from ironcurtain.view.speech import LOGGED, TAIL_LINES, LoggedSpeech, Speech
from tests.view.strategies import harmful, nasty

pieces = st.lists(st.text("ab \n", max_size=12), max_size=12)


def lines_of(text: str) -> list[str]:
    """:returns: the lines, without blank ones at both ends."""
    return [line.rstrip() for line in text.strip().split("\n")] if text.strip() else []


class SpeechTests(SynchronousTestCase):
    @given(pieces, st.booleans())
    def test_any_slicing_gives_the_same_lines(self, parts: list[str], flowing: bool) -> None:
        speech, whole = Speech(flowing), Speech(flowing)
        sliced = [line for part in parts for line in speech.feed(part)] + list(speech.finish())
        self.assertEqual(sliced, [*whole.feed("".join(parts)), *whole.finish()])

    @given(pieces)
    def test_nothing_that_was_said_is_lost(self, parts: list[str]) -> None:
        speech = Speech(flowing=True)
        out = [line for part in parts for line in speech.feed(part)] + list(speech.finish())
        kept = [line for line in "".join(parts).split("\n") if line.strip()]
        self.assertEqual([line for line in out if line], [line.rstrip() for line in kept])

    @given(pieces, st.text("ab \n", max_size=30))
    def test_the_answer_comes_out_once(self, parts: list[str], rest: str) -> None:
        speech = Speech(flowing=True)
        answer = ("".join(parts) + rest).strip()
        out = [line for part in parts for line in speech.feed(part)] + list(speech.answered(answer))
        self.assertEqual("\n".join(line for line in out if line).lstrip(), "\n".join(filter(None, lines_of(answer))))

    def test_an_answer_that_was_not_said_comes_out_whole(self) -> None:
        speech = Speech(flowing=True)
        self.assertEqual(list(speech.feed("let me see\nwell")), ["let me see"])
        self.assertEqual(list(speech.answered("42\nis it")), ["well", "42", "is it"])

    def test_blank_lines_stay_between_others(self) -> None:
        speech = Speech(flowing=True)
        self.assertEqual([*speech.feed("\n\none\n\n\ntwo\n\n"), *speech.finish()], ["one", "", "two"])

    def test_what_is_logged_of_a_message_is_bounded(self) -> None:
        logged = LoggedSpeech()
        for _ in range(2):
            logged.lines(TurnStarted(turn=1, message="go"))
            flood: list[SessionEvent] = [AgentText(text="\n" * 100 + f"{'x' * 900}\n") for _ in range(2000)]
            flood += [AgentToolFinished(tool_id="t", status="success", diff="+y\n" * 999)] * 99
            lines = [line for event in flood for line in logged.lines(event)]
            self.assertGreater(sum(map(len, lines)), LOGGED * 0.8)
            self.assertLess(sum(map(len, lines)), LOGGED)
            self.assertEqual([line for line in lines if line.strip("x")][1:], [])
            self.assertIn("not logged", lines[-1])

    def test_what_does_not_flow_waits(self) -> None:
        speech = Speech(flowing=False)
        self.assertEqual(list(speech.feed("one\ntwo\n")), [])
        self.assertEqual(speech.tail(80), ("one", "two"))
        self.assertEqual(list(speech.finish()), ["one", "two"])

    def test_after_a_step_a_new_stretch_begins(self) -> None:
        speech = Speech(flowing=False)
        list(speech.feed("I will look"))
        list(speech.heard(StepFinished(step=1)))
        self.assertEqual(list(speech.feed("Done")), ["I will look"])

    @given(st.lists(nasty, max_size=5), st.integers(10, 80))
    def test_the_tail_is_bounded_and_escaped(self, parts: list[str], width: int) -> None:
        speech = Speech(flowing=False)
        for part in parts:
            list(speech.feed(part * 20))
        tail = speech.tail(width)
        self.assertLessEqual(len(tail), TAIL_LINES)
        self.assertTrue(all(cells(line) <= width for line in tail))
        self.assertEqual(harmful("".join(tail)), [])
