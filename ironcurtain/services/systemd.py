"""
Notify systemd about the state of the service, over the socket in the environment (sd_notify(3)).

Without ``NOTIFY_SOCKET``, every method does nothing.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import MutableMapping

import msgspec
from twisted.logger import Logger

from ironcurtain.text.display import shorten

SEND_SECONDS = 1.0
"""Time limit in seconds for a message if systemd does not read; then it is dropped."""

STATUS_LIMIT = 500
"""Maximum length in characters of a status, which ``systemctl status`` shows on one line."""

_VARIABLES = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")


class Systemd(msgspec.Struct, frozen=True):
    """
    The connection to systemd.

    :param socket: the value of ``NOTIFY_SOCKET``: a path, or ``@`` and a name (an abstract socket); empty if there is
        none.
    :param watchdog_usec: microseconds without a message after which systemd considers the service stuck; 0 for never.
    :param watchdog_pid: the process to which that applies; 0 for any.
    """

    socket: str = ""
    watchdog_usec: int = 0
    watchdog_pid: int = 0

    log = Logger()

    @classmethod
    def taken_from(cls, environ: MutableMapping[str, str]) -> Systemd:
        """
        :param environ: the variables are removed from it, so that child processes do not inherit them and cannot send
            notifications.
        """
        address, usec, pid = (environ.pop(name, "") for name in _VARIABLES)
        return cls(address, _number(usec), _number(pid))

    @property
    def watchdog_seconds(self) -> float:
        """
        Interval in seconds for calling :meth:`alive`: half of the watchdog time (sd_watchdog_enabled(3)); 0.0 for
        never.
        """
        ours = self.watchdog_pid in (0, os.getpid())
        return self.watchdog_usec / 2e6 if self.socket and ours else 0.0

    def ready(self, status: str) -> None:
        """The service is ready, or has finished a reload, successfully or not."""
        self._tell("READY=1", f"STATUS={shorten(status, STATUS_LIMIT)}")

    def reloading(self) -> None:
        """The service reloads its files; :meth:`ready` must follow."""
        self._tell("RELOADING=1", f"MONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")

    def stopping(self, status: str) -> None:
        """The service is stopping."""
        self._tell("STOPPING=1", f"STATUS={shorten(status, STATUS_LIMIT)}")

    def alive(self) -> None:
        """The service is alive."""
        self._tell("WATCHDOG=1")

    def _tell(self, *assignments: str) -> None:
        if not self.socket:
            return
        address = f"\0{self.socket[1:]}" if self.socket.startswith("@") else self.socket
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
                end.settimeout(SEND_SECONDS)
                end.connect(address)
                end.send("\n".join(assignments).encode())
        except OSError as e:
            self.log.warn("systemd could not be notified of {what}: {error}", what=assignments[0], error=e)


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else 0
