"""The kinds of sessions: the built-in agent, MCP clients, loops, the shell, and an agent program of each adapter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ironcurtain.session.mcp_clients import McpClients
from ironcurtain.session.parts import Core, Services, SessionAgent, SessionKind
from ironcurtain.session.tools import make_proxy

if TYPE_CHECKING:
    from ironcurtain.agents.registry import AgentRegistry
    from ironcurtain.container.engine import Engine
    from ironcurtain.container.project_images import ProjectImages
    from ironcurtain.mcp_proxy.proxy import McpProxy
    from ironcurtain.session.project import ProjectPart
    from ironcurtain.shell.starting import ShellStart
    from ironcurtain.terminal.screen import Screens


class Kinds(Mapping[str, SessionKind[Any]]):
    """
    The table of kinds: IronCurtain's own, and one for each agent in a container.

    Modules of a kind are imported only when one of its sessions is started, since their import is slow.

    :ivar shell: the shell that runs in this process's terminal already, if any.
    """

    def __init__(self, services: Services, reactor: Any, environ: Mapping[str, str]) -> None:
        self.services, self._reactor, self._environ = services, reactor, environ
        self.shell: ShellStart | None = None
        self._own = {
            "builtin": SessionKind("builtin", self._tools, self._builtin, self._project),
            "mcp-proxy": SessionKind("mcp-proxy", self._tools, McpClients, check_remote=McpClients.check_remote),
        }

    def __getitem__(self, name: str) -> SessionKind[Any]:
        if name in self._own:
            return self._own[name]
        if name == "loop":
            from ironcurtain.loop.kind import LoopKind

            return LoopKind(self._reactor, self._environ, self, self.services).kind(self._project)
        if name == "shell":
            from ironcurtain.shell.kind import ShellKind
            from ironcurtain.shell_screen.agent_mode import InlineAgentMode

            return ShellKind(self._reactor, self._environ, self._screens.open, InlineAgentMode, self.shell).kind()
        if name not in self._agents.names:
            raise KeyError(name)
        from ironcurtain.container_agent.kind import ContainerKind

        made = ContainerKind(
            self._agents.find(name),
            lambda: self._engine,
            lambda: self._images,
            self.services,
            self._reactor,
            self._environ,
            self._screens,
        )
        return SessionKind(
            name,
            made.make_tools,
            made.make_agent,
            self._project,
            made.check,
            limited=made.paying.limited,
            in_container=True,
            no_terminal=made.no_terminal,
            directory=made.directory,
        )

    def __iter__(self) -> Iterator[str]:
        return iter([*self._own, *self._agents.names])

    def __len__(self) -> int:
        return len(self._own) + len(self._agents.names)

    @cached_property
    def _screens(self) -> Screens:
        from ironcurtain.terminal.screen import Screens

        return Screens(self._reactor)

    @cached_property
    def _agents(self) -> AgentRegistry:
        from ironcurtain.agents.registry import installed

        return installed()

    @cached_property
    def _engine(self) -> Engine:
        from ironcurtain.container.engine import Engine

        return Engine.find(self._reactor, self._environ)

    @cached_property
    def _images(self) -> ProjectImages:
        from ironcurtain.container.project_images import ProjectImages

        return ProjectImages(self._engine, self.services.home, self.services.settings.container, self._environ)

    def _tools(self, core: Core) -> McpProxy:
        return make_proxy(core, self._reactor, self._environ)

    def _builtin(self, core: Core, proxy: McpProxy) -> SessionAgent:
        from ironcurtain.builtin_agent.kind import make_builtin_agent
        from ironcurtain.codemode import pool
        from ironcurtain.codemode.monty import MontyInterpreters

        around = pool.sandbox(core.switched, core.sandbox_kind)
        interpreters = MontyInterpreters(self._reactor, around=around)
        interpreters.prepare()  # while the MCP servers start
        return make_builtin_agent(core, proxy, self._reactor, self._environ, interpreters)

    def _project(self, core: Core) -> ProjectPart:
        from ironcurtain.session.project import ProjectPart

        return ProjectPart(core, self._reactor, self._environ)
