"""The loop of the built-in agent: ask the model, run its code, return the result, until it answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from twisted.internet.defer import CancelledError

from ironcurtain.builtin_agent.memory import Memory
from ironcurtain.builtin_agent.prompt import EXECUTE_CODE, SUMMARISE, SUMMARY_SYSTEM, execute_code_tool, system_prompt
from ironcurtain.builtin_agent.records import Shorter
from ironcurtain.builtin_agent.window import Window
from ironcurtain.codemode.interpreter import Call, Interpreter, InterpreterFactory
from ironcurtain.codemode.model import RunResult, Tool
from ironcurtain.errors import SessionError
from ironcurtain.llm.compaction import Shortened, Strategy
from ironcurtain.llm.conversation import Past, ShownText, joined, nothing_said
from ironcurtain.llm.model import (
    ChatMessage,
    FellBack,
    ModelError,
    ModelEvent,
    ModelReply,
    ModelRequest,
    Retrying,
    TextBlock,
    TextDelta,
    TokenUsage,
    ToolResult,
    ToolUse,
)
from ironcurtain.llm.pictures import images_of
from ironcurtain.llm.registry import Chosen
from ironcurtain.session import events
from ironcurtain.session.agent_commands import read_command
from ironcurtain.session.budget import Accounting, Dimension
from ironcurtain.session.model import Reply, Usage

TOO_LONG = (
    "the conversation is too long for the model, and a message that did not fit is left out of it: send a shorter one, "
    "start a new session (/history still shows this one), or set session.context_strategy"
)


class BuiltinAgent:
    """
    An agent in this process.

    :param choose: chooses the model; called once, when the agent starts.
    :param tools: returns all tools of the session; called once, when the agent starts.
    :param call: makes a tool call, through the policy.
    :param describe: describes the tools for the model.
    :param language: describes the interpreter for the model.
    :param make_window: returns the context window of a model, by its name.
    :param recall: returns the memory, with the conversation of before if the session was resumed; called once, when the
        agent starts.
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
        make_window: Callable[[str], Window],
        recall: Callable[[Window], Awaitable[Memory]],
        accounting: Accounting,
        emit: Callable[[events.SessionEvent], None],
    ) -> None:
        self._choose = choose
        self._chosen: Chosen | None = None
        self._max_tokens, self._max_steps = max_tokens, max_steps
        self._workspace, self._tools, self._call = workspace, tools, call
        self._make_interpreter, self._describe = make_interpreter, describe
        self._accounting, self._emit = accounting, emit
        self._make_window, self._recall, self._shown = make_window, recall, ShownText()
        self._window: Window | None = None
        self._memory: Memory | None = None
        self._interpreter: Interpreter | None = None
        self._system, self._execute_code = "", execute_code_tool(language)

    async def start(self) -> None:
        """
        Choose the model, recall the conversation, and create the interpreter, with the session's current tools.

        :raises ConfigurationError: there is no key for the model, or its settings are wrong.
        """
        self._chosen = await self._choose()
        tools = await self._tools()
        self._system = system_prompt(self._workspace, self._describe(tools))
        self._window = self._make_window(self.model)
        self._window.always(self._system, self._execute_code.description)
        self._memory = await self._recall(self._window)
        self._interpreter = await self._make_interpreter(tools, self._memory.recording(self._call))

    async def stop(self) -> None:
        """End the interpreter."""
        if self._interpreter is not None:
            await self._interpreter.close()

    @property
    def model(self) -> str:
        """The provider's name of the model that was asked last; empty before the agent has started."""
        return self._chosen.asked if self._chosen is not None else ""

    def usage(self) -> Usage:
        """:returns: the usage of the current or last message so far."""
        return self._accounting.turn

    async def respond(self, message: str) -> Reply:
        """
        Work on a message.

        :raises SessionError: no answer: the model failed, the budget is used up, or the steps are.
        """
        assert self._memory is not None and self._window is not None
        if read_command(message) is not None:
            raise SessionError("MESSAGE_FAILED", "the built-in agent has no such command: start a new session")
        self._accounting.begin()
        self._memory.say(message)
        self._window.added((TextBlock(message),))
        try:
            answer = await self._work(self._memory, self._window)
        except CancelledError:
            self._memory.end("cancelled by the person")
            raise
        except SessionError as e:
            self._memory.end(str(e), too_long=str(e) == TOO_LONG)
            raise
        except Exception:
            self._memory.end("an internal error of IronCurtain")
            raise
        self._memory.end()
        return Reply(answer, self._accounting.turn)

    async def _work(self, memory: Memory, window: Window) -> str:
        for step in range(1, self._max_steps + 1):
            self._accounting.require()
            reply = await self._ask(memory, window, step)
            uses = memory.answer(reply)
            window.reported(reply.usage)
            if not uses:
                return _answer(reply)
            done = [await self._use(use) for use in uses]
            results = [result for result, _ in done]
            memory.results(results, variables_lost=any(lost for _, lost in done))
            window.added(results)
        raise SessionError(
            "MESSAGE_FAILED",
            f"no answer after {self._max_steps} model requests: say what to do next, or raise agent.max_steps",
        )

    async def _ask(self, memory: Memory, window: Window, step: int) -> ModelReply:
        self._shown = ShownText()
        try:
            await self._make_room(memory, window, step)
            try:
                return await self._converse(self._request(memory), step, self._model_event)
            except ModelError as e:
                refused = e.kind == "invalid-request" and self._leave_out_pictures(memory)
                if not refused and (e.kind != "context-overflow" or not window.overflowed(memory.past)):
                    raise
            await self._make_room(memory, window, step)
            return await self._converse(self._request(memory), step, self._model_event)
        except ModelError as e:
            if partial := self._shown.kept(e):
                memory.answer(ModelReply((TextBlock(partial),), "broken_off", e.usage or TokenUsage(), self.model))
            raise SessionError("MESSAGE_FAILED", _advice(e, self._shown), partial=partial) from e

    def _leave_out_pictures(self, memory: Memory) -> bool:
        """:returns: whether there were pictures, which some models refuse with the whole request."""
        past = memory.past
        if not images_of(past.messages):
            return False
        memory.shorten(Shorter(kept=len(past.exchanges), lean=0, images=0, summary=past.summary))
        self._emit(events.Notice(text="the model refused a request with pictures: they are left out from now on"))
        return True

    def _request(self, memory: Memory) -> ModelRequest:
        return ModelRequest(self._system, memory.past.messages, (self._execute_code,), self.model, self._max_tokens)

    async def _converse(self, request: ModelRequest, step: int, notify: Callable[[ModelEvent], None]) -> ModelReply:
        assert self._chosen is not None
        try:
            reply = await self._chosen.provider.converse(request, notify)
        except ModelError as e:
            if e.usage is not None:
                self._accounting.failed(e.usage)
            raise
        if reply.usage != TokenUsage():
            self._accounting.step(step, reply.usage)
        elif self._window is not None and self._memory is not None:
            self._accounting.unreported(step, self._estimated(self._window, self._memory))
        return reply

    def _estimated(self, window: Window, memory: Memory) -> int:
        # For the budget only. Without a limit nobody asks, and the tokenizer takes 50 ms to load.
        return 0 if self._accounting.left(Dimension.TOKENS) is None else window.needed(memory.past)

    async def _make_room(self, memory: Memory, window: Window, step: int) -> None:
        if window.fits(memory.past):
            return
        before, plan = window.needed(memory.past), window.plan(memory.past)
        summary = plan.past.summary
        if window.strategy is Strategy.SUMMARISE and plan.gone:
            summary = await self._summary(memory.past, plan, window.summary_tokens, step)
        kept = len(plan.past.exchanges)
        memory.shorten(Shorter(kept=kept, lean=plan.lean, images=plan.images, summary=summary))
        after, dropped = window.needed(memory.past), plan.past.dropped
        self._emit(events.MessagesCompacted(strategy=window.strategy, turns=dropped, before=before, after=after))

    async def _summary(self, past: Past, plan: Shortened, tokens: int, step: int) -> str:
        """:returns: a summary of what is left out from now on; empty if it is too long for the model, too."""
        gone = Past(plan.gone, past.dropped, past.summary).messages
        messages = joined((*gone, ChatMessage("user", (TextBlock(SUMMARISE),))))
        request = ModelRequest(SUMMARY_SYSTEM, messages, (), self.model, min(tokens, self._max_tokens))
        try:
            reply = await self._converse(request, step, self._quiet_event)
        except ModelError as e:
            if e.kind == "context-overflow":
                return ""
            raise
        return _text(reply)

    def _model_event(self, event: ModelEvent) -> None:
        self._shown.take(event)
        if isinstance(event, TextDelta):
            self._emit(events.AgentText(text=event.text))
        self._quiet_event(event)

    def _quiet_event(self, event: ModelEvent) -> None:
        if isinstance(event, Retrying):
            self._emit(events.ModelRetry(delay=event.delay_seconds, reason=event.reason))
        elif isinstance(event, FellBack):
            self._emit(events.ModelFellBack(failed=event.from_, model=event.to, reason=event.reason))

    async def _use(self, use: ToolUse) -> tuple[ToolResult, bool]:
        """:returns: the result, and whether all variables are lost."""
        code = use.input.get("code")
        if use.name != EXECUTE_CODE or not isinstance(code, str) or self._interpreter is None:
            why = f"there is only the tool {EXECUTE_CODE}, with one text argument: code"
            return ToolResult(use.id, why, True), False
        self._emit(events.CodeStarted(code=code))
        result = await self._interpreter.run(code)
        self._emit(events.CodeFinished(error=(result.error or "").strip().rpartition("\n")[2]))
        text = _shown(result)
        if result.left_out:
            size = len(text.encode())
            self._emit(events.ResultTruncated(size=size + result.left_out, kept=size))
        return ToolResult(use.id, text, result.error is not None, result.shown), result.variables_lost


def _text(reply: ModelReply) -> str:
    return "".join(block.text for block in reply.content if isinstance(block, TextBlock)).strip()


def _answer(reply: ModelReply) -> str:
    text = _text(reply)
    if reply.stop_reason == "model_context_window_exceeded":
        raise SessionError("MESSAGE_FAILED", TOO_LONG)
    if not text:
        raise SessionError("MESSAGE_FAILED", nothing_said(reply.stop_reason))
    if reply.stop_reason == "max_tokens":
        return f"{text}\n[cut at the model's limit: say 'continue', or raise model.max_tokens]"
    return text


def _shown(result: RunResult) -> str:
    parts = [result.output.rstrip("\n")]
    if result.value is not None:
        parts.append(result.value)
    if result.error is not None:
        parts.append(result.error)
    if result.shown:
        parts.append(f"(pictures shown: {len(result.shown)})")
    if result.variables_lost:
        parts.append("The interpreter was restarted: all variables are lost.")
    return "\n".join(part for part in parts if part) or "(no output)"


def _advice(error: ModelError, shown: ShownText) -> str:
    return TOO_LONG if error.kind == "context-overflow" else shown.failure(error)
