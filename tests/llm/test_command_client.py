"""Real commands under the real reactor; the limit of silence alone is played by a clock."""

from __future__ import annotations

import os
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import deferLater

from ironcurtain.llm.command_client import SHORTEST_LIMIT, CommandModelClient
from ironcurtain.llm.model import (
    ChatMessage,
    ErrorKind,
    ModelError,
    ModelEvent,
    ModelReply,
    ModelRequest,
    TextBlock,
    TextDelta,
    ToolAsked,
    ToolSpec,
    ToolUse,
)
from ironcurtain.process.termination import GRACE_SECONDS
from tests.process.commands import RealCommandCase, the_reactor

SHELL = ToolSpec("shell", "Runs a command.", {"properties": {"command": {}, "purpose": {}}})


class CommandModelTests(RealCommandCase):
    def setUp(self) -> None:
        super().setUp()
        self.told: list[ModelEvent] = []

    def ask(self, *argv: str, max_tokens: int = 100) -> Deferred[ModelReply]:
        environ = {"PATH": os.environ["PATH"], "MARK": str(self.mark)}
        client = CommandModelClient(argv, environ, the_reactor, self.clock, stall=20.0)
        messages = (ChatMessage("user", (TextBlock("Grüße?"),)),)
        request = ModelRequest("Be brief.", messages, (SHELL,), "llama3", max_tokens)
        return Deferred.fromCoroutine(client.converse(request, self.told.append))

    def run_shell(self, script: str, **options: Any) -> Deferred[ModelReply]:
        return self.ask("sh", "-c", script, **options)

    async def fails(self, running: Deferred[ModelReply], kind: ErrorKind) -> str:
        error: Any = await self.assertFailure(running, ModelError)
        self.assertEqual(error.kind, kind)
        self.assertEqual(self.clock.getDelayedCalls(), [])
        return str(error)

    async def test_the_prompt_is_its_input_and_the_answer_its_output(self) -> None:
        reply = await self.run_shell("cat; printf 'Schön.'")
        self.assertIsInstance(reply.content[0], TextBlock)
        [block] = reply.content
        assert isinstance(block, TextBlock)
        self.assertTrue(block.text.startswith("Be brief.\n\nTool `shell`: Runs a command."), block.text)
        self.assertTrue(block.text.endswith("### User\nGrüße?\n\n### Assistant\nSchön."), block.text)
        self.assertEqual((reply.stop_reason, reply.model), ("end_turn", "llama3"))
        self.assertGreater(reply.usage.output_tokens, reply.usage.input_tokens)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    async def test_fenced_blocks_become_tool_uses(self) -> None:
        reply = await self.run_shell("printf '%s\\n' 'I look.' '```shell See' 'ls -l' '```'")
        use = ToolUse("text_1_1", "shell", {"command": "ls -l", "purpose": "See"})
        self.assertEqual((reply.content, reply.stop_reason), ((TextBlock("I look."), use), "tool_use"))
        self.assertIn(ToolAsked(use), self.told)

    async def test_text_is_told_as_it_comes(self) -> None:
        asked = self.run_shell('printf "so\\303"; while ! [ -e "$MARK" ]; do sleep 0.01; done; printf "\\266n"')
        while not self.told:
            await deferLater(the_reactor, 0.01)
        self.assertEqual(self.told, [TextDelta("so")])
        self.mark.write_text("go")
        self.assertEqual((await asked).content, (TextBlock("soön"),))

    async def test_why_it_failed_is_told(self) -> None:
        said = await self.fails(self.run_shell("echo pulling; echo 'no such model' >&2; exit 3"), "network")
        self.assertTrue(said.endswith("ended with status 3: no such model"), said)
        said = await self.fails(self.run_shell("kill -9 $$"), "network")
        self.assertTrue(said.endswith("was ended by a signal"), said)
        said = await self.fails(self.run_shell(":"), "network")
        self.assertTrue(said.endswith("wrote no answer"), said)

    async def test_a_program_that_does_not_exist(self) -> None:
        said = await self.fails(self.ask("no-such-model", "run"), "network")
        self.assertEqual(said, "there is no command no-such-model: check its name and PATH")

    async def test_silence_ends_it(self) -> None:
        asked = self.run_shell('echo $$ >"$MARK"; echo well; exec sleep 60')
        pid = await self.marked()
        while not self.told:
            await deferLater(the_reactor, 0.01)
        self.clock.advance(19.9)
        self.assertTrue(self.is_alive(pid))
        self.clock.advance(0.2)
        self.assertIn("nothing for 20 s", await self.fails(asked, "stalled"))
        self.assertFalse(self.is_alive(pid))

    async def test_whatever_it_writes_ends_the_silence(self) -> None:
        for descriptor in ("1", "2"):
            self.told.clear()
            wait = 'until [ -e "$MARK" ]; do sleep 0.01; done; rm "$MARK"'
            asked = self.run_shell(f"echo a; {wait}; echo b >&{descriptor}; {wait}; echo c")
            while not self.told:
                await deferLater(the_reactor, 0.01)
            self.clock.advance(15.0)
            self.mark.write_text("go")
            [limit] = self.clock.getDelayedCalls()
            for _ in range(1000):
                if limit.getTime() > self.clock.seconds() + 15.0:
                    break
                await deferLater(the_reactor, 0.01)
            self.clock.advance(15.0)
            self.mark.write_text("go")
            self.assertEqual((await asked).stop_reason, "end_turn")

    async def test_an_answer_that_does_not_end_is_cut(self) -> None:
        reply = await self.run_shell("exec yes", max_tokens=1)
        self.assertEqual(reply.stop_reason, "max_tokens")
        told = "".join(event.text for event in self.told if isinstance(event, TextDelta))
        self.assertEqual(told, ("y\n" * SHORTEST_LIMIT)[:SHORTEST_LIMIT])

    async def test_cancelling_ends_the_command_and_what_it_started(self) -> None:
        asked = self.run_shell("sh -c 'echo $$ >\"$MARK\"; sleep 60; :'; :")
        pid = await self.marked()
        asked.cancel()
        await self.assertFailure(asked, CancelledError)
        await self.gone(pid)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    async def test_cancelling_ends_one_that_does_not_want_to(self) -> None:
        asked = self.run_shell('trap "" TERM; echo $$ >"$MARK"; while :; do sleep 0.05; done')
        pid = await self.marked()
        asked.cancel()
        self.assertTrue(self.is_alive(pid))
        self.clock.advance(GRACE_SECONDS)
        await self.assertFailure(asked, CancelledError)
        await self.gone(pid)

    async def test_cancelling_twice_does_not_wait(self) -> None:
        asked = self.run_shell('trap "" TERM; echo $$ >"$MARK"; while :; do sleep 0.05; done')
        pid = await self.marked()
        asked.cancel()
        asked.cancel()
        await self.assertFailure(asked, CancelledError)
        await self.gone(pid)
