"""What cannot be judged or recorded is not done."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred, fail

from ironcurtain.audit.log import AuditLog
from ironcurtain.errors import AuditUnavailable
from ironcurtain.escalation import Outcome
from ironcurtain.mcp_proxy.gate import GateLimits
from ironcurtain.mcp_proxy.servers_config import Reading
from ironcurtain.secrets.redaction import Redactor, Secret
from tests.mcp_proxy.support import SESSION, fake_server, the_reactor, until
from tests.mcp_proxy.test_calls import code, text
from tests.mcp_proxy.test_protocol import Base


class PolicyTests(Base):
    """A policy that breaks permits nothing."""

    async def test_what_cannot_be_judged_is_denied(self) -> None:
        def broken(*arguments: Any, **more: Any) -> None:
            raise RuntimeError("a bug")

        agent = await self.agent(fake_server(RECORD="record"))
        for question in ("evaluate", "evaluate_resource"):
            self.patch(self.top.engine, question, broken)
        self.assertEqual(code(await agent.call("fake__echo", {"a": 1})), "denied-by-rule")
        read = await agent.request("resources/read", {"uri": "test://static"})
        self.assertEqual(read["error"]["data"]["ironcurtain/rule"], "invalid-arguments")
        self.assertEqual([record["decision"] for record in self.top.records("call")], ["deny", "deny"])
        self.assertEqual(self.top.records("call")[0]["arguments"], {"a": 1})
        methods = {message["method"] for message in self.top.seen_by_server()}
        self.assertFalse({"tools/call", "resources/read"} & methods)
        self.assertEqual(len(self.flushLoggedErrors(RuntimeError)), 2)


class OwnFaultTests(Base):
    """What fails here, and not at a server, is told without the names of our files."""

    async def test_no_file_of_ours_is_named(self) -> None:
        def out_of_files(*arguments: Any, **more: Any) -> None:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), "/home/ada/.ironcurtain/escalation-number")

        agent = await self.agent(escalate=["echo"])
        self.patch(self.top.escalations, "ask", out_of_files)
        answer = await agent.call("fake__echo", {"a": 1})
        self.assertEqual(code(answer), "backend-failed")
        self.assertEqual(text(answer), "FAILED: an internal error of IronCurtain (Too many open files); see its log")
        self.assertEqual(len(self.flushLoggedErrors(OSError)), 1)


class AuditTests(Base):
    """What cannot be recorded is not done."""

    async def test_a_call_that_cannot_be_recorded_is_not_made(self) -> None:
        agent = await self.agent(fake_server(RECORD="record"))
        self.break_audit()
        self.assertEqual(code(await agent.call("fake__echo")), "audit-unavailable")
        read = await agent.request("resources/read", {"uri": "test://static"})
        self.assertEqual(read["error"]["data"]["ironcurtain/code"], "audit-unavailable")
        methods = [message["method"] for message in self.top.seen_by_server()]
        self.assertFalse({"tools/call", "resources/read"} & set(methods))

    async def test_nothing_follows_an_outcome_that_cannot_be_recorded(self) -> None:
        agent = await self.agent(fake_server(RECORD="record"))
        answer = Deferred.fromCoroutine(agent.call("fake__sleep", {"seconds": 0.2}))
        await until(lambda: bool(self.top.records("call")))
        self.break_audit()
        self.assertNotIn("isError", (await answer)["result"])
        self.assertEqual(code(await agent.call("fake__echo")), "audit-unavailable")
        names = [m["params"]["name"] for m in self.top.seen_by_server() if m["method"] == "tools/call"]
        self.assertEqual(names, ["sleep"])

    async def test_an_outcome_is_recorded_without_another_call(self) -> None:
        agent = await self.agent()
        await agent.call("fake__echo")
        await until(lambda: b'"outcome"' in self.top.audit.path.read_bytes())

    async def test_a_decision_that_is_not_on_disk_permits_nothing(self) -> None:
        def audit(path: Path, redactor: Redactor) -> AuditLog:
            error = OSError(5, "Input/output error")
            return AuditLog(path, SESSION, redactor, the_reactor, lambda: 0.0, lambda work: fail(error))

        agent = await self.agent(fake_server(RECORD="record"), escalate=["echo"], audit=audit)
        answer = Deferred.fromCoroutine(agent.call("fake__echo"))
        await self.top.decide(Outcome.APPROVED)
        self.assertEqual(code(await answer), "audit-unavailable")
        self.assertNotIn("tools/call", [message["method"] for message in self.top.seen_by_server()])

    async def test_every_call_can_wait_for_the_disk(self) -> None:
        agent = await self.agent(limits=GateLimits(durable=True))
        self.assertIn("structuredContent", (await agent.call("fake__echo"))["result"])
        self.successResultOf(self.top.audit.durable(self.top.records("call")[0]["sequence"]))

    async def test_secrets_of_servers_are_not_recorded(self) -> None:
        agent = await self.agent(fake_server(command={"KEY": "show"}))
        environment = json.loads(text(await agent.call("fake__environment")))["environment"]
        self.assertEqual(environment["KEY"], "secret of show")
        await agent.call("fake__echo", {"text": "the secret of show leaks"})
        self.assertEqual(self.top.records("call")[-1]["arguments"], {"text": "the [redacted] leaks"})
        self.assertNotIn(Secret("secret of show").reveal(), self.top.audit.path.read_text())

    async def test_what_a_server_has_in_its_environment_is_not_recorded(self) -> None:
        agent = await self.agent(fake_server(ACCOUNT="blue-whale-42", STAGE="production", SHOP_TOKEN="wonderful"))
        await agent.call("fake__echo", {"text": "blue-whale-42 is wonderful in production"})
        recorded = self.top.records("call")[-1]["arguments"]
        self.assertEqual(recorded, {"text": "[redacted] is [redacted] in production"})

    async def test_what_a_server_gets_of_the_users_environment_is_not_recorded(self) -> None:
        reading = Reading(secrets=(Secret("wonderful"), Secret("blue-whale-42")))
        agent = await self.agent(replace(fake_server(), reading=reading))
        await agent.call("fake__echo", {"text": "blue-whale-42 is wonderful"})
        self.assertEqual(self.top.records("call")[-1]["arguments"], {"text": "[redacted] is [redacted]"})

    def break_audit(self) -> None:
        """From now on, nothing can be recorded."""
        self.top.audit._broken = AuditUnavailable("the disk is full")
