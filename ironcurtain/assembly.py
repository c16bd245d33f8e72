"""The one place where everything is put together, for the daemon and for a command that works alone."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twisted.internet.threads import deferToThreadPool

from ironcurtain.accounts import session_account
from ironcurtain.builtin_agent.kind import make_builtin_agent
from ironcurtain.codemode import pool
from ironcurtain.codemode.monty import MontyInterpreters
from ironcurtain.control import server as control
from ironcurtain.control.client import ControlClient
from ironcurtain.errors import SessionError, UsageError
from ironcurtain.escalation.watcher import DirectoryWatcher
from ironcurtain.home import Home, person_home, read_configuration
from ironcurtain.identity import hide_memory, identify
from ironcurtain.lifecycle import Lifecycle
from ironcurtain.locks import FileLock
from ironcurtain.mcp_proxy.proxy import McpProxy
from ironcurtain.operations import Principal
from ironcurtain.operations.api import LocalApi
from ironcurtain.operations.operations import Operations
from ironcurtain.registry import Registry as SessionRegistry
from ironcurtain.secrets import Redactor
from ironcurtain.session.elsewhere import session_directory
from ironcurtain.session.manager import SessionManager
from ironcurtain.session.model import Agent, Reply, Usage
from ironcurtain.session.parts import Core, Kind, Services
from ironcurtain.session.project import ProjectPart
from ironcurtain.session.tools import ToolFiles, make_proxy, protected_paths
from ironcurtain.session.workspace import usable_workspace
from ironcurtain.settings import load

if TYPE_CHECKING:
    from ironcurtain.agents.registry import Registry
    from ironcurtain.console.console import Console
    from ironcurtain.container.engine import Engine
    from ironcurtain.container.images import AgentImages
    from ironcurtain.ssh.channel import Program, SessionChannel
    from ironcurtain.ssh.programs import OwnPrograms
    from ironcurtain.ssh.service import SshService
    from ironcurtain.terminal.model import Mode


class Application:
    """
    All services of one process.

    :param socket: where the control API is served.
    :param lock: held for as long as this runs, if any.
    :raises ConfigurationError: the settings are wrong.
    """

    def __init__(
        self, reactor: Any, home: Home, environ: Mapping[str, str], socket: Path, lock: Path | None = None
    ) -> None:
        hide_memory()
        home.prepare()
        settings = load(str(home.config), read_configuration(home.config), environ).settings
        self._settings, self._ssh_port = settings, 0
        self._reactor, self._home, self._socket, self._life = reactor, home, socket, Lifecycle(reactor)
        self._lock = FileLock(lock) if lock is not None else None
        if self._lock is not None:
            self._lock.acquire()
        self._watcher = DirectoryWatcher(reactor)
        services = Services(
            home=home,
            settings=settings,
            clock=reactor,
            now=time.time,
            in_thread=lambda work: deferToThreadPool(reactor, reactor.getThreadPool(), work),
            watcher=self._watcher,
            redactor=Redactor(),
            control_socket=str(socket),
            choose_account=lambda workspace: session_account(settings.run_as, environ, workspace, os.geteuid()),
        )
        user_home = person_home(environ, os.geteuid())
        protected = protected_paths(home, user_home, ToolFiles.chosen(home, {}), settings)
        self.manager = SessionManager(
            Kinds(services, reactor, environ),
            services,
            lambda path: usable_workspace(path, Path(user_home), home.path, protected),
        )
        self.operations = Operations(self.manager)
        self.api = LocalApi(self.operations, control.owner())

    @classmethod
    def for_daemon(
        cls, reactor: Any, home: Home, environ: Mapping[str, str], ssh_port: int | None = None
    ) -> Application:
        """
        :param ssh_port: in place of the one in the settings.
        :raises Held: another daemon runs in this home.
        """
        made = cls(reactor, home, environ, home.daemon_socket, home.daemon_lock)
        made._ssh_port = made._settings.ssh.port if ssh_port is None else ssh_port
        return made

    @classmethod
    def alone(cls, reactor: Any, home: Home, environ: Mapping[str, str]) -> Application:
        """:returns: the application of a command that runs its sessions itself."""
        return cls(reactor, home, environ, home.owner_socket(os.getpid()))

    async def start(self) -> None:
        """Serve the control API."""
        await self._life.start("the directory watcher", _nothing, self._stop_watcher)
        await self._life.start("the interpreters", _nothing, _close_pool)
        await self._life.start("the control API", self._listen, self._stop_listening)
        if self._ssh_port:
            await self._life.start("the SSH service", self._listen_for_ssh, lambda service: service.stop())

    async def stop(self, reason: str) -> None:
        """End all sessions, then everything else."""
        await self.manager.stop(reason)
        await self._life.stop()
        if self._lock is not None:
            self._lock.release()

    async def _listen(self) -> Any:
        for path, pid in self._home.owner_sockets():
            if not identify(pid).alive:
                path.unlink(missing_ok=True)
        return await control.listen(self._reactor, self._socket, self.operations)

    async def _stop_listening(self, port: Any) -> None:
        await port.stopListening()
        self._socket.unlink(missing_ok=True)

    async def _listen_for_ssh(self) -> SshService:
        from ironcurtain.ssh.service import SshService

        programs = make_programs(self._reactor, self._home, self.operations, str(self._socket))
        service = SshService(self._reactor, self._home, self._settings.ssh.listen, self._ssh_port, programs)
        await service.start()
        return service

    async def _stop_watcher(self, _: None) -> None:
        self._watcher.stop()


def make_programs(reactor: Any, home: Home, operations: Operations, socket: str) -> OwnPrograms:
    """
    :param operations: of this process.
    :param socket: its own control socket; other processes are reached by theirs.
    :returns: what runs over SSH, each for the key that somebody came with.
    """
    from ironcurtain.console.console import Console
    from ironcurtain.console.source import HomeSource
    from ironcurtain.ssh.programs import OwnPrograms

    def source(who: Principal) -> HomeSource:
        own = LocalApi(operations, who)
        return HomeSource(
            reactor,
            SessionRegistry(home.registry),
            lambda path: own if path == socket else ControlClient(reactor, path, who),
        )

    def console(who: Principal, channel: SessionChannel) -> Console:
        shown = Console(source(who), channel, reactor, who.name, environ=channel.environ)
        shown.start()
        return shown

    async def attach(who: Principal, session: str, mode: Mode, channel: SessionChannel) -> Program:
        raise UsageError(f"session {session} has no terminal of its own to {mode}")

    return OwnPrograms(console, attach, source, lambda name: session_directory(home, name), time.time)


class Kinds(Mapping[str, Kind[Any]]):
    """
    The table of kinds: our own two, and one for each agent that runs in a container.

    What the latter need is imported only when one of them is started: it takes longer than all the rest.
    """

    def __init__(self, services: Services, reactor: Any, environ: Mapping[str, str]) -> None:
        self._services, self._reactor, self._environ = services, reactor, environ
        self._own = {
            "builtin": Kind("builtin", self._tools, self._builtin, self._project),
            "mcp-proxy": Kind("mcp-proxy", self._tools, lambda core, proxy: Outsiders(core, proxy)),
        }

    def __getitem__(self, name: str) -> Kind[Any]:
        if name in self._own:
            return self._own[name]
        if name not in self._agents.names:
            raise KeyError(name)
        from ironcurtain.container_agent.kind import ContainerKind

        made = ContainerKind(
            self._agents.find(name),
            lambda: self._engine,
            lambda image, progress: self._images.ensure(image, progress),
            self._services,
            self._reactor,
            self._environ,
        )
        return Kind(name, made.make_tools, made.make_agent, self._project, made.check, in_container=True)

    def __iter__(self) -> Iterator[str]:
        return iter([*self._own, *self._agents.names])

    def __len__(self) -> int:
        return len(self._own) + len(self._agents.names)

    @cached_property
    def _agents(self) -> Registry:
        from ironcurtain.agents.registry import installed

        return installed()

    @cached_property
    def _engine(self) -> Engine:
        from ironcurtain.container.engine import Engine

        return Engine.find(self._reactor, self._environ)

    @cached_property
    def _images(self) -> AgentImages:
        from ironcurtain.container.image_choices import find_choices, load_recipes
        from ironcurtain.container.images import AgentImages

        return AgentImages(self._engine, load_recipes(self._services.home), find_choices(self._environ))

    def _tools(self, core: Core) -> McpProxy:
        return make_proxy(core, self._reactor, self._environ)

    def _builtin(self, core: Core, proxy: McpProxy) -> Agent:
        interpreters = MontyInterpreters(self._reactor, account=core.switched)
        return make_builtin_agent(core, proxy, self._reactor, self._environ, interpreters)

    def _project(self, core: Core) -> ProjectPart:
        return ProjectPart(core, self._reactor, self._environ)


class Outsiders:
    """
    In place of an agent: MCP clients that come to a socket, or to standard input and output.

    The option ``socket`` names the socket; without it one client is served on standard input and output, and the
    session ends with it.
    """

    def __init__(self, core: Core, proxy: McpProxy) -> None:
        self._proxy, self._socket, self._end = proxy, core.request.options.get("socket"), core.end

    async def start(self) -> None:
        """Let clients in."""
        if self._socket:
            await self._proxy.listen(Path(self._socket))
        else:
            self._proxy.serve_stdio().addCallback(lambda _: self._end("the client has gone"))

    async def respond(self, message: str) -> Reply:
        """:raises SessionError: always; there is nobody who could answer."""
        raise SessionError("MESSAGE_FAILED", "this session only serves tools: it takes no messages")

    async def stop(self) -> None:
        """The proxy itself sends them away when it stops."""

    def usage(self) -> Usage:
        """:returns: nothing is used here."""
        return Usage()


async def _nothing() -> None:
    pass


async def _close_pool(_: None) -> None:
    await pool.close_pool()
