"""Tool calls through the gate: policy, audit, people, cancellation, results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from ironcurtain.audit.log import AuditLog
from ironcurtain.errors import StaleDecision
from ironcurtain.escalation import Outcome
from ironcurtain.mcp_proxy import admission, connection
from ironcurtain.mcp_proxy.calls import CallDecided, CallFinished, CallRaised
from ironcurtain.mcp_proxy.gate import GateLimits
from ironcurtain.secrets.redaction import TOO_DEEP, Redactor
from tests.mcp_proxy.support import SESSION, RawAgent, at_once, fake_server, sleep, the_reactor, until
from tests.mcp_proxy.test_protocol import Base


def code(answer: dict[str, Any]) -> str:
    """:returns: the stable word of a refusal."""
    assert answer["result"]["isError"] is True, answer
    return str(answer["result"]["_meta"]["ironcurtain/code"])


def text(answer: dict[str, Any]) -> str:
    """:returns: the text of a result."""
    return str(answer["result"]["content"][0]["text"])


def progress_of(agent: RawAgent, token: Any) -> list[float]:
    """:returns: the values of the reports that came so far."""
    reports = [m["params"] for m in agent.messages if m.get("method") == "notifications/progress"]
    return [report["progress"] for report in reports if report["progressToken"] == token]


class PolicyTests(Base):
    """What the policy says is done, and recorded."""

    async def test_an_allowed_call_is_recorded_before_and_after(self) -> None:
        agent = await self.agent()
        await agent.call("fake__echo", {"a": 1})
        (call,), (outcome,) = self.top.records("call"), self.top.records("outcome")
        self.assertEqual((call["server"], call["tool"], call["arguments"]), ("fake", "echo", {"a": 1}))
        self.assertEqual((call["decision"], call["rule"]), ("allow", "rest"))
        self.assertEqual(call["policyVersion"], self.top.engine.policy_version)
        self.assertEqual((outcome["callId"], outcome["status"]), (call["callId"], "success"))
        self.assertEqual(len(outcome["digest"]), 64)
        self.assertNotIn("content", json.dumps(outcome))
        raised, finished = self.top.events
        assert isinstance(raised, CallRaised) and isinstance(finished, CallFinished)
        self.assertEqual((raised.tool, raised.decision), ("echo", "allow"))
        self.assertEqual(
            (finished.call_id, finished.status, finished.size), (raised.call_id, "success", outcome["size"])
        )

    async def test_a_denied_call_is_never_made(self) -> None:
        agent = await self.agent(fake_server(RECORD="record"), deny=["crash"])
        answer = await agent.call("fake__crash")
        self.assertEqual(code(answer), "denied-by-rule")
        self.assertEqual(answer["result"]["_meta"]["ironcurtain/rule"], "deny-crash")
        self.assertTrue(text(answer).startswith("DENIED: "))
        self.assertNotIn("tools/call", [message["method"] for message in self.top.seen_by_server()])
        self.assertEqual(self.top.records("outcome")[0]["status"], "denied")

    async def test_a_call_nested_too_deeply_is_denied_and_recorded(self) -> None:
        agent = await self.agent()
        for inner in ("[" * 900 + "]" * 900, '{"a":' * 900 + "1" + "}" * 900, '[{"a":' * 450 + "1" + "}]" * 450):
            answer = await agent.call("fake__echo", {"a": json.loads(inner)})
            self.assertIn("DENIED: the arguments are nested too deeply", text(answer))
            call, outcome = self.top.records("call")[-1], self.top.records("outcome")[-1]
            self.assertEqual((call["rule"], outcome["status"]), ("invalid-arguments", "denied"))
            self.assertIn(TOO_DEEP, json.dumps(call["arguments"]))
        self.assertIn('{"a": [[1]]}', text(await agent.call("fake__echo", {"a": [[1]]})))

    async def test_a_failed_call_is_recorded_with_a_part_of_its_text(self) -> None:
        agent = await self.agent()
        answer = await agent.call("fake__fail")
        self.assertTrue(answer["result"]["isError"])
        (outcome,) = self.top.records("outcome")
        self.assertEqual(outcome["status"], "error")
        self.assertEqual(outcome["error"], ("it failed: " + "y" * 2000)[:1000])

    async def test_arguments_go_out_with_the_path_that_was_judged(self) -> None:
        annotate = {"file": {"path": ("read-path",)}, "echo": {"path": ("read-path",)}}
        agent = await self.agent(fake_server("filesystem"), annotate=annotate)
        (self.top.workspace / "link").symlink_to("real.txt")
        answer = await agent.call("filesystem__echo", {"path": "link"})
        self.assertEqual(answer["result"]["structuredContent"]["got"], {"path": "/workspace/real.txt"})
        recorded = self.top.records("call")[0]["arguments"]
        self.assertEqual(recorded, {"path": f"{self.top.workspace}/real.txt"})

    async def test_results_name_the_workspace_as_the_agent_does(self) -> None:
        agent = await self.agent()
        answer = await agent.call("fake__where")
        other = f"{self.top.workspace}-other"
        self.assertEqual(text(answer), f"/workspace and /workspace/a.txt but not {other}")
        self.assertEqual(answer["result"]["structuredContent"], {"path": "/workspace/b"})

    async def test_git_works_where_it_was_told_to(self) -> None:
        tools = {"git_set_working_dir": {"path": ("read-path",)}, "git_status": {"path": ("read-path",)}}
        agent = await self.agent(fake_server("git", TOOLS="git_set_working_dir,git_status"), annotate=tools)
        self.assertEqual(code(await agent.call("git__git_status")), "denied-by-rule")
        (self.top.workspace / "repo").mkdir()
        self.assertNotIn("_meta", (await agent.call("git__git_set_working_dir", {"path": "repo"}))["result"])
        self.assertEqual(text(await agent.call("git__git_status")), "git_status was called")
        self.assertEqual(self.top.records("call")[-1]["arguments"], {"path": f"{self.top.workspace}/repo"})

    async def test_the_same_call_over_and_over_is_stopped(self) -> None:
        agent = await self.agent()
        answers = [await agent.call("fake__echo", {"a": 1, "b": 2}) for _ in range(20)]
        self.assertFalse(any(answer["result"].get("isError") for answer in answers))
        agent.raw(
            b'{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"fake__echo","arguments":{"b":2,"a":1}}}\n'
        )
        self.assertEqual(code(await agent.answer_to("x")), "circuit-breaker")
        self.assertNotIn("_meta", (await agent.call("fake__echo", {"a": 1, "b": 3}))["result"])

    async def test_large_results_are_not_passed_on(self) -> None:
        agent = await self.agent(limits=GateLimits(result_bytes=1000))
        self.assertEqual(code(await agent.call("fake__big", {"size": 1000})), "result-too-large")
        self.assertEqual(self.top.records("outcome")[0]["status"], "success")
        self.assertEqual(text(await agent.call("fake__big", {"size": 10})), "x" * 10)

    async def test_what_is_no_result_fails(self) -> None:
        agent = await self.agent()
        self.assertEqual(code(await agent.call("fake__not_an_object")), "backend-failed")

    async def test_code_mode_calls_the_same_gate(self) -> None:
        bench = await self.bench(deny=["crash"])
        await bench.proxy.gate.settled(60)
        tools = {tool.public_name: tool for tool in bench.proxy.gate.tools()}
        self.assertEqual(tools["fake__echo"].name, "echo")
        result = await bench.proxy.gate.call("fake", "echo", {"a": 1})
        self.assertEqual((json.loads(result.raw)["structuredContent"], result.is_error), ({"got": {"a": 1}}, False))
        denied = await bench.proxy.gate.call("fake", "crash", {})
        self.assertTrue(denied.is_error)
        for arguments in ({"x": "\ud800"}, {"x": object()}):
            odd = await bench.proxy.gate.call("fake", "echo", arguments)
            self.assertIn(b"invalid-arguments", odd.raw)
        error = await bench.proxy.gate.call("fake", "error", {})
        self.assertIn(b"refused in /workspace", error.error or b"")
        self.assertTrue(json.loads(error.raw)["isError"])


class EscalationTests(Base):
    """A person decides on one call; everything else goes on."""

    async def test_an_approved_call_runs_once(self) -> None:
        agent = await self.agent(fake_server(RECORD="record"), escalate=["echo"])
        waiting = agent.call("fake__echo", {"a": 1})
        answer = Deferred.fromCoroutine(waiting)
        escalation = await self.top.pending()
        self.assertEqual((await agent.request("ping"))["result"], {})
        self.assertEqual(text(await agent.call("fake__file")), "file was called")
        self.assertEqual(dict(escalation.request.arguments), {"a": 1})
        await self.top.decide(Outcome.APPROVED)
        self.assertEqual((await answer)["result"]["structuredContent"], {"got": {"a": 1}})
        sent = [m["params"]["name"] for m in self.top.seen_by_server() if m["method"] == "tools/call"]
        self.assertEqual(sent, ["file", "echo"])
        (decision,) = self.top.records("decision")
        self.assertEqual((decision["outcome"], decision["by"], decision["number"]), ("approved", "tester", 1))
        self.assertIn(CallDecided(decision["callId"], 1, "approved", "tester"), self.top.events)

    async def test_an_approval_is_void_when_the_call_means_something_else_now(self) -> None:
        annotate = {"file": {"path": ("read-path",)}}
        agent = await self.agent(fake_server(RECORD="record"), escalate=["file"], annotate=annotate)
        outside = self.top.workspace.parent / "outside"
        outside.mkdir()
        link = self.top.workspace / "link"
        for name in ("one", "two"):
            (outside / name).write_text(name)
        link.symlink_to(outside / "one")
        answer = Deferred.fromCoroutine(agent.call("fake__file", {"path": "link"}))
        escalation = await self.top.pending()
        self.assertEqual(escalation.request.arguments["path"], str(outside.resolve() / "one"))
        link.unlink()
        link.symlink_to(outside / "two")
        await self.top.decide(Outcome.APPROVED)
        self.assertEqual(code(await answer), "changed-meanwhile")
        self.assertNotIn("tools/call", [message["method"] for message in self.top.seen_by_server()])

    async def test_where_a_link_leads_and_what_was_asked_for(self) -> None:
        annotate = {"file": {"path": ("read-path",)}}
        agent = await self.agent(escalate=["file"], annotate=annotate)
        place = self.top.workspace.parent / "outside"
        place.mkdir()
        outside = str(place.resolve())
        (self.top.workspace / "root").symlink_to("/")
        (self.top.workspace / "a\x1b]2;b").symlink_to(outside)
        leads = f'path resolves through links to "{outside}/f" (requested as '
        asked = {
            "/workspace/a\x1b]2;b/f": f'{leads}"/workspace/a',
            f"root{outside}/f": f'{leads}"root{outside}/f")',
            f"root/{'./' * 1000}{outside}/f": f'{leads}"root/./',
            f"{outside}/./f": "",
        }
        for written, told in asked.items():
            answer = Deferred.fromCoroutine(agent.call("fake__file", {"path": written}))
            reason = (await self.top.pending()).request.reason
            self.assertEqual("through links" in reason, bool(told), reason)
            self.assertLess(len(reason), 600)
            self.assertTrue(reason.isprintable())
            self.assertIn(told, reason)
            await self.top.decide(Outcome.DENIED)
            await answer

    async def test_each_way_to_be_refused_has_its_code(self) -> None:
        agent = await self.agent(fake_server(RECORD="record"), escalate=["echo"])
        answer = Deferred.fromCoroutine(agent.call("fake__echo"))
        await self.top.decide(Outcome.DENIED)
        self.assertEqual(code(await answer), "denied-by-person")
        self.assertTrue(text(await answer).startswith("ESCALATION DENIED: "))
        answer = Deferred.fromCoroutine(agent.call("fake__echo"))
        await self.top.pending()
        self.top.escalations.withdraw_all()
        self.assertEqual(code(await answer), "withdrawn")
        self.assertNotIn("tools/call", [message["method"] for message in self.top.seen_by_server()])
        self.assertEqual([r["status"] for r in self.top.records("outcome")], ["denied", "withdrawn"])

    async def test_with_nobody_to_ask_it_is_denied_at_once(self) -> None:
        agent = await self.agent(escalate=["echo"], attended=False)
        self.assertEqual(code(await agent.call("fake__echo")), "nobody-to-ask")

    async def test_refusal_of_an_undescribed_tool_says_what_a_person_can_do(self) -> None:
        agent = await self.agent(fake_server(TOOLS="shelve"), attended=False)
        answer = await agent.call("fake__shelve", {"path": "x"})
        self.assertEqual(code(answer), "nobody-to-ask")
        self.assertIn("has no annotation", text(answer))
        self.assertIn("ironcurtain mcp annotate fake", text(answer))
        self.assertEqual(self.top.records("call")[0]["rule"], "structural-unannotated")

    async def test_an_escalation_expires(self) -> None:
        agent = await self.agent(escalate=["echo"], timeout=0.2)
        self.assertEqual(code(await agent.call("fake__echo")), "expired")

    async def test_the_decision_is_on_disk_before_the_call_is_made(self) -> None:
        written: list[Deferred[None]] = []

        class Slow(AuditLog):
            def durable(self, sequence: int) -> Deferred[None]:
                if self._file.fd >= 0 and not written:
                    written.append(Deferred())
                    return written[0]
                return super().durable(sequence)

        def audit(path: Path, redactor: Redactor) -> AuditLog:
            return Slow(path, SESSION, redactor, the_reactor, lambda: 0.0, at_once)

        agent = await self.agent(fake_server(RECORD="record"), escalate=["echo"], audit=audit)
        answer = Deferred.fromCoroutine(agent.call("fake__echo"))
        await self.top.decide(Outcome.APPROVED)
        await agent.request("ping")
        self.assertEqual(self.top.records()[-1]["kind"], "decision")
        self.assertNotIn("tools/call", [message["method"] for message in self.top.seen_by_server()])
        written[0].callback(None)
        self.assertIn("result", await answer)

    async def test_an_approval_under_another_policy_permits_nothing(self) -> None:
        agent = await self.agent(fake_server(RECORD="record"), escalate=["echo"])
        answer = Deferred.fromCoroutine(agent.call("fake__echo"))
        await self.top.pending()
        self.top.engine.policy_version = "another"
        await self.top.decide(Outcome.APPROVED)
        self.assertEqual(code(await answer), "expired")
        self.assertNotIn("tools/call", [message["method"] for message in self.top.seen_by_server()])

    async def test_the_agent_hears_that_its_call_waits(self) -> None:
        self.patch(admission, "REMINDER_SECONDS", 0.05)
        agent = await self.agent(escalate=["progress"])
        values = [0, 1, 5]
        meta = {"_meta": {"progressToken": "t"}}
        answer = Deferred.fromCoroutine(agent.call("fake__progress", {"values": values}, **meta))
        await until(lambda: len(progress_of(agent, "t")) >= 3, "progress")
        message = next(m for m in agent.messages if m.get("method") == "notifications/progress")
        self.assertIn("waiting for a person", message["params"]["message"])
        await self.top.decide(Outcome.APPROVED)
        await answer
        reported = progress_of(agent, "t")
        self.assertEqual(reported, sorted(set(reported)))
        self.assertAlmostEqual(reported[-1], 5, places=3)
        self.assertEqual(agent.messages[-1]["params"]["x-unknown"], "kept")

    async def test_without_a_token_nothing_is_reported(self) -> None:
        self.patch(admission, "REMINDER_SECONDS", 0.02)
        agent = await self.agent(escalate=["progress"])
        answer = Deferred.fromCoroutine(agent.call("fake__progress"))
        await self.top.pending()
        await sleep(0.1)
        await self.top.decide(Outcome.APPROVED)
        await answer
        self.assertEqual(agent.messages, [])

    async def test_a_reminder_comes_every_ten_seconds(self) -> None:
        clock, heard = Clock(), list[str]()
        agent = await self.agent(escalate=["echo"], clock=clock)
        call = Deferred.fromCoroutine(self.top.proxy.gate.call("fake", "echo", {}, progress=heard.append))
        await self.top.pending()
        counts = []
        for _ in range(3):
            counts.append(len(heard))
            clock.advance(10)
        self.assertEqual(counts, [1, 2, 3])
        await self.top.decide(Outcome.APPROVED)
        self.assertFalse((await call).is_error)
        clock.advance(100)
        self.assertEqual(len(heard), 4)
        self.assertEqual((await agent.request("ping"))["result"], {})


class CancelTests(Base):
    """What is cancelled is undone, and never answered."""

    async def test_while_a_person_decides(self) -> None:
        agent = await self.agent(fake_server(RECORD="record"), escalate=["echo"])
        agent.send({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": {"name": "fake__echo"}})
        escalation = await self.top.pending()
        agent.tell("notifications/cancelled", {"requestId": "c"})
        await until(lambda: not self.top.escalations.pending())
        self.assertRaises(StaleDecision, self.top.escalations.decide, escalation.number, Outcome.APPROVED, "late")
        self.assertEqual((await agent.request("ping"))["result"], {})
        self.assertEqual(agent.messages, [])
        self.assertNotIn("tools/call", [message["method"] for message in self.top.seen_by_server()])
        self.assertEqual([r["outcome"] for r in self.top.records("decision")], ["withdrawn"])
        self.assertEqual([r["status"] for r in self.top.records("outcome")], ["withdrawn"])

    async def test_in_flight(self) -> None:
        agent = await self.agent(fake_server(RECORD="record"))
        agent.send({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": {"name": "fake__silent"}})
        await until(lambda: "tools/call" in [m["method"] for m in self.top.seen_by_server()])
        agent.tell("notifications/cancelled", {"requestId": "nobody"})
        agent.tell("notifications/cancelled", {"requestId": "c"})
        await agent.call("fake__echo")
        call, cancelled, _ = self.top.seen_by_server()[-3:]
        self.assertEqual(cancelled["method"], "notifications/cancelled")
        self.assertEqual(cancelled["params"]["requestId"], call["id"])
        self.assertEqual([r["status"] for r in self.top.records("outcome")], ["cancelled", "success"])
        self.assertEqual(agent.messages, [])

    async def test_a_closed_connection_cancels_everything(self) -> None:
        agent = await self.agent(fake_server(RECORD="record"), escalate=["echo"])
        agent.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "fake__silent"}})
        agent.send({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "fake__echo"}})
        await self.top.pending()
        agent.transport.abortConnection()  # type: ignore[union-attr]
        await until(lambda: len(self.top.records("outcome")) == 2)
        self.assertEqual({r["status"] for r in self.top.records("outcome")}, {"cancelled", "withdrawn"})
        self.assertEqual(self.top.escalations.pending(), [])
        await until(lambda: "notifications/cancelled" in [m["method"] for m in self.top.seen_by_server()])

    async def test_an_agent_that_only_ended_its_input_gets_its_answers(self) -> None:
        agent = await self.agent(escalate=["file"])
        agent.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "fake__echo"}})
        agent.send({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "fake__file"}})
        agent.transport.loseWriteConnection()  # type: ignore[union-attr]
        self.assertIn("result", await agent.answer_to(1))
        await agent.lost
        self.assertEqual(agent.messages, [])
        self.assertEqual(self.top.escalations.pending(), [])

    async def test_what_waits_for_a_person_ends_with_the_agents_input(self) -> None:
        self.patch(connection, "LAST_SECONDS", 600.0)
        agent = await self.agent(escalate=["file"])
        for number, tool in enumerate(("file", "silent")):
            params = {"name": f"fake__{tool}"}
            agent.send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
        await self.top.pending()
        agent.transport.loseWriteConnection()  # type: ignore[union-attr]
        await until(lambda: not self.top.escalations.pending(), "the withdrawal")
        self.assertEqual(agent.messages, [])
