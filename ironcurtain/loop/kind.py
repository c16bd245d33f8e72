"""Assemble loops for the session manager."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from twisted.internet.defer import Deferred

from ironcurtain.errors import UsageError
from ironcurtain.home.agent_names import listed
from ironcurtain.home.user_paths import person_home
from ironcurtain.loop.agent import LoopAgent
from ironcurtain.loop.backend import LoopBackend
from ironcurtain.loop.checkpoint import Checkpoints
from ironcurtain.loop.config import LoopSettings, SettingsLayer, configured
from ironcurtain.loop.container import ContainerBackend
from ironcurtain.loop.host import HostBackend
from ironcurtain.loop.model import IterationMode
from ironcurtain.loop.program_runs import LoopWork
from ironcurtain.loop.state import prompt_of
from ironcurtain.sandbox.spec import Kind
from ironcurtain.session.git_identity import user_identity
from ironcurtain.session.model import SessionRequest
from ironcurtain.session.parts import Core, NoTools, Project, Services, SessionKind, Tools
from ironcurtain.session.tool_files import ToolFiles
from ironcurtain.session.tools import protected_paths, session_protected

NAME = "loop"

_SIZE = ("COLUMNS", "LINES")
"""Variables that a shell may have exported; programs would use them instead of their terminal's size."""


class LoopOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    The options of a request for a loop.

    :param settings: by dotted name, see :class:`~ironcurtain.loop.config.LoopSettings`.
    :param idle_seconds: seconds without activity after which an iteration is ended; 0: never.
    :param idle_always: also without a terminal.
    :param alone: begins by itself, in a daemon, and ends its session.
    """

    settings: dict[str, Any]
    mode: IterationMode
    idle_seconds: float
    idle_always: bool = False
    alone: bool = False


class LoopKind:
    """
    :param environ: environment of this process, for commands of this machine.
    :param kinds: all kinds of sessions, of which those with containers can run in loops.
    """

    def __init__(
        self, reactor: Any, environ: Mapping[str, str], kinds: Mapping[str, SessionKind[Any]], services: Services
    ) -> None:
        self._reactor, self._kinds, self._services = reactor, kinds, services
        self._environ = environ

    def kind(self, make_project: Callable[[Core], Project]) -> SessionKind[Tools]:
        """:returns: the entry for the table of kinds."""
        return SessionKind(
            NAME,
            self._make_tools,
            self._make_agent,
            make_project,
            self._check,
            _check_remote,
            limited=self._limited,
            begin=LoopAgent.begin,
            in_turns=False,
            no_terminal="",
        )

    async def _check(self, request: SessionRequest) -> SessionRequest:
        if "loop" not in request.options:
            raise UsageError("loops are started with 'ironcurtain loop'")
        settings = _settings(request)
        if request.workspace is not None:
            prompt_of(settings.event_loop, request.workspace)
        if (agent := settings.loop.agent) == "":
            await self._check_command(request, settings)
            return request
        kind = self._contained(agent)
        if settings.loop.git_checkpoint:
            raise UsageError(
                "--git-checkpoint is for commands of this machine: what an agent in a container leaves in "
                "a repository is not trusted; review it with 'ironcurtain diff'"
            )
        if request.terminal is not None and kind.no_terminal:
            raise UsageError(f"{agent} cannot run in a terminal: {kind.no_terminal}")
        return await kind.check(request)

    async def _check_command(self, request: SessionRequest, settings: LoopSettings) -> None:
        """:raises IronCurtainError: the command cannot be run here, or its changes cannot be committed."""
        if (workspace := request.workspace) is None:
            raise UsageError("a loop of a command of this machine needs a workspace")
        self._on_host(settings, str(workspace)).check(options_of(request).mode)
        if settings.loop.git_checkpoint:
            home, effective = self._services.home, self._services.settings
            files, user_home = ToolFiles.chosen(home, request.options), person_home(self._environ, os.geteuid())
            protected = protected_paths(home, user_home, files, effective, workspace)
            await self._checkpoints(workspace, protected, effective.sandbox.chosen).check(is_new=not request.resume)

    def _on_host(self, settings: LoopSettings, directory: str) -> HostBackend:
        command = settings.loop.command
        return HostBackend(self._reactor, settings.cli.backend, command, self._of_commands, directory)

    def _checkpoints(self, workspace: Path, protected: tuple[str, ...], kind: Kind | None) -> Checkpoints:
        environ = self._of_commands
        home = person_home(environ, os.geteuid())
        identity = user_identity(environ, None, str(workspace.resolve())).settings()
        return Checkpoints(self._reactor, str(workspace), environ, home, identity, protected, kind)

    @property
    def _of_commands(self) -> dict[str, str]:
        """The environment of commands."""
        return {name: value for name, value in self._environ.items() if name not in _SIZE}

    def _limited(self, request: SessionRequest) -> float:
        agent = _settings(request).loop.agent
        return self._contained(agent).limited(request) if agent else 0.0

    def _contained(self, agent: str) -> SessionKind[Any]:
        kind = self._kinds.get(agent)
        if kind is None or not kind.in_container:
            names = [name for name in self._kinds if self._kinds[name].in_container]
            raise UsageError(f"there is no agent {agent!r} for containers: choose one of {listed(names)}")
        return kind

    def _make_tools(self, core: Core) -> Tools:
        agent = _settings(core.request).loop.agent
        tools: Tools = self._contained(agent).make_tools(core) if agent else NoTools()
        return tools

    def _make_agent(self, core: Core, tools: Tools) -> LoopAgent:
        options, settings = options_of(core.request), _settings(core.request)
        own = settings.loop
        backend: LoopBackend
        if own.agent:
            backend = ContainerBackend(core, own.agent, self._contained(own.agent), tools, own.wait_for_limits)
        else:
            backend = self._on_host(settings, str(core.workspace))
        # Without a terminal, programs often print nothing until they have their answer.
        idle = options.idle_seconds if options.idle_always or options.mode is not IterationMode.HEADLESS else 0
        protected = session_protected(core, self._environ)
        checkpoints = None
        if own.git_checkpoint:
            checkpoints = self._checkpoints(core.workspace, protected, core.sandbox_kind)

        def take_snapshot(number: int) -> Deferred[None]:
            return Deferred.fromCoroutine(core.snapshots.take(core.workspace, protected, number))

        work = LoopWork(settings, backend, options.mode, idle, checkpoints, take_snapshot, options.alone)
        return LoopAgent(core, self._reactor, work)


def _check_remote(request: SessionRequest) -> None:
    options = options_of(request) if "loop" in request.options else None
    if options is None or not options.alone:  # a session without the command that runs it would do nothing
        raise UsageError(
            "loops run in a command: start one with 'ironcurtain loop', resume it with 'ironcurtain loop --resume'"
        )
    if not _settings(request).loop.agent or options.mode is not IterationMode.HEADLESS:
        raise UsageError("a loop in a daemon needs an agent in a container, without a terminal")


def _settings(request: SessionRequest) -> LoopSettings:
    return configured(SettingsLayer("the session", options_of(request).settings)).settings


def options_of(request: SessionRequest) -> LoopOptions:
    """:raises UsageError: the options are not those of a loop."""
    try:
        return msgspec.convert(request.options["loop"], LoopOptions)
    except (KeyError, msgspec.ValidationError) as e:
        raise UsageError(f"these are not options of a loop: {e}") from None
