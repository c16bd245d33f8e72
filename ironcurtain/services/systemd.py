"""
What systemd is told about the service, over the socket that it names in the environment (sd_notify(3)).

Nothing is said, and nothing is wrong, where nobody asked: without ``NOTIFY_SOCKET`` every method does nothing.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import MutableMapping
from dataclasses import dataclass

from twisted.logger import Logger

from ironcurtain.text.display import shorten

SEND_SECONDS = 1.0
"""How long one message may wait for a systemd that does not read; it is dropped then."""

STATUS_LIMIT = 500
"""Most characters of a status: ``systemctl status`` shows it on one line."""

_VARIABLES = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")


@dataclass(frozen=True, slots=True)
class Systemd:
    """
    Who started us, if it wants to hear.

    :param socket: as ``NOTIFY_SOCKET`` has it: a path, or a name with ``@`` in front of it (an abstract socket); empty
        if nobody wants to hear.
    :param watchdog_usec: microseconds after which we count as stuck if nothing was heard from us; 0 for never.
    :param watchdog_pid: the process of which that holds; 0 for whichever asks.
    """

    socket: str = ""
    watchdog_usec: int = 0
    watchdog_pid: int = 0

    log = Logger()

    @classmethod
    def taken_from(cls, environ: MutableMapping[str, str]) -> Systemd:
        """
        :param environ: the variables are removed from it, so that no process of ours inherits them: it could speak for
            us.
        """
        address, usec, pid = (environ.pop(name, "") for name in _VARIABLES)
        return cls(address, _number(usec), _number(pid))

    @property
    def watchdog_seconds(self) -> float:
        """How often :meth:`alive` is to be called: at half of the time (sd_watchdog_enabled(3)); 0.0 for never."""
        ours = self.watchdog_pid in (0, os.getpid())
        return self.watchdog_usec / 2e6 if self.socket and ours else 0.0

    def ready(self, status: str) -> None:
        """All is up, or all is as it was asked for by a reload, whether that came to anything or not."""
        self._tell("READY=1", f"STATUS={shorten(status, STATUS_LIMIT)}")

    def reloading(self) -> None:
        """Files are read again; :meth:`ready` must follow."""
        self._tell("RELOADING=1", f"MONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")

    def stopping(self, status: str) -> None:
        """The end has begun."""
        self._tell("STOPPING=1", f"STATUS={shorten(status, STATUS_LIMIT)}")

    def alive(self) -> None:
        """We are not stuck."""
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
            self.log.warn("systemd was not told {what}: {error}", what=assignments[0], error=e)


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else 0
