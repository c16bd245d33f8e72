from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.llm.model import ChatMessage, TextBlock, TokenUsage, ToolResult, ToolUse
from ironcurtain.shell.context import Prompt
from ironcurtain.shell.window import OUTPUT_LEFT_OUT, ContextWindow


def words(text: str) -> int:
    return len(text.split())


def asked(instruction: str, *terminal: str) -> Prompt:
    return Prompt(instruction, "s", terminal, "", "m")


def texts(messages: tuple[ChatMessage, ...]) -> str:
    return "\n".join(block.text for m in messages for block in m.content if isinstance(block, TextBlock))


def results(messages: tuple[ChatMessage, ...]) -> list[str]:
    return [block.content for m in messages for block in m.content if isinstance(block, ToolResult)]


def use(id: str) -> ToolUse:
    return ToolUse(id, "shell", {"command": "ls", "purpose": ""})


class WindowTests(SynchronousTestCase):
    def test_what_fits_is_sent_as_it_was(self) -> None:
        window = ContextWindow(words, lambda: 100_000)
        window.instruct(asked("first", "$ ls"))
        self.assertEqual(window.answer((TextBlock("I look."), use("1"))), [use("1")])
        window.results((ToolResult("1", "notes", False),))
        window.answer((TextBlock("Done."),))
        window.instruct(asked("second"))
        self.assertEqual(
            window.messages(),
            (
                ChatMessage("user", (TextBlock(asked("first", "$ ls").text),)),
                ChatMessage("assistant", (TextBlock("I look."), use("1"))),
                ChatMessage("user", (ToolResult("1", "notes", False),)),
                ChatMessage("assistant", (TextBlock("Done."),)),
                ChatMessage("user", (TextBlock(asked("second").text),)),
            ),
        )

    def test_what_the_user_adds_goes_with_the_results(self) -> None:
        window = ContextWindow(words, lambda: 100_000)
        window.instruct(asked("first"))
        window.say("quickly")
        window.answer((use("1"),))
        window.interrupt("cancelled")
        window.say("go on")
        first, _, last = window.messages()
        self.assertEqual(first.content[1:], (TextBlock("quickly"),))
        self.assertEqual(last.content, (ToolResult("1", "cancelled", True), TextBlock("go on")))

    def test_tokens_are_counted_until_the_provider_says_them(self) -> None:
        window = ContextWindow(words, lambda: 100_000, fixed=100)
        window.instruct(asked("one two"))
        self.assertEqual(window.tokens, 100 + words(asked("one two").text))
        window.answer((TextBlock("yes"),), TokenUsage(5, 7, 11, 13))
        self.assertEqual(window.tokens, 5 + 7 + 11 + 13)
        window.say("a b c")
        self.assertEqual(window.tokens, 39)
        window.answer((TextBlock("d e"),), TokenUsage())
        self.assertEqual(window.tokens, 41)

    def test_the_oldest_lines_of_the_terminal_go_first(self) -> None:
        window = ContextWindow(words, lambda: 180)
        window.instruct(asked("first", *(f"old{number}" for number in range(60))))
        window.answer((TextBlock("Done."),))
        window.instruct(asked("second", *(f"new{number}" for number in range(60))))
        text = texts(window.messages())
        self.assertLessEqual(window.tokens, 180 * 0.75)
        for kept in ("first", "Done.", "second", "new0", "new59", "old59"):
            self.assertIn(kept, text)
        self.assertNotIn("old0\n", text)
        window.instruct(asked("third", *(f"newer{number}" for number in range(100))))
        text = texts(window.messages())
        self.assertIn("newer99", text)
        self.assertNotIn("new59", text)

    def test_then_the_oldest_turns_become_lines(self) -> None:
        window = ContextWindow(words, lambda: 100)
        for number in range(3):
            window.instruct(asked(f"instruction {number}"))
            window.answer((use("1"),))
            window.results((ToolResult("1", "x " * 40, False),))
            window.answer((TextBlock(f"outcome\n{number}"),))
        messages = window.messages()
        self.assertTrue(texts(messages).startswith("Earlier in this session:\n- instruction 0 -> outcome 0\n"))
        self.assertEqual(len(results(messages)), 1)
        self.assertEqual([message.role for message in messages], ["user", "assistant", "user", "assistant"])

    def test_only_so_many_turns_are_kept_whole(self) -> None:
        window = ContextWindow(words, lambda: 100_000, turns=4)
        for number in range(5):
            window.instruct(asked(f"instruction {number}"))
        text = texts(window.messages())
        self.assertIn("- instruction 0 -> no answer\n- instruction 1 -> no answer", text)
        self.assertEqual(text.count("state of the shell m:"), 2)

    def test_the_beginning_stays_the_same_for_some_turns(self) -> None:
        window, beginnings = ContextWindow(words, lambda: 100_000, turns=8), set[ChatMessage]()
        for number in range(80):
            window.instruct(asked(f"instruction {number}", *["line"] * 10))
            window.answer((TextBlock("done"),))
            beginnings.add(window.messages()[0])
        self.assertLess(len(beginnings), 24)

    def test_a_long_session_stays_small(self) -> None:
        window = ContextWindow(words, lambda: 100_000)
        sizes = []
        for number in range(400):
            window.instruct(asked(f"instruction {number}", *["line"] * 20))
            window.answer((TextBlock("done"),))
            sizes.append(words(texts(window.messages())))
        self.assertLess(max(sizes[200:]), 1.05 * max(sizes[:200]))

    def test_then_results_of_the_current_turn(self) -> None:
        window = ContextWindow(words, lambda: 200)
        window.instruct(asked("first"))
        for number in range(6):
            window.answer((use(str(number)),))
            window.results((ToolResult(str(number), f"{number} " * 50, False),))
        left = results(window.messages())
        self.assertEqual(left[0], OUTPUT_LEFT_OUT)
        self.assertEqual(left[-1], "5 " * 50)
        self.assertEqual(len(left), 6)
        self.assertLessEqual(window.tokens, 150)
        self.assertEqual(results(window.messages()), left)

    @given(
        st.lists(
            st.tuples(st.integers(0, 30), st.lists(st.integers(0, 60), max_size=4), st.booleans()),
            min_size=1,
            max_size=8,
        ),
        st.integers(1, 300),
        st.integers(1, 4),
    )
    def test_roles_alternate_and_every_use_has_its_result(
        self, turns: list[tuple[int, list[int], bool]], limit: int, kept: int
    ) -> None:
        window = ContextWindow(words, lambda: limit, turns=kept)
        for number, (lines, outputs, ends) in enumerate(turns):
            window.instruct(asked(f"instruction {number}", *["line"] * lines))
            for step, size in enumerate(outputs):
                id = f"{number}_{step}"
                window.answer((use(id),))
                window.results((ToolResult(id, "word " * size, False),))
                self.check(window)
            if ends:
                window.answer((TextBlock("done"),))
            self.check(window)
        self.assertIn(f"instruction {len(turns) - 1}", texts(window.messages()))

    def check(self, window: ContextWindow) -> None:
        messages = window.messages()
        roles = [message.role for message in messages]
        self.assertEqual(roles, [("user", "assistant")[index % 2] for index in range(len(roles))])
        for message, following in pairwise(messages):
            uses = [block.id for block in message.content if isinstance(block, ToolUse)]
            answered = [block.id for block in following.content if isinstance(block, ToolResult)]
            self.assertEqual(answered if message.role == "assistant" else [], uses)
