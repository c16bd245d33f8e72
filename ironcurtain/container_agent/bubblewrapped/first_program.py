"""
The first program of an agent's sandbox: ``python -I -S first_program.py DESCRIPTOR``.

It starts other programs inside, one for each request that comes by the socket of that descriptor, tells how they end,
and can end all of them. So a sandbox lasts as long as a session, and with it what an agent leaves running. It is run by
its path, without the rest of the package.

A request is one message of words. ``run NUMBER`` brings four descriptors: a file that describes the program, and its
standard streams. That file has parts that end with a zero byte: ``terminal`` or nothing, the directory, the number of
words of the command, these words, and the environment as ``NAME=VALUE``. ``end SECONDS`` ends all other processes, with
SIGTERM first; ``count`` counts processes and threads. Answers are ``ready``, ``ended NUMBER STATUS``, ``gone 1`` and
``count NUMBER``.

A session waits until it runs, so it imports no more than it needs.
"""

from __future__ import annotations

import os
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    import socket
    from collections.abc import Iterator
else:
    # The C modules behind the two, whose enumerations take as long to import as all else of this program's start.
    import _signal as signal
    import _socket as socket

MESSAGE_LIMIT = 1000
"""Maximum size in bytes of a message."""

POLL_SECONDS = 0.02
"""Seconds between looks whether processes that were to end have ended."""

CANNOT_RUN, NOT_FOUND = 126, 127
"""Exit statuses of a program that cannot be executed, or does not exist."""

DEFAULT, SIGKILL, SIGPIPE, SIGTERM, SIGCHLD, SIGCONT, SIGXFSZ = 0, 9, 13, 15, 17, 18, 25
"""``SIG_DFL``, and signals of Linux (signal(7))."""

_INT = 4
"""Size in bytes of a descriptor's number."""


def main() -> None:
    """Serve requests until the other side is gone."""
    FirstProgram(socket.socket(fileno=int(sys.argv[1]))).serve()


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
        signal.signal(SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(wake_writer, warn_on_full_buffer=False)

    def serve(self) -> None:
        """Serve requests until the other side is gone."""
        self._tell("ready")
        while True:
            waited = (self._channel.fileno(), self._wake)
            readable, _, _ = select.select(waited, (), (), POLL_SECONDS if self._ending else None)
            if self._wake in readable:
                try:
                    os.read(self._wake, MESSAGE_LIMIT)
                except BlockingIOError:
                    pass
            self._reap()
            if self._ending:
                self._end()
            if self._channel.fileno() in readable and not self._take():
                return

    def _take(self) -> bool:
        """:returns: whether the other side is there."""
        said, ancillary, _, _ = self._channel.recvmsg(MESSAGE_LIMIT, socket.CMSG_SPACE(4 * _INT))
        if not said:
            return False
        word, _, value = said.decode().partition(" ")
        if word == "run":
            self._run(int(value), _descriptors(ancillary))
        elif word == "count":
            self._tell("count", sum(threads for _, _, threads in _processes()))
        elif word == "end":
            self._ending, self._kill_at = True, time.monotonic() + float(value)
            self._signal_all(SIGTERM)
            self._signal_all(SIGCONT)
        return True

    def _run(self, number: int, descriptors: list[int]) -> None:
        described, *streams = descriptors
        with open(described, "rb") as file:
            order = file.read().split(b"\0")[:-1]
        try:
            pid = os.fork()
        except OSError as e:
            try:
                os.write(streams[2], f"no process can be started: {e.strerror}\n".encode())
            except OSError:
                pass
            self._tell("ended", number, CANNOT_RUN)
            pid = -1
        if pid == 0:
            _become(order, streams)
        if pid > 0:
            self._running[pid] = number
        for descriptor in set(streams):
            os.close(descriptor)

    def _reap(self) -> None:
        try:
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                pid, status = ended
                code = os.waitstatus_to_exitcode(status)
                if (number := self._running.pop(pid, None)) is not None:
                    self._tell("ended", number, code if code >= 0 else 128 - code)
        except ChildProcessError:
            pass

    def _end(self) -> None:
        if not any(pid not in self._kept for pid, _, _ in _processes()):
            self._ending = False
            self._reap()
            self._tell("gone", 1)
        elif time.monotonic() >= self._kill_at:
            self._signal_all(SIGKILL)

    def _signal_all(self, number: int) -> None:
        # All but the init and this process at once, so that nothing multiplies meanwhile, where there are no others.
        only = len(self._kept) == 2
        for pid in [-1] if only else [pid for pid, _, _ in _processes() if pid not in self._kept]:
            try:
                os.kill(pid, number)
            except (ProcessLookupError, PermissionError):
                pass

    def _tell(self, *words: object) -> None:
        self._channel.send(" ".join(map(str, words)).encode())


def _descriptors(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    data = b"".join(data for level, kind, data in ancillary if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS))
    return [int.from_bytes(data[at : at + _INT], sys.byteorder) for at in range(0, len(data), _INT)]


def _become(order: list[bytes], streams: list[int]) -> None:
    """Turn a forked process into a program. Does not return."""
    status, program = CANNOT_RUN, ""
    try:
        terminal, directory, words, *rest = order
        argv = rest[: int(words)]
        program = os.fsdecode(argv[0])
        environment = dict(each.split(b"=", 1) for each in rest[int(words) :])
        if terminal:
            os.login_tty(streams[0])
        else:
            os.setsid()
            for number, descriptor in enumerate(streams):
                os.dup2(descriptor, number)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        signal.set_wakeup_fd(-1)
        for number in (SIGCHLD, SIGPIPE, SIGXFSZ):
            signal.signal(number, DEFAULT)
        os.chdir(directory)
        os.execvpe(argv[0], argv, environment)
    except FileNotFoundError as e:
        status = NOT_FOUND
        os.write(2, f"{program}: {e.strerror}\n".encode())
    except OSError as e:
        os.write(2, f"{program}: {e.strerror}\n".encode())
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
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if fields[0] not in (b"Z", b"X"):
            yield int(name), fields[0].decode(), int(fields[17])


if __name__ == "__main__":
    main()
