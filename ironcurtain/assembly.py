"""The composition root: assembles everything for the daemon, and for commands that work without it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace
from twisted.internet.defer import CancelledError, Deferred, maybeDeferred
from twisted.internet.task import LoopingCall, deferLater
from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger

from ironcurtain.configuration import check_policy, read_settings, require_files
from ironcurtain.control.listening import listen
from ironcurtain.errors import ConfigurationError
from ironcurtain.escalation.queue import closing_numbers
from ironcurtain.escalation.watcher import DirectoryWatcher
from ironcurtain.files.locks import FileLock
from ironcurtain.fleet.trust_file import TrustFile
from ironcurtain.home.layout import Home
from ironcurtain.home.sections import Ssh
from ironcurtain.home.settings import Settings
from ironcurtain.home.user_paths import person_home
from ironcurtain.http.upstream_proxies import UpstreamProxies
from ironcurtain.kinds import Kinds
from ironcurtain.operations.api import LocalApi
from ironcurtain.operations.model import Reloaded, reloaded
from ironcurtain.operations.operations import Operations
from ironcurtain.operations.principal import owner
from ironcurtain.process.accounts import Account, session_account
from ironcurtain.process.identity import hide_memory, identify
from ironcurtain.secrets.redaction import Redactor
from ironcurtain.services import unix_socket
from ironcurtain.services.lifecycle import Lifecycle
from ironcurtain.services.systemd import Systemd
from ironcurtain.session.manager import SessionManager
from ironcurtain.session.model import SessionRequest
from ironcurtain.session.parts import Services
from ironcurtain.session.tool_files import ToolFiles
from ironcurtain.session.tools import protected_paths
from ironcurtain.session.workspace import keep_out_workspaces, usable_workspace
from ironcurtain.traces.exports import Exports
from ironcurtain.view.events import describe
from ironcurtain.view.speech import LoggedSpeech

if TYPE_CHECKING:
    from ironcurtain.fleet.service import FleetService
    from ironcurtain.operations.watchers import Watchers
    from ironcurtain.shell.starting import ShellStart
    from ironcurtain.ssh.service import SshService


SshChoice = Callable[[Ssh], Ssh]
"""Returns where to listen for SSH, from the settings."""


class Application:
    """
    All services of one process.

    :param socket: where to serve the control API.
    :param lock: held while this runs, if any.
    :param config: the settings; ``None``: those of the home.
    :raises ConfigurationError: the settings are wrong.
    """

    log = Logger()

    def __init__(
        self,
        reactor: Any,
        home: Home,
        environ: Mapping[str, str],
        socket: Path,
        lock: Path | None = None,
        config: Path | None = None,
    ) -> None:
        hide_memory()
        home.prepare()
        keep_out_workspaces(home)
        self._config, self._environ, self._systemd, self._ssh = config or home.config, environ, Systemd(), Ssh(port=0)
        self._reactor, self._home, self._socket, self._life = reactor, home, socket, Lifecycle(reactor)
        self._lock = FileLock(lock) if lock is not None else None
        if self._lock is not None:
            self._lock.acquire()
        self._watcher, self._exports = DirectoryWatcher(reactor), Exports(reactor, environ)
        settings = self._read_settings()
        services = Services(
            home=home,
            settings=settings,
            clock=reactor,
            now=time.time,
            next_closing=closing_numbers(time.time()),
            in_thread=lambda work: deferToThreadPool(reactor, reactor.getThreadPool(), work),
            listen=unix_socket.listen,
            watcher=self._watcher,
            redactor=Redactor(),
            proxies=self._proxies(settings),
            describe=describe,
            spoken=LoggedSpeech,
            control_socket=str(socket),
            choose_account=self._choose_account,
            export=self._exports.find,
        )
        self._kinds = Kinds(services, reactor, environ)
        self.manager = SessionManager(self._kinds, services, self._check_request)
        self.operations = Operations(self.manager, self.reload, TrustFile(home).once)
        self.api = LocalApi(self.operations, owner())
        self._watchers: Watchers | None = None

    @classmethod
    def for_daemon(
        cls, reactor: Any, home: Home, environ: Mapping[str, str], ssh: SshChoice, systemd: Systemd
    ) -> Application:
        """
        :param ssh: overrides the settings.
        :param systemd: notified of the service's state.
        :raises Held: another daemon is running in this home.
        """
        # Slow to import, and commands that run their own session have no watchers.
        from ironcurtain.fleet.watcher_tasks import WatcherTasks
        from ironcurtain.operations.watcher_runs import WatcherRuns
        from ironcurtain.operations.watchers import Watchers

        made = cls(reactor, home, environ, home.daemon_socket, home.daemon_lock)
        made._systemd, made._ssh = systemd, ssh(made.manager.services.settings.ssh)
        here = WatcherRuns(made.operations, reactor)
        made._watchers = Watchers(reactor, home, environ, WatcherTasks(home, here, reactor, time.time))
        return made

    @classmethod
    def alone(
        cls,
        reactor: Any,
        home: Home,
        environ: Mapping[str, str],
        config: Path | None = None,
        shell: ShellStart | None = None,
    ) -> Application:
        """
        :param shell: runs in this process's terminal already, for a session to take over.
        :returns: the application of a command that runs its own sessions.
        """
        made = cls(reactor, home, environ, home.owner_socket(os.getpid()), config=config)
        made._kinds.shell = shell
        return made

    async def start(self) -> None:
        """Serve the control API."""
        await self._life.start("the directory watcher", _nothing, lambda _: maybeDeferred(self._watcher.stop))
        await self._life.start("the interpreters", _nothing, _close_pool)
        await self._life.start("the control API", self._listen, self._stop_listening)
        if self._ssh.port:
            await self._life.start("the SSH service", self._listen_for_ssh, lambda service: service.stop())
        if self._lock is not None and self.manager.services.settings.fleet.credentials:
            await self._life.start("the fleet", self._join_fleet, lambda member: member.stop())
        await self._life.start("the watchdog", self._feed_watchdog, _stop_loop)
        if self.manager.services.settings.session.prune_on_start:
            from ironcurtain.session.cleanup import prune_on_start

            prune_on_start(self.manager.services)
        if self._lock is not None:
            await self._life.start("the removal of what dead processes left", self._begin_removal, _cancel)
        if self._watchers is not None:
            await self._life.start("the watchers", self._watchers.start, lambda _: _nothing())  # before the sessions
        await deferLater(self._reactor, 0)  # after the start, when signals are handled
        self._systemd.ready(self._serving)

    def reload(self) -> Reloaded:
        """
        Read the configuration files again, for new sessions. Running sessions keep their settings.

        :raises ConfigurationError: one of the files is wrong; then nothing changes.
        """
        self._systemd.reloading()
        try:
            settings = self._read_settings()
            require_files(self._home, self._environ)
        except ConfigurationError as e:
            self.log.error("nothing was reloaded: {error}", error=e)
            self._systemd.ready(f"{self._serving}; nothing was reloaded: {e}")
            raise
        before, proxies = self.manager.services.settings, self._proxies(settings)
        services = replace(self.manager.services, settings=settings, proxies=proxies)
        self.manager.services = self._kinds.services = services
        if self._watchers is not None:
            Deferred.fromCoroutine(self._watchers.start()).addErrback(
                lambda failure: self.log.failure("the watchers were not reloaded", failure)
            )
        found = reloaded(before, settings)
        self.log.info("reloaded; new: {changed}", changed=", ".join(found.changed) or "nothing")
        self._systemd.ready(self._serving)
        return found

    async def stop(self, reason: str) -> None:
        """End all sessions, then everything else."""
        self._systemd.stopping("ending sessions")
        if self._watchers is not None:
            await self._watchers.stop()
        await self.manager.stop(reason)
        await self._exports.stop()
        await self._life.stop()
        if self._lock is not None:
            self._lock.release()

    async def _begin_removal(self) -> Callable[[], None]:
        return Deferred.fromCoroutine(self._remove_leftovers()).cancel

    async def _remove_leftovers(self) -> None:
        with suppress(CancelledError):  # the daemon stops
            await deferLater(self._reactor, 0)  # after the start, without delaying it
            from ironcurtain.container_agent.leftovers import clear_at_start

            await clear_at_start(self._reactor, self._home, self._environ)

    async def _listen(self) -> Any:
        for path in [path for path, pid in self._home.owner_sockets() if not identify(pid).alive]:
            path.unlink(missing_ok=True)
        return listen(self._reactor, self._socket, self.operations)

    async def _stop_listening(self, port: Any) -> None:
        await port.stopListening()
        self._socket.unlink(missing_ok=True)

    @property
    def _serving(self) -> str:
        return "serves sessions, " + (f"and SSH on port {self._ssh.port}" if self._ssh.port else "without SSH")

    def _read_settings(self) -> Settings:
        return read_settings(self._config, self._environ).settings

    def _proxies(self, settings: Settings) -> UpstreamProxies:
        return UpstreamProxies(self._reactor, settings.network, self._environ)

    def _choose_account(self, workspace: Path | None) -> Account:
        return session_account(self.manager.services.settings.run_as, self._environ, workspace, os.geteuid())

    def _check_request(self, request: SessionRequest) -> Path | None:
        user_home, settings = person_home(self._environ, os.geteuid()), self.manager.services.settings
        files = ToolFiles.chosen(self._home, request.options)
        check_policy(files, user_home)
        if (workspace := request.workspace) is not None:
            protected = protected_paths(self._home, user_home, files, settings, workspace)
            workspace = usable_workspace(workspace, Path(user_home), self._home.path, protected)
        return workspace

    async def _feed_watchdog(self) -> LoopingCall:
        loop = LoopingCall(self._systemd.alive)
        loop.clock = self._reactor
        if seconds := self._systemd.watchdog_seconds:
            loop.start(seconds)
        return loop

    async def _listen_for_ssh(self) -> SshService:
        from ironcurtain.ssh.service import SshService
        from ironcurtain.ssh_programs import make_programs

        manager = self.manager
        programs = make_programs(
            *(self._reactor, self._home, self.operations, str(self._socket)),
            lambda: manager.services.settings.audit.witness,
        )
        service = SshService(self._reactor, self._home, self._ssh.listen, self._ssh.port, programs)
        await service.start()
        return service

    async def _join_fleet(self) -> FleetService:
        from ironcurtain.fleet.service import Abilities, FleetService

        able = Abilities.of(self.manager, tuple(self._kinds), self._environ)
        service = FleetService(self._reactor, self._home, self.manager.services.settings.fleet, able)
        await service.start()
        return service


async def _nothing() -> None:
    pass


async def _stop_loop(loop: LoopingCall) -> None:
    if loop.running:
        loop.stop()


async def _cancel(cancel: Callable[[], None]) -> None:
    cancel()


async def _close_pool(_: None) -> None:
    if (pool := sys.modules.get("ironcurtain.codemode.pool")) is not None:  # else there was no built-in agent
        await pool.close_pool()
