"""Hooks at calls of tools: they see what is forwarded, may refuse or change it, and see how it ended."""

from __future__ import annotations

import json

from ironcurtain.escalation import Outcome
from tests.mcp_proxy.support import Bench, RawAgent, fake_server
from tests.mcp_proxy.test_calls import code, text
from tests.mcp_proxy.test_protocol import Base


class HookedCallTests(Base):
    async def hooked(self, *escalate: str, **hooks: str) -> tuple[Bench, RawAgent]:
        """:returns: a proxy with these hooks; what each was asked is in a file of its name."""
        bench = await self.bench(fake_server(RECORD="record"), hooks=True, escalate=escalate)
        bench.hooks.mkdir(mode=0o700)
        for name, answer in hooks.items():
            path = bench.hooks / name.replace("_", "-")
            path.write_text(f"#!/bin/sh\ncat >>'{bench.top}/{name}'\necho '{answer}'\n")
            path.chmod(0o700)
        return bench, await bench.agent()

    def asked(self, bench: Bench, name: str) -> list[dict[str, object]]:
        """:returns: what a hook was asked."""
        path = bench.top / name
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    async def test_hooks_see_a_call_before_and_after_it(self) -> None:
        allow = '{"decision": "allow"}'
        bench, agent = await self.hooked(pre_exec=allow, post_exec=allow)
        self.assertIn("x", text(await agent.call("fake__echo", {"value": "x"})))
        (before,), (after,) = self.asked(bench, "pre_exec"), self.asked(bench, "post_exec")
        expected = {
            "type": "mcp",
            "server": "fake",
            "tool": "echo",
            "arguments": {"value": "x"},
            "session": "session-under-test",
            "decision": "allow",
        }
        self.assertEqual(before, expected)
        self.assertEqual({**after, "duration_ms": 0}, {**expected, "status": "success", "duration_ms": 0})

    async def test_denied_call_reaches_neither_person_nor_server(self) -> None:
        bench, agent = await self.hooked("echo", pre_exec='{"decision": "deny", "reason": "not on Fridays"}')
        answer = await agent.call("fake__echo", {"value": "x"})
        self.assertEqual(code(answer), "denied-by-rule")
        self.assertIn("not on Fridays (rule hook pre-exec)", text(answer))
        self.assertEqual(bench.escalations.history(), [])
        self.assertNotIn("tools/call", [message.get("method") for message in bench.seen_by_server()])
        (record,) = bench.records("call")
        self.assertEqual((record["decision"], record["rule"]), ("deny", "hook pre-exec"))
        self.assertEqual(self.asked(bench, "pre_exec")[0]["decision"], "escalate")

    async def test_call_that_the_policy_denies_is_not_shown_to_hooks(self) -> None:
        bench = await self.bench(hooks=True, deny=["echo"])
        bench.hooks.mkdir(mode=0o755)
        agent = await bench.agent()
        self.assertIn("rule deny-echo", text(await agent.call("fake__echo", {"value": "x"})))

    async def test_changed_arguments_are_judged_shown_and_sent(self) -> None:
        bench, agent = await self.hooked("echo", pre_exec='{"decision": "modify", "arguments": {"value": "y"}}')
        answer = agent.request("tools/call", {"name": "fake__echo", "arguments": {"value": "x"}})
        self.assertEqual((await bench.pending()).request.arguments, {"value": "y"})
        await bench.decide(Outcome.APPROVED)
        self.assertIn("y", text(await answer))
        self.assertEqual(bench.records("call")[0]["arguments"], {"value": "y"})

    async def test_changed_arguments_do_not_get_around_the_policy(self) -> None:
        bench, agent = await self.hooked(pre_exec='{"decision": "modify"}')
        self.assertIn("wants other arguments, but names none", text(await agent.call("fake__echo", {"value": "x"})))
        self.assertNotIn("tools/call", [message.get("method") for message in bench.seen_by_server()])

    async def test_hook_after_a_call_can_keep_the_result_from_the_agent(self) -> None:
        bench, agent = await self.hooked(post_exec='{"decision": "deny", "reason": "too much"}')
        answer = await agent.call("fake__echo", {"value": "x"})
        self.assertEqual((code(answer), text(answer)), ("denied-by-hook", "RESULT WITHHELD: too much"))
        self.assertEqual([record["status"] for record in bench.records("outcome")], ["failed"])

    async def test_hooks_that_others_could_change_deny_every_call(self) -> None:
        bench = await self.bench(hooks=True)
        bench.hooks.mkdir(mode=0o755)
        agent = await bench.agent()
        self.assertIn("must be a directory of your own", text(await agent.call("fake__echo", {"value": "x"})))
        bench.hooks.rmdir()
        self.assertIn("x", text(await agent.call("fake__echo", {"value": "x"})))
