"""Approvals that are kept, through the gate: what is not asked again, what is, and what is recorded of it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred

from ironcurtain.audit.log import AuditLog
from ironcurtain.escalation import Outcome
from ironcurtain.mcp_proxy.calls import CallDecided
from ironcurtain.mcp_proxy.gate import GateLimits
from ironcurtain.mcp_proxy.pins import PinFiles, digest_of_waiting
from ironcurtain.policy.rules import Conditions, Rule
from ironcurtain.secrets.redaction import Redactor
from tests.mcp_proxy.support import SESSION, RawAgent, at_once, fake_server, the_reactor
from tests.mcp_proxy.test_calls import code
from tests.mcp_proxy.test_protocol import Base

PATH: dict[str, tuple[str, ...]] = {"path": ("write-path",)}
ANNOTATE = {"file": {**PATH, "text": ("none",)}, "child": PATH}


class KeptTests(Base):
    """A tool that writes outside the workspace, where a person is asked."""

    async def begin(self, **options: Any) -> RawAgent:
        """:returns: an agent whose writes to a directory ``outside`` are asked about."""
        options = {"escalate": ["file", "child"], "annotate": ANNOTATE, **options}
        agent = await self.agent(*options.pop("servers", [fake_server(RECORD="record")]), **options)
        self.outside = self.top.top / "outside"
        (self.outside / "deep").mkdir(parents=True)
        return agent

    async def keep(self, agent: RawAgent, path: Path, **arguments: Any) -> dict[str, Any]:
        """:returns: the answer to a call whose approval is kept."""
        answer = Deferred.fromCoroutine(agent.call("fake__file", {"path": str(path), **arguments}))
        escalation = await self.top.pending()
        self.top.escalations.decide(escalation.number, Outcome.APPROVED, "tester", keep=True)
        return await answer

    async def asked(self, agent: RawAgent, tool: str, **arguments: Any) -> None:
        """A call must be asked about."""
        answer = Deferred.fromCoroutine(agent.call(tool, arguments))
        await self.top.decide(Outcome.DENIED)
        self.assertEqual(code(await answer), "denied-by-person")

    def made(self) -> int:
        """:returns: how many calls the server got."""
        return [message["method"] for message in self.top.seen_by_server()].count("tools/call")

    async def test_calls_of_an_undescribed_tool_are_kept_with_their_paths(self) -> None:
        agent = await self.begin(servers=[fake_server(RECORD="record", TOOLS="shelve")], escalate=())
        answer = Deferred.fromCoroutine(agent.call("fake__shelve", {"path": "/workspace/a"}))
        escalation = await self.top.pending()
        assert escalation.request.scope is not None
        self.assertIn("path=", escalation.request.scope.words)
        self.top.escalations.decide(escalation.number, Outcome.APPROVED, "tester", keep=True)
        self.assertNotIn("_meta", (await answer)["result"])
        self.assertNotIn("_meta", (await agent.call("fake__shelve", {"path": "/workspace/a"}))["result"])
        await self.asked(agent, "fake__shelve", path="/workspace/b")
        self.assertEqual(self.made(), 2)

    async def test_the_same_kind_of_call_is_not_asked_again(self) -> None:
        agent = await self.begin()
        self.assertNotIn("_meta", (await self.keep(agent, self.outside / "a", text="first"))["result"])
        for name in ("a", "b", "deep/c"):
            answer = await agent.call("fake__file", {"path": str(self.outside / name), "text": name})
            self.assertNotIn("_meta", answer["result"], name)
        self.assertEqual((self.made(), self.top.escalations.pending()), (4, []))
        self.assertEqual([permission.used for permission in self.top.escalations.permissions()], [3])

    async def test_anything_else_is(self) -> None:
        agent = await self.begin()
        await self.keep(agent, self.outside / "a", force=False)
        (self.outside / "link").symlink_to(self.top.top)
        for path in ("../a", "../outside2/a", "deep/../../a", "link/a", ".."):
            await self.asked(agent, "fake__file", path=f"{self.outside}/{path}", force=False)
        await self.asked(agent, "fake__file", path=str(self.outside / "a"), force=True)
        await self.asked(agent, "fake__file", path=str(self.outside / "a"), force=False, also=1)
        await self.asked(agent, "fake__child", path=str(self.outside / "a"), force=False)
        self.assertEqual(self.made(), 1)

    async def test_what_is_recorded(self) -> None:
        agent = await self.begin()
        await self.keep(agent, self.outside / "a", mode=1, text="first")
        await agent.call("fake__file", {"path": str(self.outside / "b"), "mode": 1, "text": "second"})
        self.top.escalations.revoke(1, "other")
        await self.asked(agent, "fake__file", path=str(self.outside / "b"))
        kinds = [r["kind"] for r in self.top.records() if r["kind"].startswith(("call", "decision", "permission"))]
        self.assertEqual(
            kinds, ["call", "permission", "decision", "call", "decision", "permission-revoked", "call", "decision"]
        )
        (given,), (revoked,) = self.top.records("permission"), self.top.records("permission-revoked")
        self.assertEqual((given["number"], given["by"], given["tool"]), (1, "tester", "file"))
        self.assertEqual(given["places"], [{"role": "write-path", "value": str(self.outside), "below": True}])
        self.assertEqual((given["ways"], given["bounds"]), ({"mode": "1"}, {"text": "any text"}))
        self.assertEqual((given["rules"], given["policyVersion"]), (["ask-file"], self.top.engine.policy_version))
        self.assertEqual((revoked["number"], revoked["by"], revoked["used"]), (1, "other", 1))
        first, second, third = self.top.records("decision")
        self.assertEqual((second["outcome"], second["by"], second["permission"]), ("approved", "tester", 1))
        self.assertEqual([("permission" in record) for record in (first, third)], [False, False])
        self.assertIn(CallDecided(second["callId"], 0, "approved", "tester", 1), self.top.events)

    async def test_it_is_on_disk_before_the_call_is_made(self) -> None:
        held: list[Deferred[None]] = []
        holding: list[bool] = []

        class Slow(AuditLog):
            def durable(self, sequence: int) -> Deferred[None]:
                if holding:
                    held.append(Deferred())
                    return held[-1]
                return super().durable(sequence)

        def audit(path: Path, redactor: Redactor) -> AuditLog:
            return Slow(path, SESSION, redactor, the_reactor, lambda: 0.0, at_once)

        agent = await self.begin(audit=audit)
        await self.keep(agent, self.outside / "a")
        holding.append(True)
        answer = Deferred.fromCoroutine(agent.call("fake__file", {"path": str(self.outside / "b")}))
        await agent.request("ping")
        self.assertEqual((self.made(), len(held)), (1, 1))
        holding.clear()
        held[0].callback(None)
        await answer
        self.assertEqual(self.made(), 2)

    async def test_the_circuit_breaker_still_counts(self) -> None:
        agent = await self.begin(limits=GateLimits(repeats=3))
        await self.keep(agent, self.outside / "a")
        answers = [await agent.call("fake__file", {"path": str(self.outside / "a")}) for _ in range(3)]
        self.assertEqual([("_meta" in answer["result"]) for answer in answers], [False, False, True])
        self.assertEqual(code(answers[-1]), "circuit-breaker")

    async def test_what_the_policy_denies_stays_denied(self) -> None:
        secret = Rule("never", Conditions(tool=("child",)), "deny", "not in tests")
        agent = await self.begin(rules=[secret])
        await self.keep(agent, self.outside / "a")
        self.assertEqual(code(await agent.call("fake__child", {"path": str(self.outside / "a")})), "denied-by-rule")

    async def test_another_policy_asks_again(self) -> None:
        agent = await self.begin()
        await self.keep(agent, self.outside / "a")
        self.top.engine.policy_version = "another"
        await self.asked(agent, "fake__file", path=str(self.outside / "b"))

    async def test_a_changed_definition_is_covered_by_no_approval(self) -> None:
        agent = await self.begin()
        await self.keep(agent, self.outside / "a")
        await agent.call("fake__change", {"description": "another"})
        await agent.expect(lambda m: m.get("method") == "notifications/tools/list_changed")
        path = str(self.outside / "b")
        self.assertEqual(code(await agent.call("fake__file", {"path": path})), "tool-withheld")
        file = PinFiles(self.top.top / "tool-definitions", time.time).of("fake")
        file.accept((), digest_of_waiting(file.read()), "ada")
        await self.asked(agent, "fake__file", path=path)

    async def test_a_request_that_is_no_tool_call_cannot_be_kept(self) -> None:
        ask = Rule("ask-read", Conditions(tool=("resources/read",)), "escalate", "a person decides")
        agent = await self.begin(rules=[ask])
        answer = agent.request("resources/read", {"uri": "test://static"})
        self.assertIsNone((await self.top.pending()).request.scope)
        await self.top.decide(Outcome.DENIED)
        self.assertIn("error", await answer)

    async def test_people_are_told_the_scope_with_the_agent_s_name_of_the_workspace(self) -> None:
        agent = await self.begin()
        (self.top.workspace / "src").mkdir()
        answer = Deferred.fromCoroutine(agent.call("fake__file", {"path": "src/a"}))
        scope = (await self.top.pending()).request.scope
        self.assertEqual(scope and scope.words, "fake.file in /workspace/src and below")
        await self.top.decide(Outcome.DENIED)
        await answer
