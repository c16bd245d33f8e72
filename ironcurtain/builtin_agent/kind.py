"""Assemble a built-in agent for a session."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from twisted.internet.defer import Deferred

from ironcurtain.builtin_agent import prompt
from ironcurtain.builtin_agent.agent import BuiltinAgent, reply
from ironcurtain.codemode.interpreter import InterpreterFactory
from ironcurtain.codemode.model import CodeLimits, Tool, ToolReply
from ironcurtain.codemode.monty import offered
from ironcurtain.home.settings import Provider
from ironcurtain.llm import prices
from ironcurtain.llm.registry import Chosen, ModelSurroundings, configured_backend, needs_key, provider_for
from ironcurtain.mcp_proxy.gate import Gate
from ironcurtain.mcp_proxy.proxy import McpProxy
from ironcurtain.policy.pathmap import AGENT_WORKSPACE
from ironcurtain.providers.keys import real_key
from ironcurtain.secrets.redaction import Secret
from ironcurtain.session import events
from ironcurtain.session.budget import Accounting, BudgetLimits, BudgetMeter, Dimension
from ironcurtain.session.history import read_turns
from ironcurtain.session.parts import Core

SERVERS_SECONDS = 10.0
"""Seconds that the agent waits for slow MCP servers; it starts without those that take longer."""


def make_builtin_agent(
    core: Core, proxy: McpProxy, reactor: Any, environ: Mapping[str, str], make_interpreter: InterpreterFactory
) -> BuiltinAgent:
    """:param make_interpreter: creates the interpreter for the model's code."""
    settings = core.services.settings
    known = {model: prices.TokenPrice(**msgspec.structs.asdict(price)) for model, price in settings.prices.items()}
    budget = BudgetMeter(BudgetLimits(**msgspec.structs.asdict(settings.budget)))
    earlier = read_turns(core.paths.history) if core.resumed else []
    for turn in earlier:
        budget.used[Dimension.TOKENS] += turn.usage.input_tokens + turn.usage.output_tokens
        budget.used[Dimension.COST] += turn.usage.cost or 0.0
    accounting = Accounting(
        budget,
        lambda usage: prices.cost(agent.model, usage, known),
        core.emit,
        core.services.clock.seconds,
    )
    agent = BuiltinAgent(
        choose=lambda: _provider(core, reactor, environ),
        max_tokens=settings.model.max_tokens,
        max_steps=settings.agent.max_steps,
        workspace=AGENT_WORKSPACE,
        tools=lambda: _tools(proxy.gate, core),
        call=lambda server, tool, arguments: Deferred.fromCoroutine(_call(proxy.gate, server, tool, arguments)),
        make_interpreter=make_interpreter,
        describe=lambda tools: prompt.tools(offered(tools)),
        language=prompt.language(CodeLimits()),
        accounting=accounting,
        emit=core.emit,
    )
    for turn in earlier:
        agent.remember(turn)
    return agent


async def _provider(core: Core, reactor: Any, environ: Mapping[str, str]) -> Chosen:
    settings, options = core.services.settings, core.request.options
    backend, model = options.get("backend"), options.get("model")
    if backend is None and model is None:
        backend = configured_backend(settings.model)
    model = model or settings.model.name or None
    keys: dict[str, Secret] = {}
    if (name := needs_key(backend, model)) is not None:
        keys[name] = await real_key(name, settings.providers.get(name, Provider()).key, environ, reactor)
        core.services.redactor.add(keys[name])
    tables = {name: msgspec.to_builtins(table) for name, table in settings.providers.items()}
    around = ModelSurroundings(
        reactor, core.services.clock, random.random, keys.__getitem__, settings.model.stall_seconds, environ
    )
    return provider_for(backend, model, tables, around)


async def _tools(gate: Gate, core: Core) -> Sequence[Tool]:
    await gate.settled(SERVERS_SECONDS)
    for server in gate.down():
        core.emit(events.ServerDown(server=server))
    return [
        Tool(tool.server, tool.name, str(tool.definition.get("description") or ""), tool.schema)
        for tool in gate.tools()
    ]


async def _call(gate: Gate, server: str, tool: str, arguments: dict[str, Any]) -> ToolReply:
    return reply((await gate.call(server, tool, arguments)).raw)
