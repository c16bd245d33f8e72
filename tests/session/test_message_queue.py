"""Messages that are sent while a turn runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import NotFound, SessionError
from ironcurtain.session.agent_events import AgentToolStarted, MessageQueued, MessageTaken, MessageWithdrawn
from ironcurtain.session.event import Event
from ironcurtain.session.history import read_turns
from ironcurtain.session.message_queue import MOST, JoiningAgent, MessageQueue
from ironcurtain.session.model import Cancelled, State
from tests.session.doubles import PlainAgent
from tests.session.test_session import SessionTestCase

TOOL = AgentToolStarted(tool_id="t", name="Bash")


def keeps_messages(agent: PlainAgent, joins: bool) -> list[Callable[[], None]]:
    """
    Let messages wait for an agent.

    :param joins: whether they join its turn.
    :returns: will have what to call when it takes one.
    """
    taken: list[Callable[[], None]] = []

    def join(message: str, callback: Callable[[], None]) -> bool:
        if joins:
            taken.append(callback)
        return joins

    agent.join = join  # type: ignore[attr-defined]
    assert isinstance(agent, JoiningAgent)
    return taken


class SessionQueueTests(SessionTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.agent = self.world.agents[0]

    def events(self, *kinds: type[Event]) -> list[Event]:
        return [stamped.event for stamped in self.session.events.after(0) if isinstance(stamped.event, kinds)]

    def finish(self) -> None:
        """Let the agent answer what it waits with."""
        self.agent.waiting.pop().callback(None)
        self.world.clock.advance(0)

    def test_a_message_waits_and_is_then_worked_on(self) -> None:
        keeps_messages(self.agent, joins=False)
        first, second = self.session.send("wait"), self.session.send("more")
        self.assertEqual(self.events(MessageQueued), [MessageQueued(number=1, message="more")])
        self.assertNoResult(second)
        self.finish()
        self.assertEqual(self.successResultOf(first).text, "you said wait")
        self.assertEqual(self.successResultOf(second).text, "you said more")
        self.assertEqual(self.events(MessageTaken), [MessageTaken(number=1)])
        self.assertEqual([turn.message for turn in self.session.history.turns], ["wait", "more"])
        self.assertIs(self.session.state, State.READY)

    def test_a_message_joins_the_turn_and_has_its_answer(self) -> None:
        taken = keeps_messages(self.agent, joins=True)
        first, second = self.session.send("wait"), self.session.send("more")
        taken[0]()
        self.assertEqual(self.events(MessageTaken), [MessageTaken(number=1)])
        self.finish()
        self.assertEqual(self.successResultOf(first), self.successResultOf(second))
        self.assertEqual([turn.message for turn in read_turns(self.session.paths.history)], ["wait\n\nmore"])

    def test_a_message_that_was_handed_over_too_late_begins_a_turn(self) -> None:
        keeps_messages(self.agent, joins=True)
        _, second = self.session.send("wait"), self.session.send("more")
        self.finish()
        self.assertEqual(self.successResultOf(second).text, "you said more")

    def test_a_tool_in_use_is_the_time_to_join(self) -> None:
        keeps_messages(self.agent, joins=False)
        self.session.send("wait")
        waiting = self.session.send("more")
        taken = keeps_messages(self.agent, joins=True)
        assert self.agent.core is not None
        self.agent.core.emit(TOOL)
        self.assertEqual(len(taken), 1)
        taken[0]()
        self.finish()
        self.successResultOf(waiting)

    def test_a_message_is_taken_back(self) -> None:
        keeps_messages(self.agent, joins=False)
        self.session.send("wait")
        waiting = self.session.send("more")
        self.assertEqual(self.session.withdraw(), "more")
        self.assertIn("taken back", str(self.failureResultOf(waiting, SessionError).value))
        self.assertEqual(self.events(MessageWithdrawn), [MessageWithdrawn(number=1)])
        self.assertRaises(NotFound, self.session.withdraw)
        self.finish()
        self.assertEqual(len(self.session.history.turns), 1)

    def test_a_message_that_the_agent_has_cannot_be_taken_back(self) -> None:
        keeps_messages(self.agent, joins=True)
        self.session.send("wait")
        self.session.send("more")
        self.assertRaises(SessionError, self.session.withdraw, 1)
        self.finish()

    def test_cancelling_a_turn_takes_back_what_waits(self) -> None:
        keeps_messages(self.agent, joins=False)
        first, second, third = (self.session.send(text) for text in ("wait", "more", "most"))
        self.assertEqual(self.session.cancel(), Cancelled(True, ("more", "most")))
        self.failureResultOf(first, SessionError)
        for waiting in (second, third):
            self.assertIn("cancelled", str(self.failureResultOf(waiting, SessionError).value))
        self.world.clock.advance(0)
        self.assertEqual(len(self.session.history.turns), 1)

    def test_closing_takes_back_what_waits(self) -> None:
        keeps_messages(self.agent, joins=False)
        self.session.send("wait").addErrback(lambda _: None)
        waiting = self.session.send("more")
        self.close()
        self.failureResultOf(waiting, SessionError)

    def test_an_agent_that_keeps_none_refuses(self) -> None:
        self.session.send("wait").addErrback(lambda _: None)
        self.assertEqual(self.code("more"), "SESSION_NOT_READY")


class QueueTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.events: list[Any] = []
        self.queue = MessageQueue(self.events.append, lambda text: text.replace("secret", "[redacted]"))

    def test_events_have_no_secrets(self) -> None:
        self.queue.add("my secret")
        self.assertEqual(self.events, [MessageQueued(number=1, message="my [redacted]")])

    def test_the_number_of_messages_is_bounded(self) -> None:
        for _ in range(MOST):
            self.queue.add("x")
        self.assertRaises(SessionError, self.queue.add, "x")

    def test_who_no_longer_waits_takes_the_message_back(self) -> None:
        self.queue.add("x").answered.addErrback(lambda _: None).cancel()
        self.assertEqual((len(self.queue), self.events[1:]), (0, [MessageWithdrawn(number=1)]))

    @given(st.lists(st.sampled_from(("add", "next", "withdraw", "offer", "clear", "over")), max_size=30), st.booleans())
    def test_each_message_has_one_end(self, steps: list[str], joins: bool) -> None:
        events: list[Any] = []
        queue, ends = MessageQueue(events.append, str), list[Any]()
        agent = PlainAgent()
        taken = keeps_messages(agent, joins)
        for step in steps:
            match step:
                case "add":
                    queue.add("x").answered.addBoth(ends.append)
                case "next" if (queued := queue.next()) is not None:
                    queued.settle("reply")  # type: ignore[arg-type]
                case "withdraw":
                    try:
                        queue.withdraw()
                    except (NotFound, SessionError):
                        continue
                case "offer":
                    queue.offer(agent)  # type: ignore[arg-type]
                case "over":
                    while taken:
                        taken.pop(0)()
                    queue.turn_over("reply")  # type: ignore[arg-type]
                case "clear":
                    queue.clear("over")
        added, gone = steps.count("add"), [e for e in events if isinstance(e, MessageTaken | MessageWithdrawn)]
        self.assertEqual(len(gone) + len(queue), added)
        self.assertEqual(len({event.number for event in gone}), len(gone))
        self.assertLessEqual(len(ends), added)
