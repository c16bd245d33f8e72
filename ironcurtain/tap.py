"""``twistd ironcurtain``: its options, and the service that runs everything."""

from __future__ import annotations

# ruff: noqa: E402
from ironcurtain import import_only_installed, look_for_garbage_late

import_only_installed()
look_for_garbage_late()

import atexit
import os
import signal
import sys
from contextlib import suppress
from typing import Any, NoReturn

import msgspec
from twisted.application.service import Service
from twisted.internet.asyncioreactor import AsyncioSelectorReactor, install
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger
from twisted.python import usage
from twisted.python.failure import Failure

from ironcurtain.configuration import read_settings, require_files
from ironcurtain.errors import ConfigurationError, IronCurtainError, Unavailable, UsageError
from ironcurtain.files.locks import FileLock, Held
from ironcurtain.home.layout import Home, find_home
from ironcurtain.home.sections import Ssh
from ironcurtain.home.user_paths import absolute_path, check_file_names
from ironcurtain.services.steady_clock import use_steady_clock
from ironcurtain.services.systemd import Systemd
from ironcurtain.session.model import DAEMON_STOPS
from ironcurtain.ssh.addresses import check, check_address

STOP_SECONDS = 60.0
"""Time limit in seconds for stopping everything (each part has its own limit, and is much faster)."""

EXAMPLES = """
Examples:
  twistd ironcurtain                in the background
  twistd -n ironcurtain             in the foreground, log on standard output
  twistd ironcurtain --home /srv/agents --ssh-port 2223
  twistd ironcurtain --ssh-listen 0.0.0.0 --ssh-listen ::
                                    SSH for other machines, too
  twistd --logfile /srv/log --pidfile /run/ic.pid ironcurtain
                                    log and pid file elsewhere: options of
                                    twistd, so they stand before 'ironcurtain'
  ironcurtain systemd-unit          prints a unit for systemd

Signals: SIGTERM and SIGINT end all sessions, then the daemon; a second one ends
it at once. SIGHUP reads the files again, as 'ironcurtain reload' does. SIGUSR1
begins a new log file.
"""


def require_asyncio_reactor() -> None:
    """:raises usage.UsageError: another reactor was installed first."""
    if "twisted.internet.reactor" not in sys.modules:  # install() would leave an event loop behind before it failed
        install()
    from twisted.internet import reactor

    if not isinstance(reactor, AsyncioSelectorReactor):
        raise usage.UsageError(f"needs --reactor=asyncio, found {type(reactor).__name__}")
    use_steady_clock(reactor)


class Options(usage.Options):
    """
    The options of ``twistd ironcurtain``.

    :ivar home: prepared.
    :ivar umask: the user's, for programs that work in a workspace; ``None``: as twistd sets it.
    """

    synopsis = "[options]"
    longdesc = (
        "Runs sessions for 'ironcurtain start', and serves the control API and SSH, as one service. Everything lies in "
        "the home: settings, sessions, the control socket (run/daemon.sock), the log (logs/ironcurtain.log) and the "
        "pid file (twistd.pid). Options win over config.toml."
    )
    optParameters = [  # noqa: RUF012  # the name and the shape are Twisted's
        ["home", None, None, "The home directory (default: $IRONCURTAIN_HOME, else ~/.ironcurtain)."],
    ]
    home: Home
    umask: int | None = None

    def __init__(self) -> None:
        super().__init__()
        require_asyncio_reactor()
        self._listen: list[str] = []
        self._port: int | None = None

    def opt_ssh_port(self, port: str) -> None:
        """The port for SSH (default: [ssh] port, 2222; 0: no SSH)."""
        if not (port.isascii() and port.isdigit() and int(port) <= 65535):
            raise usage.UsageError(f"--ssh-port must be from 0 to 65535, found {port!r}")
        self._port = int(port)

    def opt_ssh_listen(self, address: str) -> None:
        """An IP address for SSH, or systemd:domain=INET:index=0; repeatable (default: [ssh] listen: 127.0.0.1, ::1)."""
        try:
            check_address(address)
        except IronCurtainError as e:
            raise usage.UsageError(str(e)) from None
        self._listen.append(address)

    def getUsage(self, width: int | None = None) -> str:
        """:returns: the help."""
        return f"{super().getUsage(width)}{EXAMPLES}"

    def postOptions(self) -> None:
        """
        Find the home, check whether a daemon can run in it, and set the paths of twistd's files there.

        :raises SystemExit: it cannot run; the error is printed now, since a daemon in the background cannot print it.
        """
        try:
            check_file_names()
            self.home = self._prepared_home()
            require_files(self.home, os.environ)
            settings = read_settings(self.home.config, os.environ).settings
            lock = FileLock(self.home.daemon_lock)
            lock.acquire()
            lock.release()
            ssh = self.choose_ssh(settings.ssh)
            if ssh.port:
                check(ssh.listen, ssh.port)
        except Held as e:
            running = f"process {e.holder}" if e.holder else "another process"
            advice = "stop it first, or name another home with --home"
            leave(Unavailable(f"a daemon is already running in {self.home.path} ({running}): {advice}"))
        except IronCurtainError as e:
            leave(e)
        twistd: Any = self.parent
        if twistd is None or "pidfile" not in twistd:
            return
        if twistd["pidfile"] == "twistd.pid":
            twistd["pidfile"] = str(self.home.daemon_pid)
        if twistd["logfile"] is None and not twistd["nodaemon"]:
            twistd["logfile"] = str(self.home.daemon_log)
            # twistd opens it before setting its umask, and keeps the mode of an existing file.
            os.close(os.open(self.home.daemon_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600))
        if twistd["umask"] is None:  # for the files that twistd creates; IronCurtain sets modes itself
            twistd["umask"] = 0o077
            self.umask = os.umask(0o077)

    def choose_ssh(self, settings: Ssh) -> Ssh:
        """:returns: where to listen for SSH, from the options or else from the settings."""
        return msgspec.structs.replace(
            settings,
            port=settings.port if self._port is None else self._port,
            listen=tuple(self._listen) or settings.listen,
        )

    def _prepared_home(self) -> Home:
        chosen = {"IRONCURTAIN_HOME": str(absolute_path(self["home"]))} if self["home"] else {}
        home = find_home({**os.environ, **chosen}, os.geteuid())
        try:
            home.prepare()
            home.check_writable()
        except OSError as e:
            raise UsageError(f"the home {home.path} cannot be used: {e.strerror}") from None
        return home


def leave(error: IronCurtainError) -> NoReturn:
    """:raises SystemExit: with the error's status, after printing its message."""
    print(f"ironcurtain: {error}", file=sys.stderr)
    raise SystemExit(error.exit_status)


class Daemon(Service):
    """
    Everything that the daemon runs. It starts after twistd has forked, and stops when all sessions are closed.

    :param options: with a prepared home.
    :param systemd: notified of the service's state.
    """

    log = Logger()

    def __init__(self, options: Options, systemd: Systemd) -> None:
        self._options, self._systemd = options, systemd
        self._application: Any = None
        self._starting: Deferred[None] | None = None
        self._stopped: Deferred[None] = Deferred()
        self._has_terminal = False

    def startService(self) -> None:
        """Start everything. An error ends the process with a message and a status."""
        from twisted.internet import reactor

        from ironcurtain.assembly import Application

        super().startService()
        if self._options.umask is not None:
            os.umask(self._options.umask)
        self._reactor: Any = reactor
        try:
            self._application = Application.for_daemon(
                reactor, self._options.home, os.environ, self._options.choose_ssh, self._systemd
            )
        except IronCurtainError as e:
            leave(e)
        self._has_terminal = _has_terminal()
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup(1)
            self._on(signal.SIGHUP, self._hung_up)
        # Start as far as possible before the loop runs: twistd returns to the shell now, and the sockets are open by
        # then.
        self._starting = Deferred.fromCoroutine(self._application.start())
        self._starting.addErrback(self._failed)

    def stopService(self) -> Deferred[None]:
        """:returns: fires when everything has stopped, or the wait was aborted."""
        super().stopService()
        for number in (signal.SIGINT, signal.SIGTERM):
            self._on(number, lambda: self._give_up("a second signal came"))
        late = self._reactor.callLater(STOP_SECONDS, self._give_up, f"it takes more than {STOP_SECONDS:g} seconds")
        if self._starting is not None:
            self._starting.cancel()
        stopping = Deferred.fromCoroutine(self._stop())
        stopping.addErrback(lambda failure: self.log.failure("the daemon did not stop cleanly", failure))
        stopping.addCallback(self._has_stopped, late)
        return self._stopped

    async def _stop(self) -> None:
        try:
            await self._application.stop(DAEMON_STOPS)
        finally:
            if (pool := sys.modules.get("ironcurtain.codemode.pool")) is not None:  # else there was no built-in agent
                await pool.settle(self._reactor)

    def _has_stopped(self, _: object, late: IDelayedCall) -> None:
        if late.active():
            late.cancel()
        if not self._stopped.called:
            self._stopped.callback(None)

    def _give_up(self, why: str) -> None:
        if not self._stopped.called:
            self.log.critical("the daemon exits although not everything has stopped: {why}", why=why)
            self._stopped.callback(None)

    def _hung_up(self) -> None:
        if not self.running:
            return
        if self._has_terminal:
            self.log.info("the terminal is gone: the daemon stops")
            self._reactor.stop()
        else:
            with suppress(ConfigurationError):  # it was logged
                self._application.reload()

    def _on(self, number: int, act: Any) -> None:
        signal.signal(number, lambda *_: self._reactor.callFromThread(act))

    def _failed(self, failure: Failure) -> None:
        if failure.check(CancelledError) or not self.running:
            return
        error = failure.value
        if isinstance(error, IronCurtainError):
            self.log.critical("IronCurtain did not start: {error}", error=error)
        else:
            self.log.failure("IronCurtain did not start", failure=failure)
        # twistd exits with status 0 in any case, except after a signal.
        atexit.register(os._exit, getattr(error, "exit_status", 1))
        self._reactor.callWhenRunning(self._reactor.stop)


def _has_terminal() -> bool:
    """Whether this process has a controlling terminal, because it was started in the foreground."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def makeService(options: Options) -> Daemon:
    """:returns: the daemon, for twistd."""
    return Daemon(options, Systemd.taken_from(os.environ))
