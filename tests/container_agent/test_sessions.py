"""Starting, counting and resuming sessions with containers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from twisted.internet.defer import Deferred

from ironcurtain.container.engine import Engine
from ironcurtain.container.errors import EngineUnavailable
from ironcurtain.errors import ConfigurationError, NotFound, Unavailable, UsageError
from ironcurtain.home.sections import LimitSettings, Resources
from ironcurtain.home.settings import Settings
from ironcurtain.process.accounts import Account
from ironcurtain.session import events
from ironcurtain.session.history import History
from ironcurtain.session.manager import TooMany
from ironcurtain.session.model import SessionRequest
from tests import engine
from tests.container_agent.apart import ApartCase
from tests.container_agent.worlds import ContainerTestCase, reactor
from tests.machine import UID
from tests.model_stub.certificates import Authority
from tests.project.git_server import publish, serve

BEGUN = "until grep -aq 7777[7] /proc/$!/cmdline; do sleep 0.1; done"
"""Waits until what was started in the background is no longer the shell."""

PROCESSES = "cat /proc/[0-9]*/cmdline 2>/dev/null | grep -ac 7777[7]; true"
"""Counts lines of what was started so: one or none."""


class MachineTests(ContainerTestCase):
    settings = Settings(resources=Resources(memory_mb=256, pids=64, cpus=4096.0))

    async def test_fewer_processors_than_the_settings_say(self) -> None:
        session = await self.start()
        self.assertEqual(await self.say(session, "echo hello"), "hello\n")


class BeforeAnythingIsMadeTests(ContainerTestCase):
    def assertNothingMade(self) -> None:
        self.assertEqual(list(self.home.sessions.iterdir()) if self.home.sessions.exists() else [], [])
        self.assertEqual(self.containers(), [])
        self.assertFalse(self.home.numbers("session").exists())

    async def test_without_docker(self) -> None:
        self.world.engine = Engine(reactor, str(self.top / "nothing.sock"))
        error = await self.fails(self.start(options={"sandbox": "container"}))
        self.assertIsInstance(error, EngineUnavailable)
        self.assertEqual(error.exit_status, 69)
        self.assertIn("ironcurtain doctor", str(error))
        self.assertNothingMade()

    async def test_without_a_key(self) -> None:
        self.environ.pop("ANTHROPIC_API_KEY")
        world = self.another()
        error = await self.fails(self.start(world))
        self.assertIsInstance(error, ConfigurationError)
        self.assertIn("ANTHROPIC_API_KEY", str(error))
        self.assertNothingMade()

    async def test_as_root(self) -> None:
        self.world.account = Account(0, 0)
        self.assertIn("never run as root", str(await self.fails(self.start())))
        self.assertNothingMade()

    async def test_in_a_workspace_where_the_account_cannot_write(self) -> None:
        if os.geteuid() != 0:
            raise self.skipTest("only root can be somebody else")
        project = self.top / "project"
        project.mkdir()
        error = await self.fails(self.start(workspace=project))
        self.assertIsInstance(error, UsageError)
        self.assertIn(str(project), str(error))
        self.assertNothingMade()

    async def test_with_a_repository_that_cannot_be_cloned(self) -> None:
        for options in ({"repo": "ext::sh -c evil"}, {"repo": "http://host.test/x"}, {"repo": 5}):
            self.assertIsInstance(await self.fails(self.start(options=options)), UsageError)
        self.assertIsInstance(
            await self.fails(self.start(options={"repo": "https://host.test/x"}, workspace=self.top)), UsageError
        )
        self.assertNothingMade()


class ProtectedTests(ContainerTestCase):
    async def test_protected_path_that_appears_ends_the_session_and_its_container(self) -> None:
        policy = self.top / "protecting.toml"
        policy.write_text('version = 1\nprotected = ["/workspace/config/key"]\n')
        session = await self.start(options={"policy": str(policy)})
        self.assertEqual(await self.say(session, "mkdir config; echo made"), "made\n")
        error = await self.fails(
            self.say(session, "echo x > draft; mv draft config/key; sleep 60; cat config/key; echo still here")
        )
        self.assertNotIn("still here", str(error))
        await session.ended()
        self.assertIn("the protected path config/key has appeared", session.reason)
        self.assertEqual(self.containers(), [])
        self.assertEqual(len(self.audit(session, "protected-path-appeared")), 1)
        error = await self.fails(self.start(resume=session.id))
        self.assertIn("contains the protected path", str(error))
        (session.workspace / "config" / "key").unlink()
        await self.start(resume=session.id)


class CountTests(ApartCase):
    async def test_those_at_once_are_apart_and_only_so_many_over_all_processes_of_the_home(self) -> None:
        settings = self.with_settings(limits=LimitSettings(max_concurrent_sessions=2))
        one, other = self.another(settings), self.another(settings)
        first, second = await self.start(one), await self.start(other)
        await self.assert_apart(first, second)
        for world in (one, other):
            error = await self.fails(self.start(world))
            self.assertIsInstance(error, TooMany)
            self.assertIn("max_concurrent_sessions", str(error))
        self.assertEqual(len(list(self.home.sessions.iterdir())), 2)
        await one.manager.close(first, "enough")
        await self.start(other)

    async def test_a_failed_start_gives_its_place_back(self) -> None:
        settings = self.with_settings(limits=LimitSettings(max_concurrent_sessions=1))
        world = self.another(settings)
        world.adapter.environment = broken  # type: ignore[method-assign]
        error = await self.fails(self.start(world))
        self.assertIn("no such model", str(error))
        self.assertEqual(self.containers(), [])
        await self.start(self.another(settings))


def broken(facts: object) -> dict[str, str]:
    """
    :raises UsageError: always.
    """
    raise UsageError("there is no such model")


class ResumeTests(ContainerTestCase):
    async def test_a_closed_session_goes_on_with_all_it_had(self) -> None:
        session = await self.start(task="mend it", options={"model": "big"})
        await self.say(
            session, "echo work > /workspace/file; echo talk > $HOME/talk; echo changed > $HOME/.agent/state"
        )
        await self.world.manager.close(session, "enough")
        again = await self.start(resume=session.id)
        self.assertEqual((again.id, again.number, again.label), (session.id, session.number, session.label))
        self.assertEqual(again.info.options, {"model": "big", "sandbox": "container"})
        said = await self.say(again, "echo $1 $RESUMED; cat /workspace/file $HOME/talk $HOME/.agent/state")
        self.assertEqual(said, "later True\nwork\ntalk\nchanged\n")
        self.assertEqual([turn.number for turn in again.history.turns], [1, 2])
        self.assertEqual(len(self.audit(again, "resumed")), 1)

    async def test_an_agent_whose_turn_was_cut_off_is_told(self) -> None:
        session = await self.start()
        await self.say(session, "true")
        await self.world.manager.close(session, "enough")
        History(session.paths.history).begin("mend it", "now")  # as a process does that is killed then
        again = await self.start(resume=session.id)
        await self.say(again, "true")  # the shell takes what it is told for a command
        await self.say(again, "true")
        told = [event.text for event in self.seen(again, events.AgentDiagnostic)]
        self.assertEqual(["IronCurtain" in line for line in told], [True])

    async def test_a_live_session_cannot_be_resumed(self) -> None:
        session = await self.start()
        for world in (self.world, self.another()):
            error = await self.fails(world.manager.create(SessionRequest("", resume=session.id)))
            self.assertIsInstance(error, Unavailable)
            self.assertIn(f"session {session.number} runs now", str(error))
        self.assertEqual(len(self.containers()), 1)

    async def test_what_cannot_be_resumed(self) -> None:
        session = await self.start()
        await self.world.manager.close(session, "enough")
        self.assertIsInstance(await self.fails(self.start(resume="nothing")), NotFound)
        self.assertIsInstance(await self.fails(self.start(resume="../../etc")), NotFound)
        other = SessionRequest("other", resume=session.id)
        self.assertIsInstance(await self.fails(self.world.manager.create(other)), UsageError)
        elsewhere = SessionRequest("", workspace=self.top, resume=session.id)
        self.assertIsInstance(await self.fails(self.world.manager.create(elsewhere)), UsageError)
        session.paths.snapshot.write_text("{")
        self.assertIsInstance(await self.fails(self.start(resume=session.id)), ConfigurationError)

    async def test_after_its_process_was_killed(self) -> None:
        """Its container and sockets are still there, under the names of the new ones."""
        program = (
            "import sys; sys.path.insert(0, sys.argv[1])\n"
            "from tests.container_agent.owner import main\n"
            "main(*sys.argv[2:])\n"
        )
        root = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
        process = subprocess.Popen(
            [sys.executable, "-c", program, root, str(self.home.path), str(self.home.runtime), str(UID)],
            stdout=subprocess.PIPE,
            env={**os.environ, **self.environ, **engine.environment()},
            text=True,
        )
        assert process.stdout is not None
        session_id = process.stdout.readline().strip()
        process.send_signal(signal.SIGKILL)
        process.communicate()
        (left,) = self.containers()
        self.assertEqual(left["State"], "running")
        run = self.home.session_run(session_id).directory
        self.assertTrue(run.is_dir())
        session = await self.start(resume=session_id)
        self.assertEqual(await self.say(session, "cat /workspace/file"), "before the crash\n")
        (now,) = self.containers()
        self.assertNotEqual(now["Id"], left["Id"])
        told = " ".join(event.text for event in self.seen(session, events.Progress))
        self.assertIn("left behind", told)


class WorkspaceTests(ContainerTestCase):
    async def test_a_project_of_the_user_s(self) -> None:
        project = self.top / "project"
        project.mkdir()
        (project / "README").write_text("hello\n")
        project.chmod(0o777)
        session = await self.start(workspace=project)
        self.assertEqual(await self.say(session, "cat README; echo new > made"), "hello\n")
        await self.world.manager.close(session, "enough")
        self.assertEqual((project / "made").read_text(), "new\n")
        self.assertTrue(session.paths.manifest.exists())

    async def test_starting_can_be_cancelled_at_any_time(self) -> None:
        for seconds in (0.05, 0.2, 0.4, 0.6):
            starting = Deferred.fromCoroutine(self.start())
            timer = reactor.callLater(seconds, starting.cancel)
            starting.addBoth(lambda _: None)
            await starting
            if timer.active():
                timer.cancel()
            for session in self.world.manager.all():
                await self.world.manager.close(session, "enough")
            self.assertEqual(self.containers(), [])
            self.assertEqual([path for path in self.home.run.glob("*") if path.name != "slots"], [])


class RepositoryTests(ContainerTestCase):
    async def test_it_is_there_before_the_agent_starts(self) -> None:
        person, authority = self.top / "person", Authority.make("git test")
        person.mkdir()
        self.top.chmod(0o755)  # so that git, as another account, can read that person's settings
        (person / "ca.pem").write_bytes(authority.pem)
        (person / ".gitconfig").write_text(f"[http]\n\tsslCAInfo = {person}/ca.pem\n")
        publish(self.top, {**self.environ, "HOME": str(person)})
        port, address = serve(reactor, self.top, authority)
        self.addCleanup(port.stopListening)
        self.world.account = Account(UID, self.world.account.gid, "", str(person))
        self.environ["HOME"] = str(person)
        session = await self.start(options={"repo": address})
        said = await self.say(session, "cat README; ls -A .git/hooks 2>/dev/null; echo more >> README; id -u")
        self.assertEqual(said, f"hello\n{UID}\n")
        await self.world.manager.close(session, "enough")
        self.assertEqual([record["address"] for record in self.audit(session, "clone")], [address])
        again = await self.start(resume=session.id)  # without a second clone
        self.assertEqual(await self.say(again, "cat README"), "hello\nmore\n")
        self.assertEqual(len(self.audit(again, "clone")), 1)

    async def test_a_clone_that_fails_leaves_nothing_running(self) -> None:
        error = await self.fails(self.start(options={"repo": "https://localhost:1/x.git"}))
        self.assertIn("the project did not start: git clone failed", str(error))
        self.assertEqual(error.exit_status, 69)
        self.assertEqual(self.containers(), [])
