"""Agents with a screen of their own, in real containers."""

from __future__ import annotations

import json
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater

from ironcurtain.container import screened, terminal
from ironcurtain.container.errors import EngineUnavailable
from ironcurtain.container_agent.screen import TASK_LIMIT
from ironcurtain.errors import SessionError, UsageError
from ironcurtain.home.sections import Terminal
from ironcurtain.session import events
from ironcurtain.session.session import Session
from ironcurtain.terminal.attachment import Attachment
from ironcurtain.terminal.hub import Hub
from ironcurtain.terminal.model import Mode
from ironcurtain.view.events import describe
from tests.container_agent.worlds import KEY, ContainerTestCase, ScriptAgent, World, reactor
from tests.terminal.doubles import Eye


class ScreenCase(ContainerTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.patch(screened, "READY_SECONDS", 60.0)

    async def begin(self, world: World | None = None, **request: Any) -> Session:
        """Start a session with a terminal, and attach to it."""
        session = await self.start(world, terminal=(80, 24), **request)
        self.look(session)
        return session

    def look(self, session: Session) -> None:
        """Attach to a session's terminal."""
        assert session.terminal is not None
        self.hub: Hub = session.terminal
        self.eye = Eye()
        self.attachment: Attachment = self.hub.attach(self.eye, Mode.DRIVE, 80, 24)

    async def shows(self, text: bytes) -> None:
        """Wait until the program has written something."""
        while text not in self.eye.seen:
            await self.turn()

    async def turn(self) -> None:
        """Let time pass."""
        await deferLater(reactor, 0.01)


class LifeTests(ScreenCase):
    async def test_from_the_task_to_the_exit_status(self) -> None:
        session = await self.begin(task="-a $(task) \"of\" 'words'")
        self.assertEqual((session.state, session.info.terminal, session.info.status), ("ready", True, None))
        await self.shows(b"first|-a $(task) \"of\" 'words'|xterm-256color|sk-ant-")
        self.assertNotIn(KEY.encode(), self.eye.seen)
        self.attachment.typed(b"cat /etc/ironcurtain/told.md | head -1; id -un; stty size\r")
        await self.shows(b"# Where you are")
        await self.shows(b"24 80")
        self.attachment.typed(b"exit 7\r")
        await session.ended()
        self.assertEqual((session.state, session.reason), ("closed", "the agent ended: exit status 7"))
        self.assertEqual(session.info.status, 7)
        self.assertEqual(self.eye.end, ("the agent ended: exit status 7", 7))
        self.assertEqual(self.containers(), [])
        (run,), (end,) = self.audit(session, "run"), self.audit(session, "run-end")
        self.assertEqual((run["command"][-1], end["status"]), ("-a $(task) \"of\" 'words'", 7))
        self.assertEqual([each["sandbox"] for each in self.audit(session, "container")], ["container"])

    async def test_an_end_that_is_wanted(self) -> None:
        session = await self.begin()
        await self.shows(b"first|")
        # Not the echo of what is typed, which may come before the shell, and the shell itself ignores SIGTERM.
        self.attachment.typed(b"exec sh -c 'echo $0-$0; exec sleep 1000' up\r")
        await self.shows(b"up-up")
        await self.world.manager.close(session, "ended by ada")
        self.assertEqual(self.eye.end, ("the session was ended", 143))
        self.assertEqual((session.info.status, session.reason), (143, "ended by ada"))
        self.assertEqual(self.containers(), [])

    async def test_whatever_the_agent_makes_of_being_ended_the_status_is_one(self) -> None:
        session = await self.begin()
        await self.shows(b"first|")
        self.attachment.typed(b"trap 'exit 0' TERM; echo up-$?; sleep 1000 & wait\r")
        await self.shows(b"up-0")
        await self.world.manager.close(session, "ended by ada")
        self.assertEqual((self.eye.end, session.info.status), (("the session was ended", 143), 143))
        (end,) = self.audit(session, "run-end")
        self.assertEqual(end["status"], 0)

    async def test_without_anything_to_say(self) -> None:
        session = await self.begin()
        await self.shows(b"first|")
        self.attachment.typed(b"exit\r")
        await session.ended()
        self.assertEqual((self.eye.end, session.reason), (("the agent ended", 0), "the agent ended"))

    async def test_it_goes_on(self) -> None:
        session = await self.begin()
        await self.shows(b"first|")
        self.attachment.typed(b"echo kept > ~/file; exit\r")
        await session.ended()
        again = await self.begin(resume=session.id)
        await self.shows(b"first|")  # nothing was ever answered by a model
        self.attachment.typed(b"cat ~/file\r")
        await self.shows(b"kept\r\n")
        self.assertEqual(again.number, session.number)
        await self.world.manager.close(again, "enough")
        names = sorted(path.name for path in session.paths.directory.glob("recording*"))
        self.assertEqual(names, ["recording.1.cast", "recording.cast"])

    async def test_a_conversation_of_messages_goes_on_in_a_terminal(self) -> None:
        session = await self.start()
        await self.say(session, "echo hello")
        await self.world.manager.close(session, "enough")
        await self.begin(resume=session.id)
        await self.shows(b"later|")

    async def test_no_more_than_one_argument_can_hold(self) -> None:
        error = await self.fails(self.begin(task="x" * (TASK_LIMIT + 1)))
        self.assertIn("put it into a file", str(error))
        self.assertEqual((error.exit_status, self.containers()), (UsageError.exit_status, []))

    async def test_it_takes_no_messages(self) -> None:
        session = await self.begin()
        with self.assertRaises(SessionError):
            session.send("hello")


class FailureTests(ScreenCase):
    async def test_not_ready_in_time(self) -> None:
        self.patch(screened, "READY_SECONDS", 0.0)
        error = await self.fails(self.begin())
        self.assertIn("the agent did not start: the container was not ready for attaching within 0 s", str(error))
        self.assertEqual(self.containers(), [])
        (session,) = [*self.home.sessions.glob("*/session.json")]
        self.assertEqual(json.loads(session.read_text())["state"], "closed")

    async def test_a_program_that_is_not_there(self) -> None:
        self.world.adapter.screen = lambda facts, first, task="": ("no-such-program",)  # type: ignore[method-assign]
        session = await self.begin()
        await session.ended()
        self.assertEqual(session.info.status, 127)
        self.assertIn(b"no-such-program: not found", self.eye.seen)

    async def test_an_agent_without_a_screen_is_refused(self) -> None:
        self.patch(ScriptAgent, "supports_pty", False)
        error = await self.fails(self.begin(self.another()))
        self.assertEqual(str(error), "script cannot run in a terminal: script has no interactive interface")
        self.assertEqual((error.exit_status, self.containers()), (64, []))

    async def test_the_engine_is_gone(self) -> None:
        async def gone(container: str) -> int:
            await lost
            raise EngineUnavailable("unix:///run/engine.sock", "it closed the connection")

        lost: Deferred[None] = Deferred()
        self.patch(self.world.engine, "wait", gone)
        self.patch(terminal, "DRAIN_SECONDS", 0.0)  # it goes on in truth
        session = await self.begin()
        await self.shows(b"first|")
        lost.callback(None)
        await session.ended()
        assert self.eye.end is not None
        self.assertIn("the state of the container is unknown: no Docker Engine answers", self.eye.end[0])
        self.assertEqual((self.eye.end[1], session.info.status, session.reason), (None, None, self.eye.end[0]))


class TellingTests(ScreenCase):
    async def test_what_happens_is_marked_in_the_recording(self) -> None:
        session = await self.begin()
        await self.shows(b"first|")
        self.attachment.typed(b"secret\r")
        await self.shows(b"secret: not found")
        shared = session.shared_terminal
        for event in (
            events.ToolCallRaised(call_id="c1", server="git", tool="push", arguments="remote=origin"),
            events.BudgetWarning(message="half of it is used"),
        ):
            words = describe(event)
            assert words is not None
            shared.tell(words)
        await self.world.manager.close(session, "enough")
        self.assertEqual(session.paths.recording.stat().st_mode & 0o777, 0o600)
        head, *lines = map(json.loads, session.paths.recording.read_text().splitlines())
        self.assertEqual((head["width"], head["height"], head["title"]), (80, 24, "script"))
        marks = [data for _, kind, data in lines if kind == "m"]
        self.assertEqual(marks, ["call c1 git.push remote=origin", "half of it is used"])
        self.assertEqual({data for _, kind, data in lines if kind == "i"}, {"*"})
        self.assertIn(b"half of it is used", self.eye.seen)

    async def test_without_a_recording(self) -> None:
        world = self.another(self.with_settings(terminal=Terminal(record=False)))
        session = await self.begin(world)
        await self.shows(b"first|")
        await world.manager.close(session, "enough")
        self.assertFalse(session.paths.recording.exists())
