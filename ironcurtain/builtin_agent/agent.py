"""The loop of the built-in agent: ask the model, run its code, return the result, until it answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
from twisted.internet.defer import CancelledError

from ironcurtain.builtin_agent.prompt import EXECUTE_CODE, execute_code_tool, system_prompt
from ironcurtain.codemode.interpreter import Call, Interpreter, InterpreterFactory
from ironcurtain.codemode.model import RunResult, Tool, ToolReply
from ironcurtain.errors import SessionError
from ironcurtain.llm.conversation import Conversation
from ironcurtain.llm.model import (
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
from ironcurtain.llm.registry import Chosen
from ironcurtain.session import events
from ironcurtain.session.budget import Accounting
from ironcurtain.session.model import Reply, Turn, Usage

DENIED_CODES = frozenset(
    {
        "denied-by-rule",
        "denied-by-person",
        "expired",
        "withdrawn",
        "nobody-to-ask",
        "too-many-questions",
        "changed-meanwhile",
    }
)
"""Values of ``_meta["ironcurtain/code"]`` that mean that the call was not permitted."""

_WRAPPERS = ("content", "result")


def reply(raw: bytes) -> ToolReply:
    """
    Extract the value of a result.

    Structured content is preferred. If it only wraps one value (``{"content": ...}`` of the reference servers,
    ``{"result": ...}`` of the Python SDK), that value is used. Otherwise texts are joined to one string; with other
    parts, the value is a list of strings and parts.

    :param raw: a ``CallToolResult`` object as JSON.
    """
    try:
        result = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ToolReply(None, "the tool's result is not JSON, or is nested too deeply")
    if not isinstance(result, dict):
        return ToolReply(None, "the tool's result is not an object")
    value = _value(result)
    if not result.get("isError"):
        return ToolReply(value)
    meta = result.get("_meta")
    denied = isinstance(meta, dict) and meta.get("ironcurtain/code") in DENIED_CODES
    return ToolReply(None, value if isinstance(value, str) and value else "the tool failed without a message", denied)


def _value(result: dict[str, Any]) -> Any:
    structured = result.get("structuredContent")
    if isinstance(structured, dict) and not result.get("isError"):
        if len(structured) == 1 and (name := next(iter(structured))) in _WRAPPERS:
            return structured[name]
        return structured
    parts = result.get("content")
    values = [_part(part) for part in parts] if isinstance(parts, list) else []
    return "\n".join(values) if all(isinstance(value, str) for value in values) else values


def _part(part: Any) -> Any:
    is_text = isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)
    return part["text"] if is_text else part


TOO_LONG = "the conversation is too long for the model: start a new session (/history still shows this one)"


class BuiltinAgent:
    """
    An agent in this process.

    :param choose: chooses the model; called once, when the agent starts.
    :param tools: returns all tools of the session; called once, when the agent starts.
    :param call: makes a tool call, through the policy.
    :param describe: describes the tools for the model.
    :param language: describes the interpreter for the model.
    :param max_steps: maximum number of model requests for one message.
    """

    terminal = None

    def __init__(
        self,
        *,
        choose: Callable[[], Awaitable[Chosen]],
        max_tokens: int,
        max_steps: int,
        workspace: str,
        tools: Callable[[], Awaitable[Sequence[Tool]]],
        call: Call,
        make_interpreter: InterpreterFactory,
        describe: Callable[[Sequence[Tool]], str],
        language: str,
        accounting: Accounting,
        emit: Callable[[events.SessionEvent], None],
    ) -> None:
        self._choose = choose
        self._chosen: Chosen | None = None
        self._max_tokens, self._max_steps = max_tokens, max_steps
        self._workspace, self._tools, self._call = workspace, tools, call
        self._make_interpreter, self._describe = make_interpreter, describe
        self._accounting, self._emit = accounting, emit
        self._conversation = Conversation()
        self._interpreter: Interpreter | None = None
        self._system, self._execute_code = "", execute_code_tool(language)

    async def start(self) -> None:
        """
        Choose the model, and create the interpreter, with the session's current tools.

        :raises ConfigurationError: there is no key for the model, or its settings are wrong.
        """
        self._chosen = await self._choose()
        tools = await self._tools()
        self._system = system_prompt(self._workspace, self._describe(tools))
        self._interpreter = await self._make_interpreter(tools, self._call)

    async def stop(self) -> None:
        """End the interpreter."""
        if self._interpreter is not None:
            await self._interpreter.close()

    @property
    def model(self) -> str:
        """The provider's name of the model; empty before the agent has started."""
        return self._chosen.model if self._chosen is not None else ""

    def remember(self, turn: Turn) -> None:
        """Add a turn from before the session was resumed to the conversation."""
        self._conversation.say(turn.message)
        self._conversation.answer((TextBlock(turn.answer or f"(no answer: {turn.error or 'nothing was said'})"),))

    def usage(self) -> Usage:
        """:returns: the usage of the current or last message so far."""
        return self._accounting.turn

    async def respond(self, message: str) -> Reply:
        """
        Work on a message.

        :raises SessionError: no answer: the model failed, the budget is used up, or the steps are.
        """
        self._accounting.begin()
        self._conversation.say(message)
        try:
            for step in range(1, self._max_steps + 1):
                self._accounting.require()
                reply = await self._ask(step)
                if not (uses := self._conversation.answer(reply.content)):
                    return Reply(_answer(reply), self._accounting.turn)
                self._conversation.results([await self._use(use) for use in uses])
        except CancelledError:
            self._conversation.interrupt("cancelled by the person")
            raise
        except SessionError as e:
            self._conversation.interrupt(str(e))
            raise
        raise SessionError(
            "MESSAGE_FAILED",
            f"no answer after {self._max_steps} model requests: say what to do next, or raise agent.max_steps",
        )

    async def _ask(self, step: int) -> ModelReply:
        assert self._chosen is not None
        request = ModelRequest(
            self._system, self._conversation.messages, (self._execute_code,), self.model, self._max_tokens
        )
        try:
            reply = await self._chosen.provider.converse(request, self._model_event)
        except ModelError as e:
            if e.usage is not None:
                self._accounting.failed(e.usage)
            raise SessionError("MESSAGE_FAILED", _advice(e)) from e
        self._accounting.step(step, reply.usage)
        return reply

    def _model_event(self, event: ModelEvent) -> None:
        if isinstance(event, TextDelta):
            self._emit(events.AgentText(text=event.text))
        elif isinstance(event, Retrying):
            self._emit(events.ModelRetry(delay=event.delay_seconds, reason=event.reason))

    async def _use(self, use: ToolUse) -> ToolResult:
        code = use.input.get("code")
        if use.name != EXECUTE_CODE or not isinstance(code, str) or self._interpreter is None:
            return ToolResult(use.id, f"there is only the tool {EXECUTE_CODE}, with one text argument: code", True)
        self._emit(events.CodeStarted(code=code))
        result = await self._interpreter.run(code)
        self._emit(events.CodeFinished(error=(result.error or "").strip().rpartition("\n")[2]))
        text = _shown(result)
        if result.left_out:
            size = len(text.encode())
            self._emit(events.ResultTruncated(size=size + result.left_out, kept=size))
        return ToolResult(use.id, text, result.error is not None)


def _answer(reply: ModelReply) -> str:
    text = "".join(block.text for block in reply.content if isinstance(block, TextBlock)).strip()
    if reply.stop_reason == "model_context_window_exceeded":
        raise SessionError("MESSAGE_FAILED", TOO_LONG)
    if not text:
        raise SessionError("MESSAGE_FAILED", f"the model gave an empty answer ({reply.stop_reason}): ask again")
    if reply.stop_reason == "max_tokens":
        return f"{text}\n[cut at the model's limit: say 'continue', or raise model.max_tokens]"
    return text


def _shown(result: RunResult) -> str:
    parts = [result.output.rstrip("\n")]
    if result.value is not None:
        parts.append(result.value)
    if result.error is not None:
        parts.append(result.error)
    if result.variables_lost:
        parts.append("The interpreter was restarted: all variables are lost.")
    return "\n".join(part for part in parts if part) or "(no output)"


def _advice(error: ModelError) -> str:
    if error.kind == "context-overflow":
        return TOO_LONG
    return str(error)
