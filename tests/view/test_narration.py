from __future__ import annotations

import json

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.session import events
from ironcurtain.session.server_events import ServerDown
from ironcurtain.text.columns import Span, unstyled
from ironcurtain.view.banner import banner
from ironcurtain.view.look import ASCII
from ironcurtain.view.narration import Answers, Ask, Item, Narration, Say
from tests.view.strategies import harmful, nasty, session_events

DONE = events.ToolFinished(call_id="a", status="success", duration_ms=3)


def play(view: Narration, *happened: events.SessionEvent, at: float = 100.0) -> list[str]:
    """:returns: what is printed when these happen; an answer and an escalation are marked."""
    items: list[Item] = []
    for event in happened:
        items += view.apply(events.Stamped(1, at, event))
    return [text for item in items for text in texts(item)]


def texts(item: Item) -> list[str]:
    """:returns: one thing to print, as lines without style."""
    match item:
        case Say(line, answer):
            return [f"ANSWER {unstyled(line)}" if answer else unstyled(line)]
        case Ask(pending):
            return [unstyled(line) for line in banner(pending, 0.0, 79, ASCII).lines]


def status(view: Narration, now: float = 100.0) -> str:
    """:returns: the line about the state."""
    return unstyled(view.live(now).status)


def view(answers: Answers = Answers.FLOWING, airy: bool = False) -> Narration:
    """:returns: a view that only needs ASCII."""
    return Narration(answers, airy=airy, signs=ASCII)


def call(server: str = "filesystem", tool: str = "read_text_file", call_id: str = "a") -> events.ToolCallRaised:
    """:returns: the start of a tool call."""
    return events.ToolCallRaised(call_id=call_id, server=server, tool=tool, arguments='{"path": "notes.txt"}')


def asked(number: int, expires_at: float = 400.0) -> events.EscalationRaised:
    """:returns: an escalation."""
    return events.EscalationRaised(
        number=number,
        call_id="a",
        server="filesystem",
        tool="write_file",
        arguments={"path": "/etc/motd"},
        digest="d",
        rule="outside",
        reason="outside the workspace",
        raised_at=100.0,
        expires_at=expires_at,
    )


class ApprovalsTests(SynchronousTestCase):
    def test_the_first_of_two_is_named_to_the_second(self) -> None:
        it = view()
        asks = msgspec.structs.replace(asked(7), approvals=2)
        self.assertTrue([line for line in play(it, asks) if "needs the approvals of 2 people" in line])
        said = play(it, events.EscalationApproved(number=7, by="bob\x1b[2J"))
        self.assertEqual(said, ["escalation 7: approved by bob\\x1b[2J; needs another person's approval, too"])
        self.assertEqual(it.pending[7].approved_by, ("bob\x1b[2J",))
        play(it, events.EscalationClosed(number=7, outcome="approved", by="bob and ada"))
        self.assertEqual(it.outcomes[7], "escalation 7: approved by bob and ada")


class EscapeTests(SynchronousTestCase):
    @settings(max_examples=200)
    @given(st.lists(session_events, max_size=12), st.sampled_from(Answers), st.integers(20, 120))
    def test_nothing_of_an_event_reaches_the_terminal_unescaped(
        self, happened: list[events.SessionEvent], answers: Answers, width: int
    ) -> None:
        shown = view(answers, airy=True)
        shown.width = width
        for event in happened:
            for line in play(shown, event):
                self.assertEqual(harmful(line.replace("\t", "")), [], event)
            live = shown.live(200.0)
            self.assertEqual(harmful("".join([*live.tail, unstyled(live.status)])), [], event)

    @given(nasty, st.sampled_from(("deny", "denied")))
    def test_a_whole_call_is_escaped(self, text: str, decision: str) -> None:
        happened = (
            events.ToolCallRaised(call_id="a", server=text, tool=text, arguments=text),
            events.ToolDecision(call_id="a", decision=decision, rule=text, reason=text, by=text),
            events.ToolFinished(call_id="a", status="denied"),
            events.ToolCallRaised(call_id="b", server="s", tool="t", arguments=json.dumps({text: text})),
            events.ToolFinished(call_id="b", status=text),
            events.EscalationClosed(number=1, outcome=text, by=text),
            events.TurnFinished(turn=1, error=text),
        )
        self.assertEqual(harmful("".join(play(view(), *happened))), [])

    def test_a_message_of_the_person_is_escaped_too(self) -> None:
        self.assertEqual([texts(item) for item in view().message("a\x1b\nb")], [["> a\\x1b"], ["  b"]])


class ToolTests(SynchronousTestCase):
    def test_a_call_that_is_over_leaves_a_line(self) -> None:
        self.assertEqual(play(view(), call(), DONE), ["ok filesystem.read_text_file path=notes.txt (3 ms)"])

    def test_a_denied_call_says_by_which_rule(self) -> None:
        denied = events.ToolDecision(call_id="a", decision="deny", rule="protected-path", reason="never")
        lines = play(view(), call(), denied, events.ToolFinished(call_id="a", status="denied"))
        self.assertEqual(lines, ["x filesystem.read_text_file path=notes.txt", "  denied by protected-path: never"])

    def test_a_person_who_denied_is_named(self) -> None:
        denied = events.ToolDecision(call_id="a", decision="denied", by="alice")
        lines = play(view(), call(), denied, events.ToolFinished(call_id="a", status="denied"))
        self.assertEqual(lines[1], "  denied by alice")

    def test_an_approved_call_is_an_ordinary_one(self) -> None:
        steps = [events.ToolDecision(call_id="a", decision=word, rule="r") for word in ("escalate", "approved")]
        self.assertEqual(play(view(), call(), *steps, DONE), ["ok filesystem.read_text_file path=notes.txt (3 ms)"])

    def test_a_call_that_nobody_was_asked_about_says_so(self) -> None:
        unasked = events.ToolDecision(call_id="a", decision="approved", by="alice", permission=3)
        self.assertEqual(play(view(), call(), unasked, DONE)[1], "  approved by alice, as kept with escalation 3")

    def test_a_failed_call_says_so(self) -> None:
        lines = play(view(), call(), events.ToolFinished(call_id="a", status="error", duration_ms=2500))
        self.assertEqual(lines, ["x filesystem.read_text_file path=notes.txt error (2.5 s)"])

    def test_the_line_fits(self) -> None:
        shown = view()
        shown.width = 40
        self.assertEqual(play(shown, call(), DONE), ["ok filesystem.read_text_file (3 ms)"])

    def test_calls_without_end_are_told_of_at_the_end(self) -> None:
        lines = play(view(), call(), events.TurnFinished(turn=1, error="cancelled", code="CANCELLED"))
        self.assertEqual(lines, ["x filesystem.read_text_file path=notes.txt not finished", "cancelled"])

    def test_an_unknown_call_is_nothing(self) -> None:
        self.assertEqual(play(view(), DONE), [])


class StatusTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.view = view()
        play(self.view, events.StateChanged(state="processing"), events.TurnStarted(turn=1, message="hi"))

    def test_a_call_and_how_long_it_runs(self) -> None:
        play(self.view, call())
        self.assertEqual(status(self.view, 103.9), "* filesystem.read_text_file path=notes.txt 3 s")

    def test_several_calls(self) -> None:
        play(self.view, call(), call(call_id="b"), call(call_id="c"))
        self.assertEqual(status(self.view, 103.9), "* filesystem.read_text_file path=notes.txt and 2 more 3 s")

    def test_what_the_agent_does(self) -> None:
        self.assertEqual(status(self.view, 102), "* thinking 2 s")
        play(self.view, events.AgentText(text="x"), at=102)
        self.assertEqual(status(self.view, 105), "* answering 5 s")
        play(self.view, events.CodeStarted(code="1"), at=110)
        self.assertEqual(status(self.view, 110), "* running code 10 s")

    def test_thinking_does_not_begin_anew_with_each_request(self) -> None:
        step = events.StepFinished(step=1)
        play(self.view, step, step, at=140)
        self.assertEqual(status(self.view, 144), "* thinking 44 s")

    def test_an_escalation_comes_first_with_its_time(self) -> None:
        play(self.view, call(), asked(3))
        self.assertEqual(status(self.view, 101), "* escalation 3 waits for you, 4:59 left")
        play(self.view, asked(4, expires_at=161.0))
        self.assertEqual(status(self.view, 101), "* escalations 3, 4 wait for you, 1:00 left for 4")

    def test_ready(self) -> None:
        play(self.view, events.StateChanged(state="ready"))
        self.assertEqual(status(self.view), "- ready, /help lists the commands")


class AnswerTests(SynchronousTestCase):
    def test_flowing_text_is_printed_as_its_lines_end(self) -> None:
        shown = view()
        self.assertEqual(play(shown, events.AgentText(text="one\ntw")), ["one"])
        self.assertEqual(shown.live(0).tail, ("tw",))
        self.assertEqual(play(shown, events.TurnFinished(turn=1, answer="one\ntwo")), ["two"])
        self.assertEqual(shown.live(0).tail, ())

    def test_a_whole_answer_is_handed_over_once(self) -> None:
        lines = play(
            view(Answers.WHOLE),
            events.AgentText(text="I will look"),
            events.StepFinished(step=1),
            events.CodeStarted(code="1"),
            events.AgentText(text="42"),
            events.StepFinished(step=2),
            events.TurnFinished(turn=1, answer="42\x1b"),
        )
        self.assertEqual(lines, ["I will look", "ANSWER 42\\x1b"])

    def test_an_answer_elsewhere_is_not_shown(self) -> None:
        said = (events.AgentText(text="42\n"), events.StepFinished(step=1), events.TurnFinished(turn=1, answer="42"))
        self.assertEqual(play(view(Answers.ELSEWHERE), *said), [])

    def test_an_error_is_shown(self) -> None:
        over = events.TurnFinished(turn=1, error="overloaded", code="MESSAGE_FAILED")
        self.assertEqual(play(view(), over), ["x no answer: overloaded"])
        self.assertEqual(play(view(Answers.ELSEWHERE), over), [])

    def test_an_error_of_several_lines_is_several_lines(self) -> None:
        over = events.TurnFinished(turn=1, error="Error:\n\tat main\x1b[2J\n", code="MESSAGE_FAILED")
        self.assertEqual(play(view(), over), ["x no answer: Error:", "      at main\\x1b[2J"])
        long = events.TurnFinished(turn=1, error="x" * 999 + "\nyy", code="MESSAGE_FAILED")
        self.assertEqual(play(view(), long), ["x no answer: " + "x" * 999, "  … (+2 characters)"])

    def test_an_answer_that_broke_off_is_shown_as_incomplete(self) -> None:
        over = events.TurnFinished(turn=1, answer="The first", error="it broke off", code="MESSAGE_FAILED")
        self.assertEqual(
            play(view(), events.AgentText(text="The first"), over), ["The first", "x incomplete: it broke off"]
        )

    def test_text_before_a_retry_is_dropped(self) -> None:
        lines = play(
            view(),
            events.AgentText(text="The answ"),
            events.ModelRetry(delay=2, reason="overloaded"),
            events.AgentText(text="42"),
            events.TurnFinished(turn=1, answer="42"),
        )
        self.assertEqual(lines, ["overloaded: trying again in 2 s", "42"])


class EscalationTests(SynchronousTestCase):
    def test_it_is_put_before_the_person_and_remembered(self) -> None:
        shown = view()
        self.assertIn("+ Escalation 3 asks: filesystem.write_file", play(shown, asked(3)))
        self.assertEqual(shown.pending[3].digest, "d")

    def test_who_decided_is_said(self) -> None:
        shown = view()
        play(shown, asked(3))
        closed = events.EscalationClosed(number=3, outcome="denied", by="alice")
        self.assertEqual(play(shown, closed), ["escalation 3: denied by alice"])
        self.assertEqual((shown.pending, shown.outcomes), ({}, {3: "escalation 3: denied by alice"}))

    def test_outcomes_are_bounded(self) -> None:
        shown = view()
        for number in range(1000):
            play(shown, events.EscalationClosed(number=number, outcome="expired"))
        self.assertEqual(len(shown.outcomes), 200)
        self.assertIn(999, shown.outcomes)

    def test_after_missed_events_the_truth_is_taken(self) -> None:
        shown = view()
        play(shown, events.StateChanged(state="processing"), asked(3), asked(4), call())
        items = shown.resync("ready", [asked(4), asked(5)])
        self.assertEqual([item.pending.number for item in items if isinstance(item, Ask)], [5])
        self.assertEqual((list(shown.pending), shown.working), ([4, 5], False))


class RemarkTests(SynchronousTestCase):
    def test_each_is_said(self) -> None:
        self.assertEqual(
            play(
                view(),
                events.CodeFinished(error="NameError: x"),
                events.BudgetWarning(message="budget nearly used up"),
                events.LoopDetected(server="s", tool="t"),
                ServerDown(server="git\x1b"),
                events.Notice(text="a tool is withheld\x1b"),
                events.ResultTruncated(size=10, kept=5),
                events.MessagesCompacted(strategy="truncate", turns=2, before=9, after=5),
                events.Missed(count=7),
                events.StateChanged(state="closed", reason="ended by alice"),
            ),
            [
                "x the code failed: NameError: x",
                "budget nearly used up",
                "s.t came too often, refused",
                "the MCP server git\\x1b is starting: its tools cannot be called",
                "a tool is withheld\\x1b",
                "a result was cut: the agent got 5 of 10 bytes",
                "to fit the model, old programs and their results, and 2 messages, were left out (truncate)",
                "7 events were lost here: the history has the messages",
                "the session is closed: ended by alice",
            ],
        )

    def test_what_is_routine_is_no_warning(self) -> None:
        routine, warning = events.Notice(text="sandboxes", routine=True), events.Notice(text="sandboxes")
        shown = [item for event in (routine, warning) for item in view().apply(events.Stamped(1, 0, event))]
        self.assertEqual(shown, [Say((Span("sandboxes", style),)) for style in ("dim", "warn")])

    def test_a_tunnel_that_was_refused_is_told_by_its_host_and_port(self) -> None:
        refused = events.RequestRefused(host="evil\x1b.test", method="CONNECT", path="evil\x1b.test:443", reason="no")
        words = "request refused: CONNECT evil\\x1b.test:443: no; /logs has further refusals"
        self.assertEqual(play(view(), refused, refused), [words])

    def test_blank_lines_part_what_is_different(self) -> None:
        lines = play(
            view(airy=True),
            events.AgentText(text="I look\n\nnow\n\n"),
            call(),
            DONE,
            call(),
            DONE,
            events.AgentText(text="Done"),
            events.TurnFinished(turn=1, answer="Done"),
        )
        done = "ok filesystem.read_text_file path=notes.txt (3 ms)"
        self.assertEqual(lines, ["I look", "", "now", "", done, done, "", "Done"])
