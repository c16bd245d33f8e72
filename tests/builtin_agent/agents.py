"""Built-in agents with a model that gives prepared answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.builtin_agent.agent import BuiltinAgent
from ironcurtain.builtin_agent.memory import Memory
from ironcurtain.builtin_agent.records import (
    AnyRecord,
)
from ironcurtain.builtin_agent.window import Window
from ironcurtain.codemode.interpreter import Call, Interpreter
from ironcurtain.codemode.model import RunResult, Tool, ToolReply
from ironcurtain.llm.compaction import Strategy
from ironcurtain.llm.conversation import Conversation
from ironcurtain.llm.fallback import FallbackClient
from ironcurtain.llm.model import (
    Block,
    ModelEvent,
    ModelReply,
    ModelRequest,
    TextBlock,
    TextDelta,
    ToolUse,
)
from ironcurtain.llm.model import TokenUsage as Tokens
from ironcurtain.llm.registry import Chosen
from ironcurtain.secrets.redaction import Redactor
from ironcurtain.session import events
from ironcurtain.session.budget import Accounting, BudgetLimits, BudgetMeter
from ironcurtain.session.model import Reply

RUN = ToolUse("t1", "execute_code", {"code": "print(1)"})


class Model:
    """Gives its replies in order; one that is an exception is raised, one that is a Deferred is waited for."""

    name = "given"

    def __init__(self, *replies: Sequence[Block] | Exception | Deferred[Any]) -> None:
        self.replies, self.requests = list(replies), list[ModelRequest]()
        self.stop_reason, self.usage = "end_turn", Tokens(10, 5)
        self.notify: Callable[[ModelEvent], None]
        self.waiting: Deferred[Any]

    async def converse(self, request: ModelRequest, notify: Callable[[ModelEvent], None]) -> ModelReply:
        self.requests.append(request)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, Deferred):
            self.notify, self.waiting = notify, reply
            reply = await reply
        for block in reply:
            if isinstance(block, TextBlock):
                notify(TextDelta(block.text))
        return ModelReply(tuple(reply), self.stop_reason, self.usage, "given-1")


class Recorder:
    """An interpreter that runs nothing, or makes one call."""

    call: Call

    def __init__(self, result: RunResult) -> None:
        self.result, self.ran, self.closed = result, list[str](), False
        self.waiting: Deferred[RunResult] | None = None
        self.arguments: dict[str, Any] | None = None

    async def run(self, code: str) -> RunResult:
        self.ran.append(code)
        if self.arguments is not None:
            await self.call("filesystem", "write_file", self.arguments)
        return await self.waiting if self.waiting is not None else self.result

    async def close(self) -> None:
        self.closed = True


class AgentCase(SynchronousTestCase):
    def make(
        self,
        *replies: Any,
        limits: BudgetLimits | None = None,
        max_steps: int = 3,
        window: Window | None = None,
        first: Model | None = None,
    ) -> BuiltinAgent:
        """:param first: a model that is asked before the one with the replies."""
        self.clock, self.model, self.events = Clock(), Model(*replies), list[events.SessionEvent]()
        self.interpreter = Recorder(RunResult("1\n", None, None, False))
        accounting = Accounting(
            BudgetMeter(limits or BudgetLimits()), lambda tokens: 0.5, self.events.append, self.clock.seconds
        )
        chosen = Chosen(self.model, "given-1")
        if first is not None:
            choices = [(first, "first-1"), (self.model, "second-1")]
            chosen = Chosen(FallbackClient(choices, self.clock.seconds), "first-1")
        self.records = list[AnyRecord]()
        self.window = window or Window(Strategy.NONE, 1000, 20, len, lambda image: 1000)
        agent = BuiltinAgent(
            choose=lambda: succeed(chosen),
            max_tokens=100,
            max_steps=max_steps,
            workspace="/workspace",
            tools=self.tools,
            call=self.call,
            make_interpreter=self.make_interpreter,
            describe=lambda tools: ", ".join(tool.name for tool in tools),
            language="No files.",
            make_window=lambda model: self.window,
            recall=self.recall,
            accounting=accounting,
            emit=self.events.append,
        )
        self.successResultOf(Deferred.fromCoroutine(agent.start()))
        return agent

    async def tools(self) -> Sequence[Tool]:
        return [Tool("filesystem", "read_file", "", {})]

    def call(self, server: str, tool: str, arguments: dict[str, Any]) -> Deferred[ToolReply]:
        self.seen_records = len(self.records)
        self.calling: Deferred[ToolReply] = Deferred()
        return self.calling

    async def make_interpreter(self, tools: Sequence[Tool], call: Call) -> Interpreter:
        self.interpreter.call = call
        return self.interpreter

    async def recall(self, window: Window) -> Memory:
        return Memory(Conversation(), self.records.append, Redactor(), lambda: 7, lambda: "now")

    def respond(self, agent: BuiltinAgent, message: str = "hello") -> Deferred[Reply]:
        return Deferred.fromCoroutine(agent.respond(message))

    def seen(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]
