"""Put a built-in agent together for a session."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from twisted.internet.defer import Deferred

from ironcurtain.budget import Budget, Limits
from ironcurtain.builtin_agent.accounting import Accounting
from ironcurtain.builtin_agent.agent import BuiltinAgent
from ironcurtain.codemode import prompt
from ironcurtain.codemode.interpreter import InterpreterFactory
from ironcurtain.codemode.limits import Limits as CodeLimits
from ironcurtain.codemode.model import Tool, ToolReply
from ironcurtain.codemode.monty import offered
from ironcurtain.codemode.replies import reply
from ironcurtain.credentials import real_key
from ironcurtain.llm import prices
from ironcurtain.llm.registry import Chosen, Surroundings, provider_for
from ironcurtain.mcp_proxy.gate import Gate
from ironcurtain.mcp_proxy.proxy import McpProxy
from ironcurtain.pathmap import AGENT_WORKSPACE
from ironcurtain.secrets import Secret
from ironcurtain.session import events
from ironcurtain.session.parts import Core
from ironcurtain.settings import Provider

SERVERS_SECONDS = 10.0
"""How long the agent waits for MCP servers that start slowly; it goes without those that take longer (our choice)."""


def make_builtin_agent(
    core: Core, proxy: McpProxy, reactor: Any, environ: Mapping[str, str], make_interpreter: InterpreterFactory
) -> BuiltinAgent:
    """
    :param make_interpreter: makes what runs the model's code.
    :raises ConfigurationError: there is no key for the model, or its settings are wrong.
    """
    settings = core.services.settings
    chosen = _provider(core, reactor, environ)
    known = {model: prices.Price(**msgspec.structs.asdict(price)) for model, price in settings.prices.items()}
    accounting = Accounting(
        Budget(Limits(**msgspec.structs.asdict(settings.budget))),
        lambda usage: prices.cost(chosen.model, usage, known),
        core.emit,
        core.services.clock.seconds,
    )
    return BuiltinAgent(
        provider=chosen.provider,
        model=chosen.model,
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


def _provider(core: Core, reactor: Any, environ: Mapping[str, str]) -> Chosen:
    settings, options = core.services.settings, core.request.options

    def key_for(name: str) -> Secret:
        key = real_key(name, settings.providers.get(name, Provider()).key, environ)
        core.services.redactor.add(key)
        return key

    backend, model = options.get("backend"), options.get("model")
    if backend is None and model is None:
        scripted = settings.model.backend == "scripted"
        backend = f"scripted:{settings.model.script}" if scripted else settings.model.backend
    tables = {name: msgspec.to_builtins(table) for name, table in settings.providers.items()}
    surroundings = Surroundings(reactor, core.services.clock, random.random, key_for, settings.model.stall_seconds)
    return provider_for(backend, model or settings.model.name or None, tables, surroundings)


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
