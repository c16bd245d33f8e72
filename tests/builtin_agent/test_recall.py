"""A conversation is read back from its records, whatever was cut off, and the model is told what that was."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.logger import capturedLogs
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.builtin_agent import records
from ironcurtain.builtin_agent.memory import ConversationFile, Memory
from ironcurtain.builtin_agent.recall import CUT_OFF, Recall, of_turns, read
from ironcurtain.builtin_agent.records import (
    AnyRecord,
    Called,
    CallEnded,
    Ended,
    ProviderPart,
    Replied,
    ResultPart,
    Results,
    Resumed,
    Said,
    Shorter,
    Started,
    TextPart,
    UsePart,
)
from ironcurtain.builtin_agent.window import Window
from ironcurtain.errors import ConfigurationError
from ironcurtain.files.appending import LineFile
from ironcurtain.llm.compaction import Strategy
from ironcurtain.llm.conversation import Conversation
from ironcurtain.llm.model import (
    Block,
    ChatMessage,
    ImageBlock,
    ModelReply,
    ProviderBlock,
    TextBlock,
    TokenUsage,
    ToolResult,
    ToolUse,
)
from ironcurtain.llm.pictures import description
from ironcurtain.secrets.redaction import Redactor, Secret
from ironcurtain.session.model import Turn, Usage
from tests.audit.doubles import file_limit, scratch
from tests.llm.test_conversation import unanswered

KEY = "sk-ant-api03-canary-of-nobody-0123456789abcdef"


def use(code: str, id: str = "t1") -> Replied:
    """:returns: an answer that runs code."""
    part = UsePart(id=id, name="execute_code", input={"code": code})
    return Replied(content=(part,), usage=TokenUsage(10, 5))


def call(number: int, audit: int = 0, tool: str = "write_file") -> Called:
    """:returns: a call that is about to be made."""
    return Called(number=number, server="filesystem", tool=tool, arguments={"path": f"{number}.txt"}, audit=audit)


def got(content: str, id: str = "t1", lost: bool = False) -> Results:
    """:returns: the result of a tool use."""
    return Results(results=(ResultPart(id, content, False),), variables_lost=lost)


def judged(sequence: int, decision: str, tool: str = "write_file") -> dict[str, Any]:
    """:returns: the record of a call in the audit log."""
    named = {"callId": f"c{sequence}", "server": "filesystem", "tool": tool}
    return {"sequence": sequence, "kind": "call", "decision": decision, **named}


SAID: list[AnyRecord] = [Started(), Said(text="write it")]
RECORDS = st.one_of(
    st.builds(Said, text=st.sampled_from(("hello", ""))),
    st.builds(use, st.sampled_from(("x = 1", "")), st.sampled_from(("t1", "t2"))),
    st.just(Replied(content=(TextPart(text="done"),))),
    st.just(Replied(content=())),
    st.builds(got, st.just("1"), st.sampled_from(("t1", "t2")), st.booleans()),
    st.builds(call, st.integers(1, 3)),
    st.builds(CallEnded, number=st.integers(1, 3), outcome=st.just("success")),
    st.builds(Ended, error=st.sampled_from(("", "too busy"))),
    st.builds(Resumed, note=st.just("[a note]")),
    st.builds(Shorter, kept=st.integers(0, 3), lean=st.integers(0, 3), summary=st.sampled_from(("", "sum"))),
    st.just(Started()),
)


class RecallTests(SynchronousTestCase):
    @given(st.lists(RECORDS, max_size=15))
    def test_any_records_are_a_conversation_that_goes_on(self, given: list[AnyRecord]) -> None:
        recalled = read(given)
        recalled.note()
        conversation = recalled.conversation
        conversation.interrupt("cut off")
        conversation.say("and now?")
        self.assertEqual(unanswered(conversation.messages), set())
        roles = [message.role for message in conversation.messages]
        self.assertEqual(roles, ["user", "assistant"] * (len(roles) // 2) + ["user"])

    def test_a_turn_comes_back_with_programs_and_results(self) -> None:
        said: list[AnyRecord] = [*SAID, use("x = 1"), got("1"), Replied(content=(TextPart(text="Done."),)), Ended()]
        recalled = read(said)
        self.assertEqual(
            recalled.conversation.messages,
            (
                ChatMessage("user", (TextBlock("write it"),)),
                ChatMessage("assistant", (ToolUse("t1", "execute_code", {"code": "x = 1"}),)),
                ChatMessage("user", (ToolResult("t1", "1", False),)),
                ChatMessage("assistant", (TextBlock("Done."),)),
            ),
        )
        self.assertIsNone(recalled.unfinished)

    def test_what_was_cut_off_is_told(self) -> None:
        recalled = read([*SAID, use("y = 2"), call(1), CallEnded(number=1, outcome="success"), call(2)])
        note = recalled.note([judged(1, "allow"), judged(2, "allow")])
        self.assertEqual(
            note.splitlines()[1:],
            [
                "Calls of this turn that are over, do not repeat what succeeded:",
                '- filesystem.write_file {"path":"1.txt"}: success',
                "Calls that were begun, outcome unknown; look what they did before you repeat them:",
                '- filesystem.write_file {"path":"2.txt"}',
                "The interpreter was restarted, so these variables are gone: y.]",
            ],
        )
        self.assertIn('got no answer: "write it"', note)
        recalled.feed(Resumed(note=note))
        recalled.conversation.say("go on")
        last = recalled.conversation.messages[-1]
        self.assertEqual(last.content, (ToolResult("t1", CUT_OFF, True), TextBlock(note), TextBlock("go on")))
        self.assertEqual(recalled.cut_off, TokenUsage(10, 5))
        self.assertEqual(
            recalled.note().splitlines(), ["[The interpreter was restarted, so these variables are gone: y.]"]
        )

    def test_the_audit_log_knows_what_the_conversation_does_not(self) -> None:
        decided = {"kind": "decision", "callId": "c5", "sequence": 6}
        for audit, fate in (
            ([], "not made"),
            ([judged(4, "allow")], "not made"),  # of an earlier call
            ([judged(5, "allow", "read_file")], "not made"),
            ([judged(5, "deny")], "denied"),
            ([judged(5, "escalate")], "not made: nobody had decided on it"),
            ([judged(5, "escalate"), {**decided, "outcome": "expired"}], "not made: expired"),
            ([judged(5, "allow"), {"kind": "outcome", "callId": "c5", "status": "error"}], "error"),
            ([judged(5, "escalate"), {**decided, "outcome": "approved"}], None),
            ([judged(5, "allow")], None),
        ):
            note = read([*SAID, use(""), call(1, audit=4)]).note(audit)
            line = '- filesystem.write_file {"path":"1.txt"}'
            self.assertIn(
                f"{line}: {fate}" if fate else f"unknown; look what they did before you repeat them:\n{line}", note
            )

    def test_equal_calls_at_once_are_told_apart_by_their_order(self) -> None:
        recalled = read([*SAID, use(""), call(1, 4), call(2, 4), CallEnded(number=1, outcome="success")])
        audit = [judged(5, "allow"), judged(6, "deny"), {"kind": "outcome", "callId": "c6", "status": "denied"}]
        self.assertIn('{"path":"2.txt"}: denied', recalled.note(audit))

    def test_long_lists_are_cut(self) -> None:
        many = [call(number) for number in range(1, 81)]
        ends = [CallEnded(number=number, outcome="failed", error="x" * 9000) for number in range(1, 81)]
        code = "\n".join(f"v{number:03} = 1" for number in range(150))
        note = read([Said(text="m" * 9000), use(code), *many, *ends]).note()
        self.assertIn("30 earlier calls of this turn are not listed.", note)
        self.assertIn("v099 and 50 more.", note)
        self.assertLess(len(note), 50_000)

    def test_variables_that_the_model_knows_to_be_gone_are_not_told_again(self) -> None:
        first: list[AnyRecord] = [*SAID, use("x = 1"), got("", lost=True), use("y = 1", "t2"), got("", "t2"), Ended()]
        self.assertTrue(read(first).note().endswith("gone: y.]"))
        self.assertEqual(read([*first, Resumed(note="[y]"), Started()]).note(), "")

    def test_a_failed_turn_never_becomes_words_of_the_model(self) -> None:
        failed = Turn(number=1, message="hello", answer="", usage=Usage(), timestamp="", error="too busy")
        answered = Turn(number=2, message="again", answer="Yes.", usage=Usage(), timestamp="")
        for known, said in (([*SAID, Ended(error="too busy")], []), (of_turns([failed, answered]), ["Yes."])):
            answers = [m.content for m in read(known).conversation.messages if m.role == "assistant"]
            self.assertEqual(answers, [(TextBlock(text),) for text in said])

    def test_a_shorter_form_comes_back_as_it_was_sent(self) -> None:
        turns: list[AnyRecord] = []
        for number in range(5):
            turns += [Said(text=f"m{number}"), use("x", f"t{number}"), got("r", f"t{number}"), Ended()]
        past = read([*turns, Shorter(kept=3, lean=1, summary="They spoke.")]).conversation.past
        self.assertEqual((past.dropped, past.summary, len(past.exchanges)), (2, "They spoke.", 3))
        self.assertEqual([len(exchange) for exchange in past.exchanges], [1, 3, 3])


class FileTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.path = scratch(self) / "conversation.jsonl"
        self.file = ConversationFile(LineFile(self.path))

    def memory(self, redactor: Redactor | None = None) -> Memory:
        return Memory(Conversation(), self.file.write, redactor or Redactor(), lambda: 0, lambda: "now")

    def test_what_is_written_is_read(self) -> None:
        memory = self.memory()
        memory.say("look")
        blocks: tuple[Block, ...] = (
            ProviderBlock("anthropic", {"type": "thinking", "thinking": "let me see", "signature": "Ab0" * 99}),
            TextBlock("I look."),
            ToolUse("t1", "execute_code", {"code": "print(1)"}),
        )
        memory.answer(ModelReply(blocks, "tool_use", TokenUsage(1, 2), "m"))
        memory.results([ToolResult("t1", "1\udc80", False)], variables_lost=False)
        memory.answer(ModelReply((TextBlock("One."),), "end_turn", TokenUsage(1, 2), "m"))
        memory.end()
        found = read(self.file.read()).conversation.past
        self.assertEqual(found.exchanges[0][:2], memory.past.exchanges[0][:2])
        self.assertEqual(found.exchanges[0][2].content, (ToolResult("t1", "1?", False),))
        self.assertEqual(self.path.stat().st_mode & 0o7777, 0o600)

    def test_picture_is_described_when_the_conversation_is_read_back(self) -> None:
        memory = self.memory()
        memory.say("look")
        memory.answer(ModelReply((ToolUse("t1", "execute_code", {}),), "tool_use", TokenUsage(), "m"))
        shot = ImageBlock("image/png", b"CANARY", 10, 20)
        memory.results([ToolResult("t1", "seen", False, (shot,))], variables_lost=False)
        (result,) = read(self.file.read()).conversation.past.exchanges[0][2].content
        told = f"seen\n[IronCurtain: a picture shown here was not kept: {description(shot)}]"
        self.assertEqual(result, ToolResult("t1", told, False))
        self.assertNotIn("CANARY", self.path.read_text())

    def test_no_secret_is_in_the_file(self) -> None:
        redactor = Redactor([Secret("hunter2-hunter2")])
        memory = self.memory(redactor)
        memory.say(f"use {KEY}")
        for text in (KEY, "hunter2-hunter2"):
            thinking = ProviderBlock("anthropic", {"thinking": f"the key {text}", "signature": "s"})
            program = ToolUse("t1", "execute_code", {"code": f"login(password='{text}')"})
            memory.answer(ModelReply((thinking, TextBlock(text), program), "tool_use", TokenUsage(), "m"))
            memory.results([ToolResult("t1", f"got {text}", False)], variables_lost=False)
            memory.end(f"failed with {text}")
        written = self.path.read_text()
        self.assertNotIn(KEY, written)
        self.assertNotIn("hunter2", written)
        self.assertFalse(
            [r for r in self.file.read() if isinstance(r, Replied) and isinstance(r.content[0], ProviderPart)]
        )
        self.assertIn(KEY, str(memory.past))  # the model got it

    def test_a_torn_line_is_passed_over(self) -> None:
        self.memory().say("hello")
        whole = self.path.read_bytes()
        for cut in range(whole.index(b"\n") + 1, len(whole) - 1):
            self.path.write_bytes(whole[:cut])
            self.assertEqual([type(record) for record in self.file.read()], [Started])

    def test_a_newer_format_is_refused(self) -> None:
        self.file.write(Started(version=records.FORMAT_VERSION + 1))
        self.assertRaises(ConfigurationError, list, self.file.read())

    def test_a_disk_that_is_full_is_reported_once_and_the_conversation_goes_on(self) -> None:
        memory = self.memory()
        with file_limit(self.path.stat().st_size), capturedLogs() as logged:
            memory.say("hello")
            memory.end("too busy")
        self.assertEqual(len(memory.past.exchanges), 1)
        self.assertEqual(len(logged), 1)


class LongTests(SynchronousTestCase):
    TURNS = 2000

    def write(self) -> ConversationFile:
        file = ConversationFile(LineFile(scratch(self) / "conversation.jsonl"))
        for number in range(self.TURNS):
            file.write(Said(text=f"message {number}"))
            file.write(use(f"x{number} = 1"))
            file.write(got("r" * 2000))
            file.write(Replied(content=(TextPart(text="Done."),)))
            file.write(Ended())
        return file

    def test_2000_turns_come_back_and_only_what_is_sent_is_kept(self) -> None:
        file = self.write()
        self.assertEqual(len(read(file.read()).conversation.past.exchanges), self.TURNS)
        for strategy in (Strategy.TRUNCATE, Strategy.SLIDING, Strategy.SUMMARISE):
            window, recall, longest = Window(strategy, 50_000, 20, len, lambda image: 1000), Recall(), 0
            for number, record in enumerate(file.read()):
                recall.feed(record)
                if isinstance(record, Ended):
                    window.squeeze(recall.conversation)
                    longest = max(longest, window.needed(recall.conversation.past) if number % 100 == 99 else 0)
            past = recall.conversation.past
            self.assertEqual(past.dropped + len(past.exchanges), self.TURNS)
            self.assertEqual(past.exchanges[-1][0].content, (TextBlock(f"message {self.TURNS - 1}"),))
            self.assertTrue(window.fits(past))
            self.assertTrue(0 < longest < 50_000, longest)

    def test_the_time_is_linear(self) -> None:
        counted = 0

        def count(text: str) -> int:
            nonlocal counted
            counted += len(text)
            return len(text)

        window, recall = Window(Strategy.TRUNCATE, 50_000, 20, count, lambda image: 1000), Recall()
        size = 0
        for record in self.write().read():
            recall.feed(record)
            size += len(records.encode(record))
            if isinstance(record, Ended):
                window.squeeze(recall.conversation)
        self.assertLess(counted, 10 * size)
