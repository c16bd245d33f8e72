"""The auto-approver: it approves or it is silent, it leaves evidence, and people come first."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from twisted.internet.defer import Deferred, succeed
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.approver.approver import PATIENCE
from ironcurtain.errors import ConfigurationError, StaleDecision
from ironcurtain.escalation import Outcome
from ironcurtain.llm.model import ModelError, ModelReply, ProviderBlock, TextBlock, TokenUsage, ToolUse
from tests.approver.doubles import USAGE, ApproverWorld, approve, call, resources, said
from tests.audit.doubles import scratch

READ = resources(("read-path", "/home/ada/notes.txt"))
WORDS = "Please read ~/notes.txt."


class ApproverTestCase(SynchronousTestCase):
    def world(self, answer: Any, limit: int = 10) -> ApproverWorld:
        """:returns: a session in which the user asked for a file."""
        world = ApproverWorld(scratch(self), answer, limit)
        world.say(WORDS)
        return world

    def assertWaits(self, world: ApproverWorld, asked: Deferred[Any], why: str) -> None:
        self.assertNoResult(asked)
        self.assertEqual(len(world.queue.pending()), 1)
        self.assertIn(why, world.records()[-1]["why"])
        self.assertEqual(world.records()[-1]["outcome"], "asked")


class EvidenceTests(ApproverTestCase):
    def test_an_approval_has_its_evidence_on_record_and_its_name(self) -> None:
        world = self.world(lambda request: approve("read ~/notes.txt"))
        answer = self.successResultOf(world.ask(call(READ)))
        self.assertEqual((answer.outcome, answer.by), (Outcome.APPROVED, "auto-approver"))
        (closed,) = world.queue.history()
        self.assertEqual((closed.by, closed.kept), ("auto-approver", False))
        (record,) = world.records()
        found = {name: record[name] for name in ("number", "callId", "outcome", "why", "quote", "model")}
        expected = {"number": 1, "callId": "c1", "outcome": "approved", "why": "", "model": "stub-1"}
        self.assertEqual(found, {**expected, "quote": "read ~/notes.txt"})
        self.assertRegex(record["promptDigest"], r"\A[0-9a-f]{64}\Z")

    def test_the_session_pays(self) -> None:
        world = self.world(lambda request: approve("read ~/notes.txt"))
        world.ask(call(READ))
        self.assertEqual(world.spent, [USAGE])

    def test_words_are_written_for_it_only_when_it_needs_them(self) -> None:
        world = self.world(lambda request: approve(WORDS))
        context = world.path.with_name("user-context.json")
        world.ask(replace(call(READ), automatic=None))
        self.assertFalse(context.exists())
        world.ask(call(READ, {"n": 1}))
        self.assertEqual(json.loads(context.read_bytes())["userMessage"], WORDS)

    def test_no_more_equal_calls_than_it_was_asked_about(self) -> None:
        waiting: Deferred[ModelReply] = Deferred()
        world = self.world(lambda request: waiting)
        first, second = world.ask(call(READ)), world.queue.ask(replace(call(READ), call_id="c2"))
        waiting.callback(said(approve(WORDS)))
        self.assertEqual(self.successResultOf(first).outcome, Outcome.APPROVED)
        self.assertNoResult(second)


class SilenceTests(ApproverTestCase):
    """Whatever is not a clear approval is for a person."""

    def test_only_where_the_rule_says_so(self) -> None:
        world = self.world(lambda request: approve(WORDS))
        self.assertNoResult(world.ask(replace(call(READ), automatic=None)))
        self.assertEqual((world.records(), world.model.requests), ([], []))

    def test_what_is_not_named_does_not_reach_the_model(self) -> None:
        world = self.world(lambda request: approve(WORDS))
        asked = world.ask(call(resources(("read-path", "/srv/secret.txt"))))
        self.assertWaits(world, asked, "the user does not name its read-path")
        self.assertEqual(world.model.requests, [])

    def test_without_words(self) -> None:
        world = ApproverWorld(scratch(self), lambda request: approve(WORDS))
        self.assertWaits(world, world.ask(call(READ)), "no words of the user")

    def test_a_call_that_uses_nothing_with_a_name(self) -> None:
        for uses in ((), resources(("branch-name", "read")), resources(("write-path", "/srv/code/a"))):
            world = self.world(lambda request: approve(WORDS))
            self.assertWaits(world, world.ask(call(uses)), "nothing that the user could have named")

    def test_it_does_not_deny(self) -> None:
        for said_ in ('{"decision": "ask"}', '{"decision": "deny"}', '{"decision": "denied", "quote": ""}'):
            world = self.world(lambda request, said_=said_: said_)
            self.assertNoResult(world.ask(call(READ)))
            self.assertEqual(len(world.queue.pending()), 1)

    def test_odd_answers(self) -> None:
        odd = (
            "",
            "approve",
            "Sure! " + approve(WORDS),
            approve(WORDS) + approve(WORDS),
            "```json\n" + approve(WORDS) + "\n```",
            json.dumps({"decision": "approve", "quote": WORDS, "note": 1}),
            json.dumps([approve(WORDS)]),
            json.dumps({"decision": "approve", "quote": [WORDS]}),
            '{"decision": "approve", "quote": "\\ud800"}',
            "[" * 100_000,
        )
        for text in odd:
            world = self.world(lambda request, text=text: text)
            self.assertWaits(world, world.ask(call(READ)), "not what was asked for")

    def test_an_answer_that_was_cut_or_has_more_than_text(self) -> None:
        uses = ModelReply((*said(approve(WORDS)).content, ToolUse("1", "x", {})), "end_turn", USAGE, "m")
        for reply in (said(approve(WORDS), "max_tokens"), said(approve(WORDS), "refusal"), uses):
            ready: Deferred[ModelReply] = Deferred()
            ready.callback(reply)
            world = self.world(lambda request, ready=ready: ready)
            self.assertWaits(world, world.ask(call(READ)), "not what was asked for")

    def test_reasoning_is_no_part_of_the_answer(self) -> None:
        thought = [
            ProviderBlock("anthropic", {"type": "thinking", "thinking": approve(WORDS), "signature": "x"}),
            ProviderBlock("anthropic", {"type": "redacted_thinking", "data": "x"}),
            ProviderBlock("openai", {"type": "reasoning", "encrypted_content": "x", "summary": []}),
            ProviderBlock("google", {"thoughtSignature": "x"}),
            TextBlock(f"<think>\n{approve(WORDS)}\n</think>\n\n"),
        ]
        for block in thought:
            answered, refused, silent = (
                self.world(lambda request, content=content: succeed(ModelReply(content, "end_turn", USAGE, "m")))
                for content in (
                    (block, TextBlock(approve("read ~/notes.txt"))),
                    (block, TextBlock('{"decision": "ask"}')),
                    (block,),
                )
            )
            self.assertEqual(self.successResultOf(answered.ask(call(READ))).by, "auto-approver", block)
            self.assertWaits(refused, refused.ask(call(READ)), "does not approve")
            self.assertWaits(silent, silent.ask(call(READ)), "not what was asked for")

    def test_quotes_that_are_not_the_users(self) -> None:
        for quote in ("", " ", "read ~/notes.txt!", "Please  read ~/notes.txt", "please read ~/notes.txt", "\u202e"):
            world = self.world(lambda request, quote=quote: approve(quote))
            self.assertWaits(world, world.ask(call(READ)), "the quote")

    @given(st.text(max_size=80))
    def test_any_answer(self, text: str) -> None:
        world = self.world(lambda request: text)
        self.assertNoResult(world.ask(call(READ)))

    def test_a_model_that_fails(self) -> None:
        def fail(request: object) -> str:
            raise ModelError("overloaded", "try later", usage=TokenUsage(7, 0))

        world = self.world(fail)
        self.assertWaits(world, world.ask(call(READ)), "the model gave no answer: overloaded")
        self.assertEqual(world.spent, [TokenUsage(7, 0)])

    def test_a_model_that_is_slow(self) -> None:
        world = self.world(lambda request: Deferred())
        asked = world.ask(call(READ))
        world.clock.advance(PATIENCE)
        self.assertWaits(world, asked, "took too long")

    def test_a_model_that_breaks(self) -> None:
        world = self.world(lambda request: 1 / 0)
        asked = world.ask(call(READ))
        self.assertNoResult(asked)
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 1)
        self.assertEqual(len(world.queue.pending()), 1)

    def test_no_model(self) -> None:
        world = self.world(lambda request: approve(WORDS))

        async def choose() -> object:
            raise ConfigurationError("config.toml", "there is no key")

        self.patch(world.approver, "_choose", choose)
        self.assertWaits(world, world.ask(call(READ)), "there is no key")

    def test_its_limit(self) -> None:
        world = self.world(lambda request: approve("read ~/notes.txt"), limit=1)
        self.successResultOf(world.ask(call(READ)))
        self.assertWaits(world, world.ask(call(READ)), "the limit of this session")
        self.assertEqual(len(world.model.requests), 1)

    def test_without_a_record_nothing_is_approved(self) -> None:
        world = self.world(lambda request: approve(WORDS))
        self.successResultOf(Deferred.fromCoroutine(world.audit.close()))
        self.assertNoResult(world.ask(call(READ)))
        self.assertEqual(len(world.queue.pending()), 1)


class PersonTests(ApproverTestCase):
    """A person who decides first."""

    def setUp(self) -> None:
        self.reply: Deferred[ModelReply] = Deferred()
        self.lost = self.world(lambda request: self.reply)
        self.asked = self.lost.ask(call(READ))

    def test_the_model_is_not_waited_for(self) -> None:
        self.lost.queue.decide(1, Outcome.DENIED, "ada")
        self.assertEqual(self.successResultOf(self.asked).outcome, Outcome.DENIED)
        self.assertEqual(self.lost.records()[-1]["why"], "somebody decided first")
        self.assertTrue(self.reply.called)  # it was cancelled

    def test_a_person_sees_it_meanwhile_and_is_told_who_was_first(self) -> None:
        self.assertEqual(len(self.lost.queue.pending()), 1)
        self.reply.callback(said(approve(WORDS)))
        with self.assertRaisesRegex(StaleDecision, "approved by auto-approver"):
            self.lost.queue.decide(1, Outcome.DENIED, "ada")

    def test_one_that_is_over_before_it_was_looked_at(self) -> None:
        world = self.world(lambda request: approve(WORDS))
        asked = world.queue.ask(call(READ))
        asked.cancel()
        world.clock.advance(0)
        self.assertEqual((world.records(), world.model.requests), ([], []))
