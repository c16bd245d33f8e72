from __future__ import annotations

import io

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.cli.progress import ProgressDisplay
from ironcurtain.session import events
from ironcurtain.session.server_events import ServersStarting
from ironcurtain.text.display import time_of_day


class Terminal(io.StringIO):
    """A stream that is one."""

    def isatty(self) -> bool:
        return True


class Starting:
    """A session that tells what it does."""

    def __init__(self) -> None:
        self.events = events.EventLog(lambda: 0.0)

    def tell(self, *texts: str) -> None:
        """Tell each."""
        for text in texts:
            self.events.emit(events.Progress(text=text))
            self.events.emit(events.StateChanged(state="initializing"))


class ProgressTests(SynchronousTestCase):
    def shown(self, stream: io.StringIO) -> str:
        """:returns: what is written of two events, and one that comes too late."""
        session, progress = Starting(), ProgressDisplay(stream)
        progress.follow(session)  # type: ignore[arg-type]
        session.tell("one", "two\x1b[2J\nlines")
        progress.done()
        session.tell("late")
        return stream.getvalue()

    def test_lines_where_there_is_no_terminal(self) -> None:
        self.assertEqual(self.shown(io.StringIO()), "one\ntwo\\x1b[2J\\nlines\n")

    def test_what_the_person_should_know_stays(self) -> None:
        session, stream = Starting(), Terminal()
        progress = ProgressDisplay(stream, notices=True)
        progress.follow(session)  # type: ignore[arg-type]
        session.tell("one")
        session.events.emit(events.Notice(text="a tool is withheld\x1b"))
        progress.done()
        self.assertEqual(stream.getvalue(), "\r\x1b[Kone\r\x1b[Ka tool is withheld\\x1b\n\r\x1b[K")

    def test_slow_servers_are_named_until_they_are_there(self) -> None:
        for stream, around in ((Terminal(), "\r\x1b[K{}\r\x1b[K\r\x1b[K"), (io.StringIO(), "{}\n")):
            session, progress = Starting(), ProgressDisplay(stream)
            progress.follow(session)  # type: ignore[arg-type]
            for servers in ({"slow": 5.0}, {}):
                session.events.emit(ServersStarting(servers=servers))
            progress.done()
            said = f"MCP server slow is still starting, since {time_of_day(5.0)}"
            self.assertEqual(stream.getvalue(), around.format(said))

    def test_one_line_that_goes_on_a_terminal(self) -> None:
        self.assertEqual(self.shown(Terminal()), "\r\x1b[Kone\r\x1b[Ktwo [2J lines\r\x1b[K")

    def test_whether_there_was_any_event(self) -> None:
        session, progress = Starting(), ProgressDisplay(io.StringIO())
        progress.follow(session)  # type: ignore[arg-type]
        self.assertFalse(progress.heard_any)
        session.tell("one")
        self.assertTrue(progress.heard_any)
