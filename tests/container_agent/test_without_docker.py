"""Sessions whose agent runs in a sandbox of bubblewrap, with a program of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from twisted.internet.defer import Deferred
from twisted.internet.endpoints import UNIXServerEndpoint
from twisted.trial.unittest import SkipTest, SynchronousTestCase, TestCase

from ironcurtain.container.engine import Engine
from ironcurtain.container.errors import EngineUnavailable
from ironcurtain.container_agent.places import Places
from ironcurtain.errors import IronCurtainError, Unavailable, UsageError
from ironcurtain.home.sections import Agents
from ironcurtain.home.settings import Settings
from ironcurtain.process.accounts import Account
from ironcurtain.sandbox import bubblewrap
from tests.audit.doubles import scratch
from tests.container.test_client import Peers, answer, version
from tests.container_agent.apart import ApartCase
from tests.container_agent.test_screen import ScreenCase
from tests.container_agent.worlds import ScriptAgent, reactor
from tests.machine import UID
from tests.programs import program

Setting = Literal["", "container", "bubblewrap"]

IN_BUBBLEWRAP = {"sandbox": "bubblewrap"}

BEGUN = "until grep -aq 7777[7] /proc/$!/cmdline; do sleep 0.1; done"
"""Waits until what was started in the background is no longer the shell."""

PLAIN = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
"""The environment of a git without anybody's settings."""


def demand() -> None:
    """:raises SkipTest: no such sandbox can be made here."""
    if (reason := bubblewrap.available(Account(UID, UID).switched)) is not None:
        raise SkipTest(reason)


class SessionTests(ScreenCase, ApartCase):
    def setUp(self) -> None:
        demand()
        super().setUp()
        self.world.engine = Engine(reactor, str(self.top / "nothing.sock"))

    async def test_conversation_from_start_to_resume(self) -> None:
        session = await self.start(options=IN_BUBBLEWRAP)
        said = await self.say(session, "echo $0 $1; pwd; echo kept >~/file; sleep 77777 &", BEGUN)
        self.assertTrue(said.startswith("sh first\n/workspace\n"), said)
        self.assertEqual(await self.say(session, "cat /proc/[0-9]*/cmdline | grep -c 77777 -a"), "1\n")
        self.assertIn("bubblewrap", session.info.options["sandbox"])
        await self.world.manager.close(session, "enough")
        again = await self.start(resume=session.id)
        self.assertEqual(again.info.options["sandbox"], "bubblewrap")
        self.assertEqual(await self.say(again, "cat ~/file"), "kept\n")
        self.assertEqual(self.containers(), [])

    async def test_next_message_gets_a_new_sandbox_after_one_that_died(self) -> None:
        session = await self.start(options=IN_BUBBLEWRAP)
        error = await self.fails(self.say(session, "kill -9 2; sleep 100"))
        self.assertIn("the sandbox ended", str(error))
        self.assertIn("The next message starts a new one", str(error))
        self.assertEqual(await self.say(session, "echo back"), "back\n")
        self.assertEqual([each["sandbox"] for each in self.audit(session, "container")], ["bubblewrap"] * 2)

    async def test_two_at_once_are_apart(self) -> None:
        first, second = await self.start(options=IN_BUBBLEWRAP), await self.start(options=IN_BUBBLEWRAP)
        await self.assert_apart(first, second)

    async def test_git_works_in_a_linked_worktree_at_its_own_path(self) -> None:
        git = program("git")
        top = Path(tempfile.mkdtemp(prefix="ic", dir="/var/tmp")).resolve()
        self.addCleanup(shutil.rmtree, top)
        top.chmod(0o755)
        own = ["-c", "user.name=Ann", "-c", "user.email=ann@home.test"]
        for words in (["init", "-qb", "main"], [*own, "commit", "-qm", "1", "--allow-empty"]):
            (top / "main").mkdir(exist_ok=True)
            subprocess.run([git, *words], cwd=top / "main", check=True, env=PLAIN)
        subprocess.run([git, "worktree", "add", "-q", "../tree"], cwd=top / "main", check=True, env=PLAIN)
        subprocess.run(["chown", "-R", f"{UID}", str(top)], check=True)
        session = await self.start(options=IN_BUBBLEWRAP, workspace=top / "tree")
        commit = "git -c user.name=Ann -c user.email=a@home.test commit -qam 2"
        said = await self.say(
            session, f"pwd; echo 1 >new; git add new && {commit}; git log --format=%s; git status -s 2>&1"
        )
        self.assertEqual(said, f"{top}/tree\n2\n1\n")

    async def test_screen_gets_keys_sizes_and_its_own_end(self) -> None:
        session = await self.begin(options=IN_BUBBLEWRAP, task="a task")
        await self.shows(b"first|a task|xterm-256color|sk-ant-")
        self.attachment.typed(b"stty size; cat /etc/ironcurtain/told.md | head -1\r")
        await self.shows(b"24 80")
        await self.shows(b"# Where you are")
        self.attachment.resized(100, 30)
        self.attachment.typed(b"stty size\r")
        await self.shows(b"30 100")
        self.attachment.typed(b"sh -c 'echo up-up$0; exec sleep 1000' x\r")
        await self.shows(b"up-upx")
        self.attachment.typed(b"\x03")
        self.attachment.typed(b"exit 7\r")
        await session.ended()
        self.assertEqual((session.reason, session.info.status), ("the agent ended: exit status 7", 7))

    async def test_screen_that_is_ended(self) -> None:
        session = await self.begin(options=IN_BUBBLEWRAP)
        await self.shows(b"first|")
        self.attachment.typed(b"exec sleep 1000\r")
        await self.world.manager.close(session, "ended by ada")
        self.assertEqual(self.eye.end, ("the session was ended", 143))


class ChoiceTests(SynchronousTestCase):
    def choose(self, asked: str, engine: Callable[[], Engine], setting: Setting = "", search: str = os.defpath) -> str:
        settings = Settings(agents=Agents(sandbox=setting))
        places = Places(ScriptAgent(), settings, {"PATH": search, "HOME": "/nonexistent"})
        return self.successResultOf(Deferred.fromCoroutine(places.choose(asked, engine, Account(UID, UID), "")))

    def none(self) -> Engine:
        raise EngineUnavailable("unix:///nothing.sock", "nobody listens")

    def refusal(
        self, error: type[IronCurtainError], asked: str, setting: Setting = "", search: str = os.defpath
    ) -> str:
        places = Places(
            ScriptAgent(),
            Settings(agents=Agents(sandbox=setting)),
            {"PATH": search, "HOME": "/nonexistent"},
        )
        choosing = Deferred.fromCoroutine(places.choose(asked, self.none, Account(UID, UID), ""))
        return str(self.failureResultOf(choosing, error).value)

    def test_bubblewrap_is_chosen_where_there_is_no_engine(self) -> None:
        demand()
        self.assertEqual(self.choose("", self.none), "bubblewrap")

    def test_settings_choose_and_the_request_wins(self) -> None:
        demand()
        self.assertEqual(self.choose("", self.none, "bubblewrap"), "bubblewrap")
        self.assertEqual(self.choose("bubblewrap", self.none, "container"), "bubblewrap")
        self.refusal(EngineUnavailable, "", "container")

    def test_container_that_was_asked_for_is_never_replaced(self) -> None:
        self.assertIn("no Docker Engine answers", self.refusal(EngineUnavailable, "container"))

    def test_without_either_both_reasons_are_named(self) -> None:
        said = self.refusal(Unavailable, "", search="/nonexistent")
        self.assertIn("no Docker Engine answers", said)
        self.assertIn("without Docker", said)

    def test_unknown_sandbox_is_refused(self) -> None:
        self.assertIn("choose container or bubblewrap", self.refusal(UsageError, "landlock"))


class UnfitEngineTests(TestCase):
    """An Engine whose containers no agent could use, such as a rootless one."""

    async def choose(self, asked: str) -> str:
        """:returns: where an agent runs."""
        path = str(scratch(self) / "engine.sock")
        rootless = answer('{"SecurityOptions": ["name=seccomp,profile=default", "name=rootless"]}')
        peers = Peers(version("1.41"), rootless)
        port = await UNIXServerEndpoint(reactor, path).listen(peers)
        self.addCleanup(port.stopListening)
        self.addCleanup(lambda: Deferred.fromCoroutine(peers.closed()))
        engine = Engine(reactor, path)
        self.addCleanup(engine.close)
        places = Places(ScriptAgent(), Settings(), {"PATH": os.defpath, "HOME": "/nonexistent"})
        return await places.choose(asked, lambda: engine, Account(UID, UID), "")

    async def test_bubblewrap_is_chosen_in_its_place(self) -> None:
        demand()
        self.assertEqual(await self.choose(""), "bubblewrap")

    async def test_containers_that_were_asked_for_are_refused(self) -> None:
        failed = await self.assertFailure(Deferred.fromCoroutine(self.choose("container")), Unavailable)
        self.assertIn("the Docker Engine maps accounts to others", str(failed))
