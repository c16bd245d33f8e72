"""A process in a terminal that was started without the reactor, as a transport of the reactor."""

from __future__ import annotations

import os
import signal
from typing import Any

from twisted.internet import fdesc
from twisted.internet.error import ProcessDone, ProcessExitedAlready, ProcessTerminated
from twisted.internet.interfaces import IProcessProtocol
from twisted.internet.process import registerReapProcessHandler, unregisterReapProcessHandler
from twisted.python.failure import Failure

from ironcurtain.terminal.direct import DirectDescriptor


class AdoptedProcess(DirectDescriptor):
    """
    From now on it is what ``spawnProcess`` makes for a command in a terminal.

    :param pid: of a child of this process that nobody waits for.
    :param master: descriptor of its terminal's master side; closed when the output has ended.
    :ivar pid: ``None`` once it was waited for.
    """

    def __init__(self, reactor: Any, pid: int, master: int, protocol: IProcessProtocol) -> None:
        super().__init__(reactor)
        self.pid: int | None = pid
        self._master, self._protocol = master, protocol
        self._reason: Failure | None = None
        fdesc.setNonBlocking(master)
        self.connected = 1
        self.startReading()
        protocol.makeConnection(self)  # type: ignore[arg-type]  # it has what LocalPty uses
        registerReapProcessHandler(pid, self)

    def signalProcess(self, name: str) -> None:
        """
        :param name: of a signal, without ``SIG``.
        :raises ProcessExitedAlready: it was waited for.
        """
        if self.pid is None:
            raise ProcessExitedAlready
        os.kill(self.pid, signal.Signals[f"SIG{name}"])

    def fileno(self) -> int:
        """For the reactor."""
        return self._master

    def doRead(self) -> Any:
        """For the reactor."""
        return fdesc.readFromFD(self._master, lambda data: self._protocol.childDataReceived(1, data))

    def writeSomeData(self, data: bytes) -> Any:
        """For the transport's buffer."""
        return fdesc.writeToFD(self._master, data)

    def connectionLost(self, reason: Failure) -> None:
        """For the reactor: nobody has the terminal any more."""
        super().connectionLost(reason)
        os.close(self._master)
        self._finish()

    def reapProcess(self) -> None:
        """For the reactor: a child of this process may have exited."""
        assert self.pid is not None  # the reactor knows no other
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid:
            unregisterReapProcessHandler(pid, self)
            self.processEnded(status)

    def processEnded(self, status: int) -> None:
        """
        For the reactor: it exited.

        :param status: as from ``os.waitpid``.
        """
        self.pid = None
        code = os.waitstatus_to_exitcode(status)
        exited, killed = (code, None) if code > 0 else (None, -code)
        self._reason = Failure(ProcessTerminated(exited, killed, status) if code else ProcessDone(status))
        self._protocol.processExited(self._reason)
        self._finish()

    def _finish(self) -> None:
        if self._reason is not None and not self.connected:
            self._protocol.processEnded(self._reason)
