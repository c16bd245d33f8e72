"""Restores a terminal if we are killed before we can: by a small process that waits for us to end."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure

from ironcurtain.terminal.restore import RESTORE

_SCRIPT = """
trap '' HUP INT QUIT TERM TSTP TTIN TTOU
read -r word
test "$word" = done && exit
stty "$1" <"$2"
printf %s "$3" >"$2"
"""
"""Its standard input comes from us, and ends with us: then the word is missing."""

_DONE = b"done\n"


class Guard:
    """
    Watches over one terminal.

    :param reactor: starts the process.
    """

    def __init__(self, reactor: Any) -> None:
        self._reactor = reactor
        self._process: Any = None
        self._ended: Deferred[None] = Deferred()

    def begin(self, descriptor: int) -> None:
        """
        From now on, the terminal will be restored to what it is now. Where that cannot be had, nothing is done.

        :param descriptor: of the terminal, before it is changed.
        """
        setsid = shutil.which("setsid")
        try:
            name = os.ttyname(descriptor)
            saved = subprocess.run(["stty", "-g"], stdin=descriptor, capture_output=True, check=True, text=True).stdout
        except (OSError, subprocess.CalledProcessError):
            return
        if setsid is not None:
            words = [setsid, "/bin/sh", "-c", _SCRIPT, "sh", saved.strip(), name, RESTORE.decode()]
            environ = {"PATH": os.environ.get("PATH", os.defpath)}
            streams: dict[int, Any] = {0: "w", 1: 1, 2: 2}
            self._process = self._reactor.spawnProcess(_Waiting(self._ended), setsid, words, environ, childFDs=streams)

    async def end(self) -> None:
        """The terminal is restored already, or will not be changed any more."""
        if self._process is not None:
            process, self._process = self._process, None
            process.write(_DONE)
            process.closeStdin()
            await self._ended


class _Waiting(ProcessProtocol):
    def __init__(self, ended: Deferred[None]) -> None:
        self._ended = ended

    def processEnded(self, reason: Failure) -> None:
        self._ended.callback(None)
