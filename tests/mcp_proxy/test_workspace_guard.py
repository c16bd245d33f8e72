"""Protected paths that appear in a workspace while its session runs."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from msgspec.structs import replace
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase, TestCase

from ironcurtain.errors import UsageError
from ironcurtain.escalation import Outcome
from ironcurtain.mcp_proxy.workspace_guard import END_SECONDS, LOOK_SECONDS, WorkspaceGuard
from tests.mcp_proxy.support import Bench, fake_server, until


class GuardTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.workspace = Path(tempfile.mkdtemp(prefix="ic")).resolve()
        self.addCleanup(shutil.rmtree, self.workspace)
        self.clock = Clock()
        self.appeared: list[str] = []
        self.ends: list[str] = []

    def guard(self, *names: str) -> WorkspaceGuard:
        protected = [f"{self.workspace}/{name}" for name in names]
        guard = WorkspaceGuard(
            str(self.workspace),
            protected,
            self.clock,
            lambda path, why: self.appeared.append(path),
            lambda why: self.ends.append(why),
        )
        guard.start()
        self.addCleanup(guard.stop)
        return guard

    def test_existing_path_keeps_the_session_from_starting(self) -> None:
        (self.workspace / ".env").touch()
        error = self.assertRaises(UsageError, self.guard, ".env")
        self.assertIn(f"{self.workspace}/.env", str(error))

    def test_path_that_appears_ends_the_session_once(self) -> None:
        for name in ("file", "config/secrets.yaml", "directory"):
            self.ends.clear()
            self.appeared.clear()
            guard = self.guard(name)
            self.clock.advance(LOOK_SECONDS)
            self.assertEqual((guard.look(), self.ends), ("", []))
            (self.workspace / name).parent.mkdir(exist_ok=True)
            (self.workspace / name).write_text("key")
            self.clock.advance(LOOK_SECONDS)
            self.assertEqual((self.appeared, self.ends), ([f"{self.workspace}/{name}"], []))
            self.clock.advance(END_SECONDS)
            self.assertEqual(self.ends, [guard.look()])
            self.assertIn(f"the protected path {name} has appeared", self.ends[0])
            (self.workspace / name).unlink()  # what was read meanwhile is not passed on either
            self.assertIn("so the session ends", guard.look())
            self.clock.advance(LOOK_SECONDS)
            self.assertEqual(len(self.ends), 1)

    def test_call_notices_before_the_next_look(self) -> None:
        guard = self.guard("key")
        (self.workspace / "draft").touch()
        (self.workspace / "draft").rename(self.workspace / "key")
        self.assertIn("protected path key", guard.look())

    def test_protected_link_counts_once_a_file_is_in_its_place(self) -> None:
        (self.workspace / ".env").symlink_to("/etc/hostname")
        guard = self.guard(".env")
        self.assertEqual(guard.look(), "")
        (self.workspace / "draft").touch()
        (self.workspace / "draft").rename(self.workspace / ".env")
        self.assertNotEqual(guard.look(), "")

    def test_workspace_without_protected_names_is_not_watched(self) -> None:
        WorkspaceGuard(str(self.workspace), ["/etc/shadow"], self.clock, print, print).start()
        self.assertEqual(self.clock.getDelayedCalls(), [])


class CallTests(TestCase):
    """Through the gate, with a server that the sandbox would let read the workspace."""

    async def test_no_result_is_passed_on_and_no_call_is_made_once_a_protected_path_is_there(self) -> None:
        bench = Bench(
            [fake_server(RECORD="record")],
            ground=lambda ground: replace(ground, protected=(f"{ground.workspace}/key",)),
        )
        self.addCleanup(bench.stopped)
        agent = await (await bench.start()).agent()
        self.assertNotIn("isError", str(await agent.call("fake__echo", {"a": 1})))
        calling = Deferred.fromCoroutine(agent.call("fake__sleep", {"seconds": 0.5}))
        await until(lambda: "sleep" in str(bench.events), "the call")
        (bench.workspace / "key").write_text("content")
        made = await calling
        self.assertIn("RESULT WITHHELD", str(made))
        self.assertNotIn(str(bench.workspace), str(made))
        (bench.workspace / "key").unlink()
        self.assertIn("protected-path-appeared", str(await agent.call("fake__echo", {"a": 2})))
        await until(lambda: bool(bench.ends), "the end")
        self.assertEqual([bench.told[-1]], bench.ends)
        self.assertEqual(
            [record["path"] for record in bench.records("protected-path-appeared")], [f"{bench.workspace}/key"]
        )

    async def test_call_that_waited_for_a_person_is_not_made_once_a_protected_path_is_there(self) -> None:
        bench = Bench(
            [fake_server(RECORD="record")],
            escalate=["echo"],
            ground=lambda ground: replace(ground, protected=(f"{ground.workspace}/key",)),
        )
        self.addCleanup(bench.stopped)
        agent = await (await bench.start()).agent()
        calling = Deferred.fromCoroutine(agent.call("fake__echo", {"a": 1}))
        await bench.pending()
        (bench.workspace / "key").write_text("content")
        await bench.decide(Outcome.APPROVED)
        self.assertIn("NOTHING WAS DONE", str(await calling))
        self.assertNotIn("tools/call", [message.get("method") for message in bench.seen_by_server()])

    async def test_form_that_a_person_filled_in_does_not_reach_the_server_once_a_protected_path_is_there(self) -> None:
        bench = Bench(
            [fake_server(RECORD="record")],
            ground=lambda ground: replace(ground, protected=(f"{ground.workspace}/key",)),
        )
        self.addCleanup(bench.stopped)
        agent = await (await bench.start()).agent()
        form = {"message": "Who?", "requestedSchema": {"properties": {"name": {"type": "string"}}}}
        asking = agent.call("fake__ask", {"method": "elicitation/create", "params": form})
        calling = Deferred.fromCoroutine(asking)
        waiting = await bench.pending()
        (bench.workspace / "key").write_text("content")
        bench.escalations.answer(waiting.number, {"name": "blue-whale-42"}, "tester")
        await calling
        (question,) = bench.records("question")
        (outcome,) = [record for record in bench.records("outcome") if record["callId"] == question["callId"]]
        self.assertEqual((outcome["status"], outcome["error"]), ("cancelled", "session-stopped"))
        self.assertNotIn("blue-whale-42", str(bench.seen_by_server()))
