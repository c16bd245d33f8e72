"""Assemble a built-in agent for a session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from twisted.internet.defer import Deferred

from ironcurtain.audit.chain import read_record, timestamp
from ironcurtain.builtin_agent import prompt
from ironcurtain.builtin_agent.agent import BuiltinAgent
from ironcurtain.builtin_agent.memory import ConversationFile, Memory
from ironcurtain.builtin_agent.recall import Recall, of_turns, read
from ironcurtain.builtin_agent.records import Resumed
from ironcurtain.builtin_agent.replies import reply
from ironcurtain.builtin_agent.window import Window
from ironcurtain.codemode.interpreter import InterpreterFactory
from ironcurtain.codemode.model import CodeLimits, Tool, ToolReply
from ironcurtain.codemode.monty import offered
from ironcurtain.files.appending import LineFile
from ironcurtain.llm.compaction import Strategy
from ironcurtain.llm.model import TokenUsage
from ironcurtain.llm.pictures import image_tokens
from ironcurtain.llm.tokens import context_window, count_tokens
from ironcurtain.mcp_proxy.gate import Gate
from ironcurtain.mcp_proxy.proxy import McpProxy
from ironcurtain.policy.pathmap import AGENT_WORKSPACE
from ironcurtain.session.budget import Accounting, BudgetLimits, BudgetMeter, Dimension
from ironcurtain.session.history import read_turns
from ironcurtain.session.models import backends_of, choose_model, cost_of
from ironcurtain.session.parts import Core
from ironcurtain.session.tools import wait_for_servers


def make_builtin_agent(
    core: Core, proxy: McpProxy, reactor: Any, environ: Mapping[str, str], make_interpreter: InterpreterFactory
) -> BuiltinAgent:
    """:param make_interpreter: creates the interpreter for the model's code."""
    settings, options = core.services.settings, core.request.options
    backends = backends_of(options.get("backend"))
    budget = BudgetMeter(BudgetLimits(**msgspec.structs.asdict(settings.budget)))
    accounting = Accounting(
        budget,
        lambda usage: cost_of(core, agent.model, usage),
        core.emit,
        core.services.clock.seconds,
    )
    core.aside.append(accounting.failed)

    async def recall(window: Window) -> Memory:
        memory, unfinished = await _recall(core, window)
        for turn in read_turns(core.paths.history) if core.resumed else ():
            budget.used[Dimension.TOKENS] += turn.usage.input_tokens + turn.usage.output_tokens
            budget.used[Dimension.COST] += turn.usage.cost or 0.0
        budget.used[Dimension.TOKENS] += unfinished.prompt_tokens + unfinished.output_tokens
        budget.used[Dimension.COST] += cost_of(core, agent.model, unfinished) or 0.0
        return memory

    agent = BuiltinAgent(
        choose=lambda: choose_model(core, reactor, environ, backends, str(options.get("model") or "")),
        max_tokens=settings.model.max_tokens,
        max_steps=settings.agent.max_steps,
        workspace=AGENT_WORKSPACE,
        tools=lambda: _tools(proxy, core),
        call=lambda server, tool, arguments: Deferred.fromCoroutine(_call(proxy.gate, server, tool, arguments)),
        make_interpreter=make_interpreter,
        describe=lambda tools: prompt.tools(offered(tools)),
        language=prompt.language(CodeLimits()),
        make_window=lambda model: _window(core, model),
        recall=recall,
        accounting=accounting,
        emit=core.emit,
    )
    return agent


def _window(core: Core, model: str) -> Window:
    settings = core.services.settings
    size = settings.session.context_tokens or context_window(model)
    answer = min(settings.model.max_tokens, size // 2)
    strategy = Strategy(settings.session.context_strategy)
    return Window(
        strategy,
        size - answer,
        settings.session.context_turns,
        lambda text: count_tokens(text, model),
        lambda image: image_tokens(image, model),
    )


async def _recall(core: Core, window: Window) -> tuple[Memory, TokenUsage]:
    """:returns: the memory, and the tokens of turns that were cut off."""
    file, found = ConversationFile(LineFile(core.paths.conversation)), [Recall()]
    if core.resumed:
        await core.services.in_thread(lambda: found.append(_read(core, file, window)))
    recalled = found[-1]
    memory = Memory(
        recalled.conversation,
        file.write,
        core.services.redactor,
        lambda: core.audit.sequence,
        lambda: timestamp(core.services.now()),
    )
    return memory, recalled.cut_off


def _read(core: Core, file: ConversationFile, window: Window) -> Recall:
    if not core.paths.conversation.exists():  # of a session of an earlier version
        for known in of_turns(read_turns(core.paths.history)):
            file.write(known)
    recalled = read(file.read(), window.squeeze)
    with core.paths.audit.open("rb") as lines:
        audit = (record for line in lines if (record := read_record(line.removesuffix(b"\n"))) is not None)
        note = recalled.note(audit if recalled.open_calls() else ())
    if note:
        resumed = Resumed(note=note)
        file.write(resumed)
        recalled.feed(resumed)
    return recalled


async def _tools(proxy: McpProxy, core: Core) -> Sequence[Tool]:
    proxy.without_agents()
    await wait_for_servers(proxy, core.request, core.emit)
    return [
        Tool(tool.server, tool.name, str(tool.definition.get("description") or ""), tool.schema)
        for tool in proxy.gate.tools()
    ]


async def _call(gate: Gate, server: str, tool: str, arguments: dict[str, Any]) -> ToolReply:
    return reply((await gate.call(server, tool, arguments)).raw)
