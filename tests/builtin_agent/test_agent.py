"""The loop of the built-in agent: with a model of given replies and an interpreter that records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.builtin_agent.agent import BuiltinAgent
from ironcurtain.codemode.interpreter import Call, Interpreter
from ironcurtain.codemode.model import RunResult, Tool
from ironcurtain.errors import SessionError
from ironcurtain.llm.model import (
    Block,
    ModelError,
    ModelEvent,
    ModelReply,
    ModelRequest,
    Retrying,
    TextBlock,
    TextDelta,
    ToolResult,
    ToolUse,
)
from ironcurtain.llm.model import TokenUsage as Tokens
from ironcurtain.llm.registry import Chosen
from ironcurtain.session import events
from ironcurtain.session.budget import Accounting, BudgetLimits, BudgetMeter
from ironcurtain.session.model import Reply, Turn, Usage

RUN = ToolUse("t1", "execute_code", {"code": "print(1)"})


class Model:
    """Gives its replies in order; one that is an exception is raised, one that is a Deferred is waited for."""

    name = "given"

    def __init__(self, *replies: Sequence[Block] | Exception | Deferred[Any]) -> None:
        self.replies, self.requests = list(replies), list[ModelRequest]()

    async def converse(self, request: ModelRequest, notify: Callable[[ModelEvent], None]) -> ModelReply:
        self.requests.append(request)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, Deferred):
            reply = await reply
        for block in reply:
            if isinstance(block, TextBlock):
                notify(TextDelta(block.text))
        return ModelReply(tuple(reply), "end_turn", Tokens(10, 5), "given-1")


class Recorder:
    """An interpreter that runs nothing."""

    def __init__(self, result: RunResult) -> None:
        self.result, self.ran, self.closed = result, list[str](), False
        self.waiting: Deferred[RunResult] | None = None

    async def run(self, code: str) -> RunResult:
        self.ran.append(code)
        return await self.waiting if self.waiting is not None else self.result

    async def close(self) -> None:
        self.closed = True


class AgentTests(SynchronousTestCase):
    def make(self, *replies: Any, limits: BudgetLimits | None = None, max_steps: int = 3) -> BuiltinAgent:
        self.clock, self.model, self.events = Clock(), Model(*replies), list[events.SessionEvent]()
        self.interpreter = Recorder(RunResult("1\n", None, None, False))
        accounting = Accounting(
            BudgetMeter(limits or BudgetLimits()), lambda tokens: 0.5, self.events.append, self.clock.seconds
        )
        agent = BuiltinAgent(
            choose=lambda: succeed(Chosen(self.model, "given-1")),
            max_tokens=100,
            max_steps=max_steps,
            workspace="/workspace",
            tools=self.tools,
            call=lambda server, tool, arguments: Deferred(),
            make_interpreter=self.make_interpreter,
            describe=lambda tools: ", ".join(tool.name for tool in tools),
            language="No files.",
            accounting=accounting,
            emit=self.events.append,
        )
        self.successResultOf(Deferred.fromCoroutine(agent.start()))
        return agent

    async def tools(self) -> Sequence[Tool]:
        return [Tool("filesystem", "read_file", "", {})]

    async def make_interpreter(self, tools: Sequence[Tool], call: Call) -> Interpreter:
        return self.interpreter

    def respond(self, agent: BuiltinAgent, message: str = "hello") -> Deferred[Reply]:
        return Deferred.fromCoroutine(agent.respond(message))

    def seen(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def test_a_conversation_of_before_goes_on(self) -> None:
        agent = self.make([TextBlock("xyzzy.")])
        for message, answer, error in (("The word is xyzzy.", "Good.", ""), ("And?", "", "cancelled")):
            agent.remember(Turn(number=1, message=message, answer=answer, usage=Usage(), timestamp="", error=error))
        self.successResultOf(self.respond(agent, "What was the word?"))
        messages = self.model.requests[0].messages
        said = [block.text for m in messages for block in m.content if isinstance(block, TextBlock)]
        self.assertEqual(said, ["The word is xyzzy.", "Good.", "And?", "(no answer: cancelled)", "What was the word?"])

    def test_an_answer_without_code_is_the_reply(self) -> None:
        agent = self.make([TextBlock("Four.")])
        reply = self.successResultOf(self.respond(agent))
        self.assertEqual(reply.text, "Four.")
        self.assertEqual((reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.cost), (10, 5, 0.5))
        self.assertEqual(self.seen(events.AgentText), [events.AgentText(text="Four.")])

    def test_code_is_run_and_its_output_given_to_the_model(self) -> None:
        agent = self.make([TextBlock("Look."), RUN], [TextBlock("One.")])
        self.assertEqual(self.successResultOf(self.respond(agent)).text, "One.")
        self.assertEqual(self.interpreter.ran, ["print(1)"])
        self.assertEqual(self.model.requests[1].messages[-1].content, (ToolResult("t1", "1", False),))
        self.assertEqual(self.seen(events.CodeStarted), [events.CodeStarted(code="print(1)")])

    def test_the_model_is_told_of_tools_workspace_and_language(self) -> None:
        agent = self.make([TextBlock("Yes.")])
        self.successResultOf(self.respond(agent))
        request = self.model.requests[0]
        self.assertIn("read_file", request.system)
        self.assertIn("/workspace", request.system)
        self.assertIn("No files.", request.tools[0].description)

    def test_the_context_is_kept_from_message_to_message(self) -> None:
        agent = self.make([TextBlock("Hello, Ada.")], [TextBlock("Ada.")])
        self.successResultOf(self.respond(agent, "I am Ada."))
        self.successResultOf(self.respond(agent, "Who am I?"))
        blocks = [block for message in self.model.requests[1].messages for block in message.content]
        said = [block.text for block in blocks if isinstance(block, TextBlock)]
        self.assertEqual(said, ["I am Ada.", "Hello, Ada.", "Who am I?"])

    def test_a_tool_that_does_not_exist_is_an_error_for_the_model_and_runs_nothing(self) -> None:
        for use in (ToolUse("t1", "shell", {"code": "x"}), ToolUse("t1", "execute_code", {"code": 7})):
            agent = self.make([use], [TextBlock("Sorry.")])
            self.successResultOf(self.respond(agent))
            (result,) = self.model.requests[1].messages[-1].content
            assert isinstance(result, ToolResult)
            self.assertTrue(result.is_error)
            self.assertEqual(self.interpreter.ran, [])

    def test_the_steps_of_a_message_are_limited_and_the_next_message_goes_on(self) -> None:
        agent = self.make([RUN], [RUN], [RUN], [TextBlock("Done.")])
        failure = self.failureResultOf(self.respond(agent), SessionError)
        self.assertEqual(failure.value.code, "MESSAGE_FAILED")
        self.assertIn("agent.max_steps", str(failure.value))
        self.assertEqual(self.successResultOf(self.respond(agent, "go on")).text, "Done.")

    def test_a_failing_model_fails_the_message_and_its_tokens_are_counted(self) -> None:
        agent = self.make(ModelError("overloaded", "too busy", usage=Tokens(7, 0)), [TextBlock("Back.")])
        failure = self.failureResultOf(self.respond(agent), SessionError)
        self.assertEqual((failure.value.code, str(failure.value)), ("MESSAGE_FAILED", "too busy"))
        self.assertEqual(agent.usage().input_tokens, 7)
        self.assertEqual(self.successResultOf(self.respond(agent)).text, "Back.")

    def test_a_conversation_that_is_too_long_says_to_start_a_new_session(self) -> None:
        agent = self.make(ModelError("context-overflow", "prompt is too long"))
        self.assertIn("new session", str(self.failureResultOf(self.respond(agent), SessionError).value))

    def test_an_empty_answer_is_a_failure(self) -> None:
        agent = self.make([])
        self.assertIn("empty answer", str(self.failureResultOf(self.respond(agent), SessionError).value))

    def test_a_budget_warns_and_then_stops_before_the_next_request(self) -> None:
        agent = self.make([RUN], [RUN], [RUN], limits=BudgetLimits(tokens=18), max_steps=9)
        failure = self.failureResultOf(self.respond(agent), SessionError)
        self.assertIn("tokens", str(failure.value))
        self.assertEqual(len(self.model.requests), 2)
        self.assertEqual((len(self.seen(events.BudgetWarning)), len(self.seen(events.BudgetExhausted))), (1, 1))

    def test_cancelling_while_the_model_thinks_leaves_a_conversation_that_goes_on(self) -> None:
        agent = self.make(Deferred(), [TextBlock("Here.")])
        responding = self.respond(agent)
        responding.cancel()
        self.failureResultOf(responding)
        self.assertEqual(self.successResultOf(self.respond(agent, "again")).text, "Here.")
        self.assertEqual([message.role for message in self.model.requests[1].messages], ["user"])

    def test_cancelling_while_code_runs_gives_the_tool_use_a_result(self) -> None:
        agent = self.make([RUN], [TextBlock("Here.")])
        self.interpreter.waiting = Deferred()
        responding = self.respond(agent)
        responding.cancel()
        self.failureResultOf(responding)
        self.successResultOf(self.respond(agent, "again"))
        first = self.model.requests[1].messages[-1].content[0]
        self.assertEqual(first, ToolResult("t1", "cancelled by the person", True))

    def test_a_retry_is_reported(self) -> None:
        agent = self.make([TextBlock("x")])
        agent._model_event(Retrying(3.0, "overloaded"))
        self.assertEqual(self.seen(events.ModelRetry), [events.ModelRetry(delay=3.0, reason="overloaded")])

    def test_lost_variables_are_told_to_the_model(self) -> None:
        agent = self.make([RUN], [TextBlock("x")])
        self.interpreter.result = RunResult("", None, "MemoryError: too much", True)
        self.successResultOf(self.respond(agent))
        (result,) = self.model.requests[1].messages[-1].content
        assert isinstance(result, ToolResult)
        self.assertTrue(result.is_error)
        self.assertIn("variables are lost", result.content)

    def test_what_is_cut_is_reported(self) -> None:
        agent = self.make([RUN], [RUN], [TextBlock("x")])
        self.interpreter.result = RunResult("é\n", "b", None, False, left_out=100)
        self.successResultOf(self.respond(agent))
        self.assertEqual(self.seen(events.ResultTruncated), [events.ResultTruncated(size=104, kept=4)] * 2)
        agent = self.make([RUN], [TextBlock("x")])
        self.successResultOf(self.respond(agent))
        self.assertEqual(self.seen(events.ResultTruncated), [])

    def test_stopping_closes_the_interpreter(self) -> None:
        agent = self.make()
        self.successResultOf(Deferred.fromCoroutine(agent.stop()))
        self.assertTrue(self.interpreter.closed)
