from __future__ import annotations

import os
import shutil
import stat

from ironcurtain.home.sections import Agents, Budget
from ironcurtain.session import events
from ironcurtain.session.model import State
from tests import engine
from tests.audit.doubles import open_files
from tests.container_agent.worlds import KEY, ContainerTestCase, reactor
from tests.machine import UID


class TurnTests(ContainerTestCase):
    async def test_the_message_comes_by_standard_input_and_the_answer_from_standard_output(self) -> None:
        session = await self.start()
        said = await self.say(session, 'echo "$1 $(id -u):$(id -g) $PWD $HOME"', "echo heard >&2")
        self.assertEqual(said, f"first {UID}:{UID} /workspace /home/agent\n")
        self.assertEqual([event.text for event in self.seen(session, events.AgentDiagnostic)], ["heard"])
        self.assertIn("script: heard", session.paths.log.read_text())
        self.assertEqual(await self.say(session, 'echo "$1"'), "later\n")
        self.assertEqual([record["status"] for record in self.audit(session, "run-end")], [0, 0])

    async def test_what_it_writes_is_the_account_s_and_stays(self) -> None:
        session = await self.start()
        await self.say(session, "echo hello > /workspace/file", "echo state > $HOME/mine")
        await self.world.manager.close(session, "enough")
        file = session.paths.sandbox / "file"
        self.assertEqual((file.read_text(), file.stat().st_uid, file.stat().st_gid), ("hello\n", UID, UID))
        self.assertEqual((session.paths.agent_home / "mine").read_text(), "state\n")

    async def test_a_long_message_and_a_long_answer(self) -> None:
        session = await self.start()
        text = "x" * 300_000
        self.assertEqual(await self.say(session, f": {text}", "cat <<'.'", text, "."), f"{text}\n")

    async def test_failures_are_told_and_recorded_and_the_session_goes_on(self) -> None:
        session = await self.start()
        error = await self.fails(session.send("echo broken >&2; exit 7"))
        self.assertEqual((error.code, str(error)), ("MESSAGE_FAILED", "status 7: broken\n"))
        self.assertEqual(str(await self.fails(session.send("exit 3"))), "no money")
        self.assertEqual(
            [(r["failure"], r["status"]) for r in self.audit(session, "turn-failed")], [("failed", 7), ("quota", 3)]
        )
        self.assertIs(session.state, State.READY)
        self.assertEqual(await self.say(session, "echo $1"), "first\n")  # none was answered before

    async def test_the_agent_is_told_where_it_is_and_what_tools_it_has(self) -> None:
        session = await self.start()
        told = await self.say(session, "cat /etc/ironcurtain/told.md")
        for words in ("filesystem__read_text_file", "api.anthropic.com", "/workspace"):
            self.assertIn(words, told)
        self.assertEqual(await self.say(session, "cat $HOME/.agent/settings"), "ours\n")
        self.assertEqual([each["sandbox"] for each in self.audit(session, "container")], ["container"])
        said = await self.say(session, "echo x > /etc/ironcurtain/told.md || echo no")
        self.assertEqual(said, "no\n")


class EndingTests(ContainerTestCase):
    """What ends a message before its time."""

    STUBBORN = "trap '' TERM; setsid sleep 54321 & echo begun >&2; while :; do sleep 1; done"

    async def test_cancelling_ends_all_that_the_program_started(self) -> None:
        session = await self.start()
        sent = session.send(self.STUBBORN)
        await self.until(session, events.AgentDiagnostic)
        self.assertTrue(session.cancel().cancelled)
        error = await self.fails(sent)
        self.assertEqual(str(error), "the message was cancelled")
        self.assertIs(session.state, State.READY)
        self.assertNotIn("54321", await self.say(session, "ps"))

    async def test_the_time_limit(self) -> None:
        world = self.another(self.with_settings(agents=Agents(turn_seconds=0.5)))
        session = await self.start(world)
        error = await self.fails(session.send(self.STUBBORN))
        self.assertIn("agents.turn_seconds", str(error))
        self.assertEqual(self.audit(session, "run-end")[0]["status"], -1)

    async def test_the_budget_of_time(self) -> None:
        world = self.another(self.with_settings(budget=Budget(seconds=0.5)))
        session = await self.start(world)
        error = await self.fails(session.send("sleep 60"))
        self.assertIn("budget used up", str(error))
        self.assertIn("budget used up", str(await self.fails(session.send("true"))))
        self.assertEqual(len(self.seen(session, events.BudgetExhausted)), 1)

    async def test_a_container_that_is_killed_fails_the_message_and_the_next_one_has_a_new_container(self) -> None:
        session = await self.start()
        await self.say(session, "echo kept > /workspace/file")
        (before,) = self.containers()
        sent = session.send("echo begun >&2; sleep 60")
        await self.until(session, events.AgentDiagnostic)
        engine.call("POST", f"/containers/{before['Id']}/kill")
        error = await self.fails(sent)
        self.assertIn("it was killed, exit status 137", str(error))
        self.assertIs(session.state, State.READY)
        self.assertEqual(len(self.seen(session, events.ContainerEnded)), 1)
        self.assertEqual(await self.say(session, "cat /workspace/file"), "kept\n")
        (after,) = self.containers()
        self.assertNotEqual(before["Id"], after["Id"])
        self.assertEqual(before["Names"], after["Names"])

    async def test_a_container_that_dies_between_messages(self) -> None:
        session = await self.start()
        (before,) = self.containers()
        engine.call("DELETE", f"/containers/{before['Id']}?force=1")
        await self.until(session, events.ContainerEnded)
        self.assertEqual(await self.say(session, "echo back"), "back\n")

    async def test_what_outlives_its_message_in_numbers_is_ended_and_named(self) -> None:
        session = await self.start()
        filling = "i=0; while [ $i -lt 70 ]; do setsid sleep 5000 & i=$((i+1)); done; sleep 1"
        await session.send(f"({filling}) >/dev/null 2>&1; exit 0")
        limit = "the limit of 64 processes and threads (resources.pids)"
        self.assertIn(f"{limit} is reached", self.seen(session, events.Notice)[-1].text)
        self.assertEqual(await self.say(session, "ps | grep -c 'sleep 500[0]' || true"), "0\n")

    async def test_processes_that_are_used_up_are_said_to_be(self) -> None:
        session = await self.start()
        bomb = "bomb() { bomb | bomb & }; bomb; sleep 3; exit 7"
        error = await self.fails(session.send(bomb))
        self.assertIn("the limit of 64 processes and threads (resources.pids) was reached", str(error))
        self.assertIn("raise resources.pids", str(error))
        self.assertEqual(await self.say(session, "echo back"), "back\n")
        self.assertEqual(len(self.containers()), 1)

    async def test_memory_that_is_used_up_is_said_to_be(self) -> None:
        session = await self.start()
        error = await self.fails(session.send("x=$(head -c 900000000 /dev/zero | tr '\\0' x)"))
        self.assertIn("memory", str(error))


class DeadProxyTests(ContainerTestCase):
    async def test_a_socket_that_goes_is_told_soon_and_nothing_goes_on(self) -> None:
        for proxy, name in (("MCP", "proxy.sock"), ("MITM", "mitm-proxy.sock")):
            session = await self.start()
            sent = session.send("echo begun >&2; sleep 60")
            await self.until(session, events.AgentDiagnostic)
            began = reactor.seconds()
            (self.home.session_run(session.id).agent / name).unlink()
            down = await self.until(session, events.ProxyDown)
            self.assertLess(reactor.seconds() - began, 10.0)
            self.assertEqual(down.proxy, proxy)
            self.assertIn(f"the {proxy} proxy is dead", str(await self.fails(sent)))
            self.assertIn(f"the {proxy} proxy is dead", str(await self.fails(session.send("true"))))
            self.assertEqual(self.audit(session, "proxy-down")[0]["proxy"], proxy)
            await self.world.manager.close(session, "enough")


class ClosingTests(ContainerTestCase):
    async def test_nothing_is_left(self) -> None:
        opened: list[list[str]] = []
        for _ in range(2):  # the first child of a process makes pipes that stay
            session = await self.start()
            await self.say(session, "true")
            run = self.home.session_run(session.id).directory
            self.assertTrue(run.is_dir())
            self.assertEqual(len(self.containers()), 1)
            await self.world.manager.close(session, "enough")
            self.assertEqual((self.containers(), run.exists()), ([], False))
            opened.append(open_files(alone=not opened))
        self.assertEqual(opened[0], opened[1])
        self.assertEqual([path.name for path in self.home.slots.iterdir()], ["lock"])

    async def test_closing_while_it_works(self) -> None:
        session = await self.start()
        sent = session.send("echo begun >&2; sleep 60")
        sent.addErrback(lambda _: None)
        await self.until(session, events.AgentDiagnostic)
        await self.world.manager.close(session, "enough")
        self.assertEqual(self.containers(), [])

    async def test_what_the_agent_planted_is_reported(self) -> None:
        session = await self.start()
        await self.say(session, "mkdir -p .git/hooks .vscode", "echo x > .git/hooks/pre-commit", "mkfifo pipe")
        await self.say(session, "echo {} > .mcp.json; ln -s /etc/shadow link; echo y > README")
        await self.world.manager.close(session, "enough")
        told = {event.path for event in self.seen(session, events.FileToReview)}
        self.assertEqual(told, {".git/hooks/pre-commit", ".mcp.json", "link", "pipe"})
        self.assertTrue(session.paths.findings.exists())


class SecretTests(ContainerTestCase):
    async def test_the_real_key_is_nowhere_and_the_fake_one_works_nowhere_else(self) -> None:
        session = await self.start()
        look = "cat /proc/[0-9]*/environ; cat /proc/[0-9]*/cmdline; set; cat /etc/ironcurtain/* $HOME/.agent/*"
        seen = await self.say(session, f"{{ {look}; }} 2>/dev/null; true")
        self.assertIn("AGENT_KEY=[redacted", seen)
        self.assertNotIn("canary", seen)
        fake = (await self.say(session, 'printf %s "$AGENT_KEY" | rev'))[::-1]  # as it is, it would be redacted
        self.assertTrue(fake.startswith("sk-ant-api03-"))
        (container,) = self.containers()
        described = str(engine.call("GET", f"/containers/{container['Id']}/json"))
        history = str(engine.call("GET", f"/images/{container['ImageID']}/history"))
        await self.world.manager.close(session, "enough")
        files = [path for path in self.home.path.rglob("*") if path.is_file()]
        self.assertGreater(len(files), 8)
        for text in (described, history, *(path.read_bytes().decode("latin-1") for path in files)):
            self.assertNotIn(KEY, text)
            self.assertNotIn("canary-real", text)
        self.assertNotIn(fake, session.paths.audit.read_text())


class HomeTests(ContainerTestCase):
    async def test_links_that_an_agent_left_are_not_followed_when_it_goes_on(self) -> None:
        outside = self.top / "outside"
        outside.mkdir()
        (outside / "settings").write_text("theirs\n")
        session = await self.start()
        await self.say(session, "echo changed > $HOME/.agent/state")
        await self.world.manager.close(session, "enough")
        home = session.paths.agent_home
        shutil.rmtree(home / ".agent")
        (home / ".agent").symlink_to(outside)
        session = await self.start(resume=session.id)
        self.assertEqual(await self.say(session, "cat $HOME/.agent/settings"), "ours\n")
        self.assertEqual(os.listdir(outside), ["settings"])
        self.assertEqual((outside / "settings").read_text(), "theirs\n")
        status = (home / ".agent" / "settings").lstat()
        self.assertEqual((status.st_uid, stat.S_IMODE(status.st_mode)), (UID, 0o600))
