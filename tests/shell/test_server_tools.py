"""Tools of MCP servers as steps: what their results are for the model, and what binds them."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError, UsageError
from ironcurtain.llm.model import ToolSpec, ToolUse
from ironcurtain.llm.registry import Chosen
from ironcurtain.policy.verdict import Decision, Verdict
from ironcurtain.shell.messages import Message, Notice, ProposedStep, StepKind
from ironcurtain.shell.server_tools import PARENT_RULE, ServerTools, ToolHand, result_text
from ironcurtain.shell.tools import Hands
from tests.shell.assistant import AssistantTestCase
from tests.shell.support import ShellTestCase, WordHand


class ResultTests(SynchronousTestCase):
    def test_texts_and_names_of_other_parts(self) -> None:
        parts = [{"type": "text", "text": "a"}, {"type": "image", "mimeType": "image/png", "data": "AAAA"}, {"type": 3}]
        self.assertEqual(result_text(msgspec.json.encode({"content": parts})), "a\n[image image/png]\n[part]")
        self.assertEqual(result_text(b'{"content": [], "structuredContent": {"n": 1}}'), '{"n":1}')

    @given(st.binary() | st.recursive(st.none() | st.text(), lambda x: st.lists(x)).map(msgspec.json.encode))
    def test_whatever_comes_is_a_text(self, raw: bytes) -> None:
        self.assertIsInstance(result_text(raw), str)


class HandTests(ShellTestCase):
    def hand(self, narrowed: bool = False) -> ToolHand:
        """:returns: a hand without servers."""
        self.servers = ServerTools(lambda: None)
        return ToolHand(self.servers, self.clock, 1000, narrowed, self.admission)

    def test_without_servers_there_are_no_tools(self) -> None:
        hand = self.hand()
        self.successResultOf(Deferred.fromCoroutine(self.servers.ready(self.told.append)))
        self.assertEqual(list(hand.specs()), [])
        with self.assertRaisesRegex(UsageError, "no tool files__rm"):
            hand.proposed(1, ToolUse("1", "files__rm", {}), "/work")

    def test_a_step_whose_server_has_gone_is_denied(self) -> None:
        step = ProposedStep(number=1, command="x {}", kind=StepKind.TOOL, arguments={"tool": "x", "arguments": {}})
        judged = self.hand().preview(step, "/work")
        self.assertEqual((judged.verdict.decision, judged.verdict.rule), (Decision.DENY, "unknown-tool"))

    def test_servers_that_cannot_be_made_are_told_once(self) -> None:
        told: list[Message] = []

        def wrong() -> None:
            raise ConfigurationError("mcp-servers.json", "is no JSON", line=1)

        servers = ServerTools(wrong)
        for _ in range(2):
            self.successResultOf(Deferred.fromCoroutine(servers.ready(told.append)))
        self.assertEqual(told, [Notice(text="there are no tools of MCP servers: mcp-servers.json:1: is no JSON")])

    def test_below_other_agents_each_call_is_asked(self) -> None:
        allowed = Verdict(Decision.ALLOW, "rule", "because", {})
        self.assertIs(self.hand()._narrowed(allowed), allowed)
        below = self.hand(narrowed=True)._narrowed(allowed)
        self.assertEqual((below.decision, below.rule), (Decision.ESCALATE, PARENT_RULE))
        denied = Verdict(Decision.DENY, "rule", "because", {})
        self.assertIs(self.hand(narrowed=True)._narrowed(denied), denied)


class LateHand(WordHand):
    """A hand for tools of servers, which are not up at once."""

    up = False

    def specs(self) -> tuple[ToolSpec, ...]:
        return (ToolSpec("files__list", "", {}),) if self.up else ()


class OfferedTests(AssistantTestCase):
    """What the model gets to know of them."""

    def test_first_request_offers_tools_that_came_up_for_it(self) -> None:
        late = LateHand(self.commands.policy, self.runner, StepKind.TOOL)
        self.parts = replace(self.parts, hands=Hands([self.commands, late]))
        self.make()
        self.choosing = Deferred()
        self.instruct()
        late.up = True
        self.choosing.callback(Chosen(self.model, "m-1"))
        self.assertEqual([tool.name for tool in self.model.requests[0].tools], ["shell", "files__list"])
        self.choosing = None
        self.say("So.")
        self.done()
