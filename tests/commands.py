"""Commands that run to their end in processes forked from one that has imported what they need."""

from __future__ import annotations

import atexit
import marshal
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

PROGRAM = Path(__file__).with_name("fork_server.py")

READ_AT_START = ("LANG", "LC_", "LD_", "LOCPATH")
"""What the names of those variables begin with that a process reads only while it starts."""

PIPE_SIZE = 65536
"""How much a pipe takes that nobody reads."""


class ForkServer:
    """
    :mod:`tests.fork_server`, which ends with this process.

    :param environ: with which it starts.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._python, self._fixed = sys.executable, _read_at_start(environ)
        self._asking, asked = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        line = [self._python, "-I", "-X", "utf8", str(PROGRAM)]
        with asked:
            # What Python knows of its streams from the start has to be right for those that commands have: pipes.
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(
                line, env=environ, stdin=asked.fileno(), stdout=pipe, stderr=pipe, text=True
            )
        atexit.register(self.end)

    def end(self) -> str:
        """:returns: what the program wrote, which is the cause if it ended too early."""
        atexit.unregister(self.end)
        self._asking.close()
        return "".join(self._process.communicate())

    def can_run(self, words: Sequence[str], environ: Mapping[str, str], given: str) -> bool:
        """:returns: whether a command does the same there as when it is started."""
        if "prove" in words[:1]:  # it has its own process attacked, and /proc shows how the server was started
            return False
        alike = (self._python, self._fixed) == (sys.executable, _read_at_start(environ))
        return alike and len(given.encode()) <= PIPE_SIZE

    def run(
        self, words: Sequence[str], environ: Mapping[str, str], directory: Path, given: str | None, seconds: float
    ) -> subprocess.CompletedProcess[str]:
        """
        :param given: what the command can read; nothing: its standard input is the null device.
        :param seconds: after which it is killed.
        :returns: how a command has ended.
        """
        encoded = {os.fsencode(name): os.fsencode(value) for name, value in environ.items()}
        asked, end = marshal.dumps((list(words), encoded, str(directory))), time.monotonic() + seconds
        with ExitStack() as stack:
            answer, theirs = map(stack.enter_context, socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET))
            streams, ends = zip(*(_pipe(stack) for _ in ("stdout", "stderr")), strict=True)
            with theirs, _input(given) as stdin:
                socket.send_fds(self._asking, [asked], [theirs.fileno(), stdin, *ends])
            for each in ends:
                os.close(each)
            if not (packet := answer.recv(64)):
                raise AssertionError(self.end())
            pid = marshal.loads(packet)
            try:
                read = _read_all(streams, end)
                answer.settimeout(max(0.0, end - time.monotonic()))
                status = os.waitstatus_to_exitcode(marshal.loads(answer.recv(64)))
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(list(words), seconds) from None
        return subprocess.CompletedProcess(list(words), status, *read)


def _read_at_start(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name.startswith(READ_AT_START)}


def _pipe(stack: ExitStack) -> tuple[int, int]:
    """:returns: both ends of a pipe; the first is closed at the end."""
    here, there = os.pipe()
    stack.callback(os.close, here)
    return here, there


@contextmanager
def _input(given: str | None) -> Iterator[int]:
    if given is None:
        here = os.open(os.devnull, os.O_RDONLY)
    else:
        here, there = os.pipe()
        os.write(there, given.encode())
        os.close(there)
    yield here
    os.close(here)


def _read_all(streams: Sequence[int], end: float) -> list[str]:
    """
    :param end: until when, in monotonic time.
    :returns: all that comes, as texts.
    :raises TimeoutError: more could come then.
    """
    read = {stream: bytearray() for stream in streams}
    with selectors.DefaultSelector() as selector:
        for stream in streams:
            selector.register(stream, selectors.EVENT_READ)
        while selector.get_map():
            if not (ready := selector.select(max(0.0, end - time.monotonic()))):
                raise TimeoutError
            for key, _ in ready:
                if data := os.read(key.fd, PIPE_SIZE):
                    read[key.fd] += data
                else:
                    selector.unregister(key.fd)
    return [data.decode().replace("\r\n", "\n").replace("\r", "\n") for data in read.values()]
