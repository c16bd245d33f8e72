"""The gate remembers calls, and judges later ones by that."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred

from ironcurtain.escalation import Outcome
from ironcurtain.policy.history import NO_HISTORY, AfterCondition, RateCondition
from ironcurtain.policy.rules import Conditions, PathsCondition, Rule
from tests.mcp_proxy.support import RawAgent, fake_server
from tests.mcp_proxy.test_protocol import Base

TOOLS = {
    "write_file": {"path": ("write-path",)},
    "delete_file": {"path": ("delete-path",)},
    "read_file": {"path": ("read-path",)},
}


def code(answer: dict[str, Any]) -> str:
    """:returns: the stable word of a refusal; empty if the call was made."""
    return str(answer["result"].get("_meta", {}).get("ironcurtain/code", ""))


class MemoryTests(Base):
    """Over a server that has the tools and does nothing."""

    async def remembering(self, *rules: Rule, **more: Any) -> RawAgent:
        """:returns: an agent of a new proxy with these rules."""
        server = fake_server("filesystem", TOOLS=",".join(TOOLS))
        return await self.agent(server, annotate=TOOLS, rules=rules, **more)

    async def test_calls_that_were_made_count(self) -> None:
        rate = RateCondition(calls=2, seconds=3600)
        agent = await self.remembering(Rule("slow", Conditions(tool=("write_file",), rate=rate), "deny"))
        answers = [await agent.call("filesystem__write_file", {"path": f"a{n}"}) for n in range(3)]
        self.assertEqual([code(answer) for answer in answers], ["", "", "denied-by-rule"])
        self.assertEqual(self.top.records("call")[-1]["rule"], "slow")

    async def test_a_call_that_was_refused_did_not_happen(self) -> None:
        after = AfterCondition(tool=("read_file",))
        agent = await self.remembering(
            Rule("later", Conditions(tool=("write_file",), after=after), "deny"),
            Rule("ask", Conditions(tool=("read_file",)), "escalate"),
        )
        for outcome, decided in ((Outcome.DENIED, ""), (Outcome.APPROVED, "denied-by-rule")):
            asking = Deferred.fromCoroutine(agent.call("filesystem__read_file", {"path": "/else"}))
            await self.top.decide(outcome)
            await asking
            self.assertEqual(code(await agent.call("filesystem__write_file", {"path": "a"})), decided)

    async def test_files_that_calls_created(self) -> None:
        theirs = PathsCondition(roles=("write-path", "delete-path"), within="/workspace", created=False)
        agent = await self.remembering(Rule("theirs", Conditions(paths=theirs), "deny"))
        (self.top.workspace / "old").write_text("")
        self.assertEqual(code(await agent.call("filesystem__write_file", {"path": "old"})), "denied-by-rule")
        self.assertEqual(code(await agent.call("filesystem__write_file", {"path": "new"})), "")
        (self.top.workspace / "new").write_text("")
        self.assertEqual(code(await agent.call("filesystem__write_file", {"path": "new"})), "")
        self.assertEqual(code(await agent.call("filesystem__delete_file", {"path": "new"})), "")
        self.assertEqual(code(await agent.call("filesystem__write_file", {"path": "new"})), "denied-by-rule")
        recorded = [record.get("creates") for record in self.top.records("call")]
        self.assertEqual(recorded, [[], [f"{self.top.workspace}/new"], [], None, []])

    async def test_what_happened_before_a_session_was_resumed(self) -> None:
        after = AfterCondition(server=("fetch",))
        rule = Rule("later", Conditions(tool=("write_file",), after=after), "deny")
        agent = await self.remembering(rule, history=NO_HISTORY.made("fetch", "fetch", 0.0))
        self.assertEqual(code(await agent.call("filesystem__write_file", {"path": "a"})), "denied-by-rule")
