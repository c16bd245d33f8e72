"""MCP servers in words."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.session import events
from ironcurtain.session.server_events import ServersStarting
from ironcurtain.text.columns import unstyled
from ironcurtain.text.display import time_of_day
from ironcurtain.view.events import describe
from ironcurtain.view.narration import Narration
from ironcurtain.view.sessions import remarks, session_lines
from tests.console.doubles import NOW, session


class StartingTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.shown = Narration()

    def status(self, *happened: events.SessionEvent) -> str:
        """:returns: the status line after these events."""
        for event in happened:
            self.assertEqual(self.shown.apply(events.Stamped(1, NOW, event)), [])
        return unstyled(self.shown.live(NOW + 14).status)

    def test_status_line_names_servers_until_they_are_there(self) -> None:
        ready = self.status(events.StateChanged(state="ready"))
        self.assertEqual(
            self.status(ServersStarting(servers={"slow\x1b": NOW, "b": NOW + 3})),
            "○ ready · MCP servers slow\\x1b, b are still starting, 14 s",
        )
        self.assertEqual(
            self.status(
                events.StateChanged(state="processing"),
                events.TurnStarted(turn=1, message="hi"),
                ServersStarting(servers={"b": NOW + 3}),
            ),
            "● thinking 14 s · MCP server b is still starting, 11 s",
        )
        self.assertEqual(self.status(events.StateChanged(state="ready"), ServersStarting()), ready)

    def test_lines_that_stay_name_the_time_of_day(self) -> None:
        starting, over = describe(ServersStarting(servers={"b": NOW})), describe(ServersStarting())
        assert starting is not None and over is not None
        self.assertEqual(starting.text, f"MCP server b is still starting, since {time_of_day(NOW)}")
        self.assertEqual(over.text, "no MCP server is starting any longer")

    def test_descriptions_of_sessions_name_them(self) -> None:
        waits = "MCP server slow is still starting, 1:05"
        info = session(2, servers_starting={"slow": NOW})
        self.assertEqual(list(remarks([session(1), info], NOW + 65)), [f"Session 2: {waits}."])
        lines = [unstyled(line) for line in session_lines(info, (), 79, NOW + 65)]
        self.assertIn(f"waits     {waits}", lines)
