from __future__ import annotations

from typing import get_args

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.session import events
from ironcurtain.session.event import Event


def make_event(kind: type[Event]) -> Event:
    """:returns: an event with something in each field."""
    values: dict[object, object] = {str: "text", int: 3, float: 1.5, bool: True, tuple[str, ...]: ("text",)}
    fields: dict[str, object] = {field.name: values.get(field.type, {"a": 1}) for field in msgspec.structs.fields(kind)}
    if kind is events.StepFinished:
        fields["cost"] = 0.25
    fields.pop("form", None)
    return kind(**fields)


class EventLogTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.log = events.EventLog(lambda: 1.5e9, kept=10)

    def emit(self, count: int) -> None:
        for number in range(count):
            self.log.emit(events.AgentText(text=str(number)))

    def test_a_reader_gets_what_it_does_not_have(self) -> None:
        self.emit(5)
        self.assertEqual([stamped.sequence for stamped in self.log.after(0)], [1, 2, 3, 4, 5])
        self.assertEqual([stamped.sequence for stamped in self.log.after(3)], [4, 5])
        self.assertEqual(self.log.after(5), [])
        self.assertEqual(self.log.after(99), [])

    def test_a_slow_reader_is_told_how_much_it_missed(self) -> None:
        self.emit(25)
        first, *rest = self.log.after(3)
        self.assertEqual((first.sequence, first.event), (15, events.Missed(count=12)))
        self.assertEqual([stamped.sequence for stamped in rest], list(range(16, 26)))

    @settings(deadline=None)
    @given(st.lists(st.tuples(st.booleans(), st.integers(0, 15)), max_size=40))
    def test_missed_and_read_add_up(self, steps: list[tuple[bool, int]]) -> None:
        log, read, last = events.EventLog(lambda: 0.0, kept=10), 0, 0
        for reads, count in steps:
            for _ in range(count):
                log.emit(events.AgentText(text="x"))
            if reads:
                for stamped in log.after(last):
                    read += stamped.event.count if isinstance(stamped.event, events.Missed) else 1
                    self.assertGreater(stamped.sequence, last)
                    last = stamped.sequence
                self.assertEqual(read, log.last)

    def test_watchers_are_woken_until_they_go(self) -> None:
        woken: list[int] = []
        stop = self.log.watch(lambda: woken.append(self.log.last))
        self.emit(2)
        stop()
        stop()
        self.emit(1)
        self.assertEqual(woken, [1, 2])

    def test_a_watcher_may_go_while_it_is_woken(self) -> None:
        woken: list[str] = []

        def hear_once() -> None:
            woken.append("one")
            stop()

        stop = self.log.watch(hear_once)
        self.log.watch(lambda: woken.append("two"))
        self.emit(2)
        self.assertEqual(woken, ["one", "two", "two"])


class WireTests(SynchronousTestCase):
    def test_every_event_survives_the_journey(self) -> None:
        kinds = get_args(events.SessionEvent)
        self.assertGreater(len(kinds), 15)
        for kind in kinds:
            stamped = events.Stamped(7, 1.5e9, make_event(kind))  # type: ignore[arg-type]
            again = msgspec.json.decode(msgspec.json.encode(stamped), type=events.Stamped)
            self.assertEqual(again, stamped)
