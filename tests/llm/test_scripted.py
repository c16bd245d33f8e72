from __future__ import annotations

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError
from ironcurtain.llm.model import (
    ChatMessage,
    ModelError,
    ModelEvent,
    ModelReply,
    ModelRequest,
    TextBlock,
    TextDelta,
    TokenUsage,
    ToolAsked,
    ToolResult,
    ToolStarted,
    ToolUse,
    UsageSeen,
)
from ironcurtain.llm.script import ScriptedModelClient, load_script, parse_script
from tests.llm.files import written

DEMO = """
version = 1

[[turns]]
expect = { last_user_contains = "files" }
text = "Let me look."
code = "print(1)"
usage = { input_tokens = 12, output_tokens = 3 }

[[turns]]
expect = { last_result_contains = "notes.txt", last_result_is_error = false }
text = "One file:\\n  notes.txt"
delay = 0.5
"""

ASKED = ChatMessage("user", (TextBlock("Which files are there?"),))
USED = ToolUse("scripted_1", "execute_code", {"code": "print(1)"})
LOOKED = ChatMessage("assistant", (TextBlock("Let me look."), USED))


def result(content: str, is_error: bool = False) -> ChatMessage:
    return ChatMessage("user", (ToolResult("scripted_1", content, is_error),))


def request(*messages: ChatMessage) -> ModelRequest:
    return ModelRequest("", messages, (), "scripted", 100)


class ScriptedProviderTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.told: list[ModelEvent] = []

    def ask(self, *messages: ChatMessage, script: str = DEMO) -> Deferred[ModelReply]:
        provider = ScriptedModelClient(parse_script(script, "demo.toml"), self.clock)
        return Deferred.fromCoroutine(provider.converse(request(*messages), self.told.append))

    def complaint(self, *messages: ChatMessage, script: str = DEMO) -> str:
        error = self.failureResultOf(self.ask(*messages, script=script), ModelError).value
        self.assertEqual((error.kind, error.retryable), ("script", False))
        return str(error)

    def test_text_and_code_become_a_tool_use(self) -> None:
        reply = self.successResultOf(self.ask(ASKED))
        self.assertEqual(reply, ModelReply(LOOKED.content, "tool_use", TokenUsage(12, 3), "scripted"))
        words = [TextDelta("Let "), TextDelta("me "), TextDelta("look.")]
        self.assertEqual(
            self.told, [*words, ToolStarted("execute_code"), ToolAsked(USED), UsageSeen(TokenUsage(12, 3))]
        )

    def test_words_come_in_their_own_time(self) -> None:
        asked = self.ask(ASKED, LOOKED, result("notes.txt"))
        self.assertEqual(self.told, [])
        self.clock.advance(0.5)
        self.assertEqual(self.told, [TextDelta("One ")])
        self.clock.pump([0.5, 0.5])
        reply = self.successResultOf(asked)
        self.assertEqual(reply.stop_reason, "end_turn")
        self.assertEqual("".join(e.text for e in self.told if isinstance(e, TextDelta)), "One file:\n  notes.txt")

    def test_commands_become_tool_uses_one_after_the_other(self) -> None:
        script = """
            version = 1
            [[turns]]
            text = "Two"
            commands = [{ command = "df -h", purpose = "Space left" }, { command = "ls" }]
            delay = 0.5
        """
        uses = [
            ToolUse("scripted_1_1", "shell", {"command": "df -h", "purpose": "Space left"}),
            ToolUse("scripted_1_2", "shell", {"command": "ls", "purpose": ""}),
        ]
        asked = self.ask(ASKED, script=script)
        self.clock.pump([0.5, 0.5])
        self.assertEqual(self.told, [TextDelta("Two"), ToolStarted("shell"), ToolAsked(uses[0]), ToolStarted("shell")])
        self.clock.advance(0.5)
        reply = self.successResultOf(asked)
        self.assertEqual((reply.content, reply.stop_reason), ((TextBlock("Two"), *uses), "tool_use"))

    def test_cancelling_stops_the_words(self) -> None:
        asked = self.ask(ASKED, LOOKED, result("notes.txt"))
        asked.cancel()
        self.failureResultOf(asked, CancelledError)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_the_turn_depends_on_the_conversation_alone(self) -> None:
        self.assertEqual(self.successResultOf(self.ask(ASKED)), self.successResultOf(self.ask(ASKED)))

    def test_a_turn_for_other_conversations_does_not_count(self) -> None:
        script = """
            version = 1
            [[turns]]
            first_user_contains = "secrets"
            text = "No."
            [[turns]]
            first_user_contains = "files"
            text = "One."
            [[turns]]
            text = "Yes."
        """
        one, yes = (ChatMessage("assistant", (TextBlock(text),)) for text in ("One.", "Yes."))
        asked = [(ASKED,), (ASKED, one, ChatMessage("user", (TextBlock("The secrets?"),)))]
        found = [self.successResultOf(self.ask(*messages, script=script)).content for messages in asked]
        self.assertEqual(found, [one.content, yes.content])
        self.assertIn("has 2 turns", self.complaint(ASKED, one, ASKED, yes, ASKED, script=script))

    def test_a_failed_expectation_says_what_was_expected_and_seen(self) -> None:
        self.assertEqual(
            self.complaint(ASKED, LOOKED, result("other.txt")),
            "demo.toml: turn 2: expected the last result to contain 'notes.txt', saw 'other.txt'",
        )
        self.assertIn("expected the user's last message to contain 'files'", self.complaint(result("files")))
        self.assertIn(
            "expected no error in the last result, saw one", self.complaint(ASKED, LOOKED, result("notes.txt", True))
        )

    def test_what_was_seen_is_cut_when_long(self) -> None:
        self.assertLess(len(self.complaint(ASKED, LOOKED, result("x" * 10_000))), 500)

    def test_a_script_that_is_too_short_says_so(self) -> None:
        end = ChatMessage("assistant", (TextBlock("One file."),))
        self.assertIn("has 2 turns", self.complaint(ASKED, LOOKED, result("notes.txt"), end, ASKED))


class FormatTests(SynchronousTestCase):
    def wrong(self, text: str) -> str:
        with self.assertRaises(ConfigurationError) as caught:
            parse_script(text, "demo.toml")
        self.assertTrue(str(caught.exception).startswith("demo.toml:"))
        return str(caught.exception)

    def test_mistakes_are_named(self) -> None:
        for text, named in (
            ("version = 1\nturns = [", "not TOML"),
            ("version = 2\n[[turns]]\ntext = 'a'", "demo.toml:1: version: version 2 is newer than 1"),
            ("version = 1", "turns"),
            ("version = 1\n[[turns]]\ncommands = []", "needs text, code, commands or tools"),
            ("version = 1\n[[turns]]\ncommands = [{ command = ' ' }]", "must not be empty"),
            ("version = 1\n[[turns]]\ncommands = ['ls']", "must be a table"),
            ("version = 1\n[[turns]]\ntxt = 'a'", "txt"),
            ("version = 1\n[[turns]]\ntext = 'a'\nexpect = { last_reslt = 'b' }", "last_reslt"),
            (
                "version = 1\n[[turns]]\ntext = 'a'\n[[turns]]\ndelay = 1",
                "turns[2]: needs text, code, commands or tools",
            ),
            ("version = 1\n[[turns]]\ntext = 'a'\ndelay = -1", "delay must be"),
            ("version = 1\n[[turns]]\ntext = 'a'\ndelay = nan", "delay must be"),
            ("version = 1\n[[turns]]\ntext = 3", "text: must be text, not a whole number"),
        ):
            self.assertIn(named, self.wrong(text))

    def test_a_file_is_read(self) -> None:
        path = written(self, DEMO.encode())
        self.assertEqual(load_script(path), parse_script(DEMO, path))

    def test_a_file_of_another_system_is_read_or_named(self) -> None:
        path = written(self, DEMO.replace("\n", "\r\n").encode("utf-8-sig"))
        self.assertEqual(load_script(path), parse_script(DEMO, path))
        with self.assertRaisesRegex(ConfigurationError, "is encoded in UTF-16"):
            load_script(written(self, DEMO.encode("utf-16")))

    def test_a_file_that_cannot_be_read_is_named(self) -> None:
        latin = written(self, b"version = 1 # \xe9")
        for path in ("/nowhere/demo.toml", latin):
            with self.assertRaisesRegex(ConfigurationError, path):
                load_script(path)
