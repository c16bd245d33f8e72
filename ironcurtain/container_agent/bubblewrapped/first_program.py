"""
The first program of an agent's sandbox: ``python -I -S first_program.py DESCRIPTOR``.

It starts other programs inside, one for each request that comes by the socket of that descriptor, tells how they end,
and can end all of them. So a sandbox lasts as long as a session, and with it what an agent leaves running. It is run by
its path, without the rest of the package.

A request is one message. ``{"run": NUMBER}`` brings four descriptors: a file that describes the program
(``argv``, ``environment``, ``directory``, ``terminal``), and its standard streams. ``{"end": SECONDS}`` ends all other
processes, with SIGTERM first; ``{"count": true}`` counts processes and threads. Answers are ``{"ready": true}``,
``{"ended": NUMBER, "status": STATUS}``, ``{"gone": true}`` and ``{"count": NUMBER}``.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import socket

MESSAGE_LIMIT = 1000
"""Maximum size in bytes of a message."""

POLL_SECONDS = 0.02
"""Seconds between looks whether processes that were to end have ended."""

CANNOT_RUN, NOT_FOUND = 126, 127
"""Exit statuses of a program that cannot be executed, or does not exist."""


def main() -> None:
    """Serve requests until the other side is gone."""
    import socket

    with socket.socket(fileno=int(sys.argv[1])) as channel:
        FirstProgram(channel).serve()


class FirstProgram:
    """:param channel: a socket of packets."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._running: dict[int, int] = {}
        self._kill_at = 0.0
        self._ending = False
        self._kept = _line_of(os.getpid())
        self._wake, wake_writer = os.pipe()
        for descriptor in (self._wake, wake_writer):
            os.set_blocking(descriptor, False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(wake_writer, warn_on_full_buffer=False)

    def serve(self) -> None:
        """Serve requests until the other side is gone."""
        self._tell(ready=True)
        while True:
            waited = (self._channel.fileno(), self._wake)
            readable, _, _ = select.select(waited, (), (), POLL_SECONDS if self._ending else None)
            if self._wake in readable:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake, MESSAGE_LIMIT)
            self._reap()
            if self._ending:
                self._end()
            if self._channel.fileno() in readable and not self._take():
                return

    def _take(self) -> bool:
        """:returns: whether the other side is there."""
        import socket

        said, descriptors, _, _ = socket.recv_fds(self._channel, MESSAGE_LIMIT, 4)
        if not said:
            return False
        request = json.loads(said)
        if "run" in request:
            self._run(request["run"], descriptors)
        elif "count" in request:
            self._tell(count=sum(threads for _, _, threads in _processes()))
        elif "end" in request:
            self._ending, self._kill_at = True, time.monotonic() + request["end"]
            self._signal_all(signal.SIGTERM)
            self._signal_all(signal.SIGCONT)
        return True

    def _run(self, number: int, descriptors: list[int]) -> None:
        described, *streams = descriptors
        with open(described, "rb") as file:
            order = json.load(file)
        try:
            pid = os.fork()
        except OSError as e:
            with contextlib.suppress(OSError):
                os.write(streams[2], f"no process can be started: {e.strerror}\n".encode())
            self._tell(ended=number, status=CANNOT_RUN)
            pid = -1
        if pid == 0:
            _become(order, streams)
        if pid > 0:
            self._running[pid] = number
        for descriptor in set(streams):
            os.close(descriptor)

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                pid, status = ended
                code = os.waitstatus_to_exitcode(status)
                if (number := self._running.pop(pid, None)) is not None:
                    self._tell(ended=number, status=code if code >= 0 else 128 - code)

    def _end(self) -> None:
        if not any(pid not in self._kept for pid, _, _ in _processes()):
            self._ending = False
            self._reap()
            self._tell(gone=True)
        elif time.monotonic() >= self._kill_at:
            self._signal_all(signal.SIGKILL)

    def _signal_all(self, number: int) -> None:
        if len(self._kept) == 2:
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, number)  # at once, so that nothing multiplies meanwhile; all but the init and this process
            return
        for pid, _, _ in list(_processes()):
            if pid not in self._kept:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)

    def _tell(self, **answer: Any) -> None:
        self._channel.send(json.dumps(answer).encode())


def _become(order: dict[str, Any], streams: list[int]) -> None:
    """Turn a forked process into a program. Does not return."""
    status = CANNOT_RUN
    try:
        if order["terminal"]:
            os.login_tty(streams[0])
        else:
            os.setsid()
            for number, descriptor in enumerate(streams):
                os.dup2(descriptor, number)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.chdir(order["directory"])
        os.execvpe(order["argv"][0], order["argv"], order["environment"])
    except FileNotFoundError as e:
        status = NOT_FOUND
        os.write(2, f"{order['argv'][0]}: {e.strerror}\n".encode())
    except OSError as e:
        os.write(2, f"{order['argv'][0]}: {e.strerror}\n".encode())
    finally:
        os._exit(status)


def _line_of(pid: int) -> set[int]:
    """:returns: a process and those above it: the init, and one more where bubblewrap runs inside another one."""
    found = {1}
    while pid > 1:
        found.add(pid)
        with open(f"/proc/{pid}/stat", "rb") as file:
            pid = int(file.read().rpartition(b")")[2].split()[1])
    return found


def _processes() -> Iterator[tuple[int, str, int]]:
    """:returns: the id, the state and the number of threads of each process, without those that have ended."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
                if fields[0] not in (b"Z", b"X"):
                    yield int(name), fields[0].decode(), int(fields[17])


if __name__ == "__main__":
    main()
