"""A conversation can be continued from wherever it was cut off."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.llm.conversation import Conversation, ShownText
from ironcurtain.llm.model import ChatMessage, ModelError, TextBlock, TextDelta, ToolResult, ToolUse

USES = st.lists(st.builds(ToolUse, st.uuids().map(str), st.just("execute_code"), st.just({})), max_size=3)
STEPS = st.one_of(st.just("say"), st.just("interrupt"), USES)


def unanswered(messages: tuple[ChatMessage, ...]) -> set[str]:
    """:returns: the tool uses whose result is not in the very next message."""
    missing: set[str] = set()
    for message, following in zip(messages, (*messages[1:], ChatMessage("user", ())), strict=True):
        results = {block.id for block in following.content if isinstance(block, ToolResult)}
        missing |= {block.id for block in message.content if isinstance(block, ToolUse)} - results
    return missing


class ShownTextTests(SynchronousTestCase):
    def test_what_came_is_kept_unless_it_was_refused(self) -> None:
        shown = ShownText()
        shown.take(TextDelta("Sure, "))
        shown.take(TextDelta("first"))
        self.assertEqual(shown.kept(ModelError("network", "closed")), "Sure, first")
        self.assertIn("say 'go on'", shown.failure(ModelError("network", "closed")))
        refused = ModelError("refused", "refused")
        self.assertEqual((shown.kept(refused), shown.failure(refused)), ("", "refused"))


class ConversationTests(SynchronousTestCase):
    @given(st.lists(STEPS, max_size=12))
    def test_roles_alternate_and_every_tool_use_gets_its_result(self, steps: list[object]) -> None:
        conversation = Conversation()
        conversation.say("hello")
        for step in steps:
            if step == "say":
                conversation.interrupt("cut off")
                conversation.say("go on")
            elif step == "interrupt":
                conversation.interrupt("cut off")
            elif isinstance(step, list) and conversation.messages[-1].role == "user":
                uses = conversation.answer([TextBlock("well"), *step])
                self.assertEqual(uses, step)
                if uses:
                    conversation.results([ToolResult(use.id, "done", False) for use in uses])
        conversation.interrupt("cut off")
        conversation.say("and now?")
        roles = [message.role for message in conversation.messages]
        self.assertEqual(roles, ["user", "assistant"] * (len(roles) // 2) + ["user"])
        self.assertEqual(unanswered(conversation.messages), set())

    def test_an_interrupted_tool_use_says_why_it_has_no_result(self) -> None:
        conversation = Conversation()
        conversation.say("hello")
        conversation.answer([ToolUse("a", "execute_code", {})])
        conversation.interrupt("cancelled by the person")
        self.assertEqual(
            conversation.messages[-1], ChatMessage("user", (ToolResult("a", "cancelled by the person", True),))
        )

    def test_an_empty_answer_leaves_no_message(self) -> None:
        conversation = Conversation()
        conversation.say("hello")
        self.assertEqual(conversation.answer([]), [])
        self.assertEqual(len(conversation.messages), 1)
