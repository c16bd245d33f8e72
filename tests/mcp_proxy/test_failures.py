"""Servers that misbehave: their callers are told, the others live, and nothing is left running."""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any
from unittest import SkipTest

from twisted.internet.defer import Deferred, gatherResults

from ironcurtain.mcp_proxy import channel, launch, link, restarting, router
from ironcurtain.mcp_proxy.servers_config import CommandServer, Reading, SandboxConfig
from ironcurtain.sandbox import bubblewrap
from tests.audit.doubles import scratch
from tests.mcp_proxy.support import fake_server, sleep, until
from tests.mcp_proxy.test_calls import code, text
from tests.mcp_proxy.test_protocol import Base


def runs(pid: int) -> bool:
    """Whether a process is there, and no zombie."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


class FailureTests(Base):
    """Crashes, junk, silence."""

    async def pid(self, agent: Any, server: str = "fake") -> int:
        """:returns: the process id of a server."""
        answer = await agent.call(f"{server}__environment", {"time": time.time()})
        return int(json.loads(text(answer))["pid"])

    async def test_a_crash_is_told_and_mended(self) -> None:
        agent = await self.agent(fake_server(), fake_server("other"))
        before, other = await self.pid(agent), await self.pid(agent, "other")
        for tool in ("crash", "crash_midline"):
            both = [Deferred.fromCoroutine(agent.call(f"fake__{name}")) for name in ("silent", tool)]
            self.assertEqual([code(answer) for answer in await gatherResults(both)], ["backend-failed"] * 2)
            self.assertEqual(await self.pid(agent, "other"), other)
            await agent.expect(lambda m: m.get("method") == "notifications/tools/list_changed")
            self.assertNotEqual(await self.pid(agent), before)

    async def test_calls_while_it_is_down_fail_at_once(self) -> None:
        self.patch(restarting, "FIRST_DELAY", 30.0)
        agent = await self.agent()
        await agent.call("fake__crash")
        answer = await agent.call("fake__echo")
        self.assertEqual(code(answer), "backend-failed")
        self.assertIn("restarted", text(answer))
        names = [tool["name"] for tool in (await agent.request("tools/list"))["result"]["tools"]]
        self.assertIn("fake__echo", names)

    async def test_delays_grow(self) -> None:
        self.patch(restarting, "FIRST_DELAY", 0.05)
        bench = await self.bench(fake_server(EXIT="3"))
        started = time.monotonic()
        await bench.proxy.gate.settled(100)
        await sleep(0.5)
        backend: Any = bench.proxy.gate._backends.get("fake")
        self.assertIsNone(backend.introduction)
        self.assertLess(time.monotonic() - started, 50)
        agent = await bench.agent()
        self.assertEqual((await agent.request("tools/list"))["result"]["tools"], [])

    async def test_the_reason_is_the_status_every_time(self) -> None:
        self.patch(restarting, "FIRST_DELAY", 0.01)
        self.patch(restarting, "LONGEST_DELAY", 0.01)
        bench = await self.bench(fake_server(EXIT="3"))
        await until(lambda: len(bench.errors) >= 10, "restarts")
        self.assertEqual({why for _, why in bench.errors}, {"did not start: ended with status 3"})
        self.assertEqual(len(bench.down), 1)

    async def test_the_reason_of_our_own_server_is_what_it_said(self) -> None:
        self.patch(restarting, "FIRST_DELAY", 0.01)
        self.patch(restarting, "LONGEST_DELAY", 0.01)
        own = CommandServer("own", sys.executable, ("-I", "-m", "ironcurtain.servers.files", "/nowhere"), {}, {})
        bench = await self.bench(own)
        await until(lambda: len(bench.errors) >= 10, "restarts")
        said = "/nowhere: No such file or directory; give an existing directory"
        self.assertEqual({why for _, why in bench.errors}, {said, f"did not start: ended with status 69: {said}"})

    async def test_junk_between_answers_is_dropped(self) -> None:
        agent = await self.agent()
        self.assertEqual(text(await agent.call("fake__garbage")), "after garbage")
        self.assertIn("structuredContent", (await agent.call("fake__echo"))["result"])
        self.assertEqual(agent.messages, [])
        self.assertTrue(any("not understood" in line for _, line in self.top.errors))

    async def test_a_message_over_the_limit_ends_the_server(self) -> None:
        agent = await self.agent()
        self.assertEqual(code(await agent.call("fake__overlong")), "backend-failed")
        await agent.expect(lambda m: m.get("method") == "notifications/tools/list_changed")
        self.assertIn("structuredContent", (await agent.call("fake__echo"))["result"])

    async def test_error_output_is_kept_in_bounds(self) -> None:
        agent = await self.agent()
        started = time.monotonic()
        await agent.call("fake__stderr", {"lines": 2000})
        await until(lambda: len(self.top.errors) >= link.LINES_A_SECOND)
        await agent.call("fake__echo")
        server, first = self.top.errors[0]
        self.assertEqual((server, len(first)), ("fake", channel.ERROR_LINE_LIMIT))
        seconds = time.monotonic() - started + 2  # those that had begun and had not ended
        self.assertLess(len(self.top.errors), seconds * link.LINES_A_SECOND + 5)

    async def test_a_server_that_prints_junk_is_stopped(self) -> None:
        self.patch(restarting, "FIRST_DELAY", 60.0)
        agent = await self.agent(CommandServer("noisy", "/usr/bin/yes", sandbox=None), fake_server())
        self.assertIn("structuredContent", (await agent.call("fake__echo"))["result"])
        await until(lambda: any("was stopped" in line for _, line in self.top.errors))
        lines = [line for server, line in self.top.errors if server == "noisy"]
        self.assertIn("writes invalid MCP messages to its standard output, and was stopped", lines[-1])
        self.assertLess(len(lines), link.JUNK_LINES + 5)

    async def test_error_output_without_an_end_is_drained_and_dropped(self) -> None:
        self.patch(restarting, "FIRST_DELAY", 60.0)
        process = Path(scratch(self), "process")
        line = ("-c", f"echo $$ >{process}; exec cat /dev/zero >&2")
        self.patch(router, "START_SECONDS", 0.0)
        bench = await self.bench(CommandServer("noisy", "/bin/sh", line, sandbox=None), fake_server())
        await until(lambda: bool(bench.proxy.gate.tools()))
        agent = await bench.agent()
        self.assertIn("structuredContent", (await agent.call("fake__echo"))["result"])
        await until(lambda: process.exists() and process.read_text().endswith("\n"))

        def written() -> int:
            with open(f"/proc/{int(process.read_text())}/io") as file:
                return next(int(line.split()[1]) for line in file if line.startswith("wchar"))

        await until(lambda: written() > 16 * 1024 * 1024)
        self.assertIn("structuredContent", (await agent.call("fake__echo"))["result"])
        self.assertLess(len(bench.errors), 5)

    async def test_much_error_output_does_not_delay_a_call(self) -> None:
        agent = await self.agent(fake_server())
        # 4 MiB: at the pace at which lines are logged, it would take more than an hour.
        self.assertIn("result", await agent.call("fake__stderr", {"lines": 400_000}))

    async def test_a_mute_server_holds_nobody_up_for_long(self) -> None:
        self.patch(router, "START_SECONDS", 1000.0)
        mute = CommandServer("mute", "/usr/bin/sleep", ("600",), sandbox=None, start_seconds=1000.0)
        bench = await self.bench(mute, fake_server())
        bench.proxy._backends._starts._started -= 1000.0  # so much later the agent comes
        await until(lambda: bench.proxy._backends.starting() == {"mute": ""})
        agent = await bench.agent()
        self.assertIn("structuredContent", (await agent.call("fake__echo"))["result"])

    async def test_silence_is_not_waited_for_for_ever(self) -> None:
        self.patch(link, "SWEEP_SECONDS", 0.05)
        agent = await self.agent(fake_server(RECORD="record"))
        self.patch(link, "SILENCE_SECONDS", 0.0)  # the handshake may take its time
        self.assertEqual(code(await agent.call("fake__silent")), "backend-failed")
        await until(lambda: self.top.seen_by_server()[-1]["method"] == "notifications/cancelled")

    async def test_a_server_can_have_a_time_limit_of_its_own(self) -> None:
        self.patch(link, "SWEEP_SECONDS", 0.05)
        agent = await self.agent(replace(fake_server(), call_seconds=0.1))
        self.assertIn("has not answered for 0.1 s", str(await agent.call("fake__silent")))

    async def test_a_server_that_does_not_read_fails_its_calls_only(self) -> None:
        self.patch(channel, "UNSENT_LIMIT", 1024 * 1024)
        agent = await self.agent(fake_server(), fake_server("other"))
        await agent.call("fake__deaf")
        for number in range(2):
            message = {"name": "fake__echo", "arguments": {"x": "y" * 1024 * 1024, "n": number}}
            agent.send({"jsonrpc": "2.0", "id": f"big{number}", "method": "tools/call", "params": message})
        self.assertEqual(code(await agent.call("fake__echo")), "backend-failed")
        self.assertIn("structuredContent", (await agent.call("other__echo"))["result"])

    async def test_a_wrong_version_is_refused(self) -> None:
        bench = await self.bench(fake_server(VERSION="2026-07-28"))
        await bench.proxy.gate.settled(60)
        self.assertEqual(bench.proxy.gate.tools(), [])

    async def test_a_command_that_is_not_there(self) -> None:
        self.patch(restarting, "FIRST_DELAY", 0.01)
        bench = await self.bench(CommandServer("gone", "no-such-program"), fake_server())
        await bench.proxy.gate.settled(60)
        self.assertEqual({tool.server for tool in bench.proxy.gate.tools()}, {"fake"})
        await until(lambda: len([line for server, line in bench.errors if server == "gone"]) > 2)
        (((server, why)),) = bench.down  # once for all its starts
        self.assertEqual((server, bench.proxy.failures), ("gone", {"gone": why}))
        self.assertIn("did not start: there is no program 'no-such-program'", why)

    async def test_a_server_with_a_problem_in_its_entry_is_not_started(self) -> None:
        reading = Reading(problems=("env.KEY: the environment variable KEY is not set",))
        servers = (replace(fake_server(RECORD="record"), reading=reading), fake_server("other"))
        bench = await self.bench(*servers)
        await bench.proxy.gate.settled(60)
        self.assertEqual({tool.server for tool in bench.proxy.gate.tools()}, {"other"})
        self.assertEqual(bench.down, [("fake", f"did not start: {reading.problems[0]}")])
        self.assertFalse((bench.workspace / "record").exists())

    async def test_a_client_that_lists_the_tools_hears_which_servers_are_down(self) -> None:
        bench = await self.bench(CommandServer("gone", "no-such-program"), fake_server())
        agent = await bench.agent(hello=False)
        self.assertIn("logging", (await agent.hello())["capabilities"])
        await agent.request("tools/list")
        (said,) = (m["params"] for m in agent.messages if m.get("method") == "notifications/message")
        self.assertEqual((said["level"], said["logger"]), ("error", "ironcurtain"))
        self.assertIn("The MCP server gone did not start: there is no program 'no-such-program'", said["data"])
        agent.messages.clear()
        await agent.request("logging/setLevel", {"level": "critical"})
        await agent.request("tools/list")
        self.assertEqual([m for m in agent.messages if m.get("method") == "notifications/message"], [])


class ProcessTests(Base):
    """What runs, as what, and for how long."""

    async def test_a_server_has_a_small_environment_and_a_group_of_its_own(self) -> None:
        environ = {**os.environ, "ANTHROPIC_API_KEY": "secret", "LC_ALL": "C", "TZ": "UTC"}
        agent = await self.agent(fake_server(MINE="1"), environ=environ)
        found = json.loads(text(await agent.call("fake__environment")))
        self.assertEqual(found["group"], found["pid"])
        self.assertEqual(found["environment"]["MINE"], "1")
        self.assertEqual(found["environment"]["LC_ALL"], "C")
        allowed = {"PATH", "HOME", "LANG", "TERM", "TZ", "USER", "TMPDIR", "MINE", "PWD", *launch.CAUTIOUS}
        names = {name for name in found["environment"] if not name.startswith("LC_")}
        self.assertLessEqual(names, allowed)

    async def test_it_starts_in_the_workspace(self) -> None:
        agent = await self.agent()
        self.assertTrue(text(await agent.call("fake__where")).startswith("/workspace and"))

    async def test_nothing_runs_after_the_end(self) -> None:
        self.patch(channel, "POLITE_SECONDS", 0.3)
        self.patch(channel, "TERM_SECONDS", 0.3)
        agent = await self.agent(fake_server(), fake_server("other"))
        grandchild = int(text(await agent.call("fake__child")))
        stubborn = int(text(await agent.call("other__stubborn")))
        self.assertTrue(runs(grandchild) and runs(stubborn))
        await self.top.proxy.stop()
        await until(lambda: not (runs(grandchild) or runs(stubborn)), "the end of what was killed")
        self.assertFalse(self.top.socket.exists())
        await self.top.proxy.stop()

    async def test_a_polite_server_ends_by_itself(self) -> None:
        self.patch(channel, "POLITE_SECONDS", 60.0)
        agent = await self.agent()
        await agent.call("fake__echo")
        started = time.monotonic()
        await self.top.proxy.stop()
        self.assertLess(time.monotonic() - started, channel.POLITE_SECONDS)

    async def test_stopping_while_servers_start(self) -> None:
        with NamedTemporaryFile() as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            slow = fake_server(HELD_BY=held.name)
            bench = await self.bench(slow, fake_server("crashing", EXIT="1"))
            await sleep(0.3)
            await bench.proxy.stop()

    async def test_a_sandboxed_server_is_alone(self) -> None:
        if (problem := bubblewrap.available()) is not None:
            raise SkipTest(problem)
        python = (sys.prefix, sys.base_prefix, os.path.dirname(__file__))
        plain = fake_server("boxed")
        sandbox = SandboxConfig(read=python, write=("/tmp",))
        agent = await self.agent(CommandServer("boxed", plain.command, plain.args, sandbox=sandbox))
        found = json.loads(text(await agent.call("boxed__environment")))
        self.assertLess(found["pid"], 10)
