"""``twistd ironcurtain``: its options, and the service that runs everything."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from twisted.application.service import Service
from twisted.internet import asyncioreactor
from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python import usage

from ironcurtain.errors import IronCurtainError
from ironcurtain.home import Home, find_home


def require_asyncio_reactor() -> None:
    """:raises usage.UsageError: another reactor was installed first."""
    if "twisted.internet.reactor" not in sys.modules:  # install() would leave an event loop behind before it failed
        asyncioreactor.install()
        return
    from twisted.internet import reactor

    if not isinstance(reactor, asyncioreactor.AsyncioSelectorReactor):
        raise usage.UsageError(f"needs --reactor=asyncio, found {type(reactor).__name__}")


class Options(usage.Options):
    """The options after ``twistd ironcurtain``."""

    synopsis = "[--home DIR] [--ssh-port PORT]"
    longdesc = (
        "Runs sessions for 'ironcurtain start', and serves the control API and SSH, as one service. Log and pid file "
        "lie in the home unless twistd's own --logfile and --pidfile say otherwise. In the foreground: twistd -n "
        "ironcurtain"
    )
    optParameters = [  # noqa: RUF012  # the name and the shape are Twisted's
        ["home", None, None, "The home directory (default: $IRONCURTAIN_HOME, else ~/.ironcurtain)."],
        ["ssh-port", None, None, "The port for SSH on this machine (default: [ssh] port, 2222; 0: none).", int],
    ]

    def __init__(self) -> None:
        super().__init__()
        require_asyncio_reactor()

    def postOptions(self) -> None:
        """
        Find the home, and let twistd keep its files there.

        :raises usage.UsageError: there is no usable home.
        """
        try:
            self.home = self._find_home()
            self.home.prepare()
        except IronCurtainError as e:
            raise usage.UsageError(str(e)) from None
        twistd: Any = self.parent
        if twistd is None or "pidfile" not in twistd:
            return
        if twistd["pidfile"] == "twistd.pid":
            twistd["pidfile"] = str(self.home.daemon_pid)
        if twistd["logfile"] is None and not twistd["nodaemon"]:
            twistd["logfile"] = str(self.home.daemon_log)
            # twistd opens it before its umask holds, and keeps the mode of a file that is there.
            os.close(os.open(self.home.daemon_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600))
        if twistd["umask"] is None:
            twistd["umask"] = 0o077

    def _find_home(self) -> Home:
        chosen = {"IRONCURTAIN_HOME": str(Path(self["home"]).absolute())} if self["home"] else {}
        return find_home({**os.environ, **chosen}, os.geteuid())


class Daemon(Service):
    """
    Everything that the daemon runs. It starts after twistd has forked, and stops when all sessions are closed.

    :param home: prepared.
    :param ssh_port: in place of the one in the settings.
    """

    log = Logger()

    def __init__(self, home: Home, ssh_port: int | None = None) -> None:
        self._home, self._ssh_port = home, ssh_port
        self._application: Any = None
        self._starting: Deferred[None] | None = None

    def startService(self) -> None:
        """Start everything; what makes that impossible ends the process with a sentence."""
        from twisted.internet import reactor

        from ironcurtain.assembly import Application

        super().startService()
        try:
            self._application = Application.for_daemon(reactor, self._home, os.environ, self._ssh_port)
        except IronCurtainError as e:
            raise SystemExit(f"ironcurtain: {e}") from None
        self._starting = Deferred.fromCoroutine(self._application.start())
        self._starting.addErrback(self._failed, reactor)

    def stopService(self) -> Deferred[None]:
        """:returns: fires when all sessions are closed and nothing is left running."""
        super().stopService()
        if self._starting is not None:
            self._starting.cancel()
        return Deferred.fromCoroutine(self._stop())

    async def _stop(self) -> None:
        if self._application is not None:
            await self._application.stop("the daemon stops")

    def _failed(self, failure: Any, reactor: Any) -> None:
        self.log.failure("IronCurtain did not start", failure=failure)
        reactor.stop()


def makeService(options: Options) -> Daemon:
    """:returns: the daemon, for twistd."""
    return Daemon(options.home, options["ssh-port"])
