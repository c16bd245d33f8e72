"""Commands that run in processes forked from one that has imported what they need."""

from __future__ import annotations

import atexit
import ctypes
import marshal
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

PR_SET_CHILD_SUBREAPER = 36
"""prctl(2): processes whose parent died become our children, so that whatever a command leaves behind is found."""

PROGRAM = Path(__file__).with_name("fork_server.py")

READ_AT_START = ("LANG", "LC_", "LD_", "LOCPATH")
"""What the names of those variables begin with that a process reads only while it starts."""

PIECE_SIZE = 65536
"""Most bytes that are read at once."""


class ForkServer:
    """
    :mod:`tests.fork_server`, which ends with this process. Commands are children of this process, as are the processes
    that they leave behind.

    :param environ: with which it starts.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
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

    def can_run(self, words: Sequence[str], environ: Mapping[str, str]) -> bool:
        """:returns: whether a command, of its program and words, does the same there as when it is started."""
        if words[1:2] == ["prove"]:  # it has its own process attacked, and /proc shows how the server was started
            return False
        programs = [str(Path(self._python).with_name(name)) for name in ("ironcurtain", "twistd")]
        alike = (self._python, self._fixed) == (sys.executable, _read_at_start(environ))
        return alike and words[0] in programs

    def start(
        self,
        words: Sequence[str],
        environ: Mapping[str, str],
        directory: Path,
        stdin: int | None,
        *,
        alone: bool = False,
    ) -> ForkedCommand:
        """
        :param words: the command, of which :meth:`can_run` is true, or ``-m`` with a module below its directory.
        :param stdin: what the command reads, which stays open here; nothing: a pipe.
        :param alone: whether it begins a session of its own, without a terminal.
        """
        encoded = {os.fsencode(name): os.fsencode(value) for name, value in environ.items()}
        asked = marshal.dumps((list(words), encoded, str(directory), alone))
        written = None
        (out, *theirs), (err, *more) = os.pipe(), os.pipe()
        theirs += more
        if stdin is None:
            stdin, written = os.pipe()
            theirs.append(stdin)
        answer, to_answer = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with answer:
            with to_answer:
                socket.send_fds(self._asking, [asked], [to_answer.fileno(), stdin, *theirs[:2]])
            for each in theirs:
                os.close(each)
            if not (packet := answer.recv(64)):
                raise AssertionError(self.end())
            answer.recv(1)  # what forked it has ended
        return ForkedCommand(words, marshal.loads(packet), written, out, err)


class ForkedCommand:
    """
    A command, as ``subprocess.Popen`` has those that it started: what attributes and methods mean is described there.

    :param streams: our ends of its pipes; the first is missing if its input is another descriptor.
    """

    def __init__(self, words: Sequence[str], pid: int, *streams: int | None) -> None:
        self.args, self.pid = list(words), pid
        self.returncode: Any = None
        written, *read = streams
        self.stdin: Any = None if written is None else os.fdopen(written, "w", encoding="utf-8")
        self.stdout: Any
        self.stderr: Any
        self.stdout, self.stderr = (os.fdopen(each, encoding="utf-8") for each in read if each is not None)

    def poll(self) -> int | None:
        """:returns: how it has ended, if it has."""
        if self.returncode is None and (ended := os.waitpid(self.pid, os.WNOHANG))[0]:
            self.returncode = os.waitstatus_to_exitcode(ended[1])
        code: int | None = self.returncode
        return code

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end."""
        if self.poll() is None:
            ended = os.pidfd_open(self.pid)
            looked = select.poll()
            looked.register(ended, select.POLLIN)
            looked.poll(None if timeout is None else timeout * 1000)
            os.close(ended)
        if (code := self.poll()) is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return code

    def communicate(self, input: str | None = None, timeout: float | None = None) -> tuple[str, str]:
        """
        Write input, and wait for the end of the output and of the command.

        :returns: what was not read from both streams before.
        """
        end = None if timeout is None else time.monotonic() + timeout
        given = memoryview((input or "").encode())
        out, err = bytearray(), bytearray()
        with selectors.DefaultSelector() as selector:
            for each, read in ((self.stdin, None), (self.stdout, out), (self.stderr, err)):
                if each is not None and not each.closed:
                    selector.register(each, selectors.EVENT_WRITE if read is None else selectors.EVENT_READ, read)
            while selector.get_map():
                if not (ready := selector.select(_left(end))):
                    raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
                for key, _ in ready:
                    stream: Any = key.fileobj
                    if key.data is None:
                        with suppress(BrokenPipeError):
                            stream.flush()
                            given = given[os.write(key.fd, given[: select.PIPE_BUF]) :]
                            if given:
                                continue
                    elif data := os.read(key.fd, PIECE_SIZE):
                        key.data.extend(data)
                        continue
                    selector.unregister(stream)
                    with suppress(BrokenPipeError):
                        stream.close()
        self.wait(_left(end))
        return _text(out), _text(err)

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)


Command = subprocess.Popen[str] | ForkedCommand
"""One that runs."""


def _text(data: bytearray) -> str:
    return data.decode().replace("\r\n", "\n").replace("\r", "\n")


def _left(end: float | None) -> float | None:
    """:returns: the seconds until a point of monotonic time."""
    return None if end is None else max(0.0, end - time.monotonic())


def _read_at_start(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name.startswith(READ_AT_START)}
