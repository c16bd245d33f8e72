"""
Run a helper program and read what it prints, with bounds on time and memory. This blocks; coroutines use
:func:`ironcurtain.process.piped.command_output`.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO

import msgspec

from ironcurtain.errors import IronCurtainError

OUTPUT_LIMIT = 64 * 1024
"""Most bytes of each stream that are kept, unless the caller says otherwise."""

QUIET_SECONDS = 0.1
"""Seconds of silence after a program's end, until streams that another process still has are given up."""

_READ = 64 * 1024


class Unfinished(IronCurtainError):
    """
    A program was ended: it took too long, or printed too much.

    :param why: what it did, as the end of a sentence, such as "took longer than 5 s".
    :param output: what is kept of its standard output.
    """

    def __init__(self, why: str, output: bytes) -> None:
        super().__init__(f"the program {why}, and was ended")
        self.why, self.output = why, output


class Kept:
    """
    The end of a stream, or all of a short one.

    :param limit: most bytes that are kept; what came before the last ones is dropped.
    :ivar dropped: the number of bytes that were dropped.
    """

    def __init__(self, limit: int) -> None:
        self._limit, self._content, self.dropped = limit, bytearray(), 0

    def feed(self, data: bytes) -> None:
        """Take bytes as they come, in any slicing."""
        self._content += data[-self._limit :] if self._limit else b""
        self.dropped += max(len(data) - self._limit, 0)
        if (excess := len(self._content) - self._limit) > 0:
            del self._content[:excess]
            self.dropped += excess

    @property
    def content(self) -> bytes:
        """What is kept."""
        return bytes(self._content)


class Finished(msgspec.Struct, frozen=True):
    """
    A program that ended by itself.

    :param status: its exit status; negative: the signal that ended it.
    :param output: the end of its standard output.
    :param errors: the end of its standard error.
    """

    status: int
    output: bytes
    errors: bytes


class Bounds(msgspec.Struct, frozen=True):
    """
    :param seconds: how long a program may take.
    :param limit: most bytes of each stream that are kept.
    :param whole: whether a program that prints more than that to its standard output is ended; else the beginning is
        dropped. Standard error is always read to its end, and what exceeds is dropped.
    """

    seconds: float
    limit: int = OUTPUT_LIMIT
    whole: bool = False


def run(
    argv: Sequence[str],
    bounds: Bounds,
    *,
    environment: Mapping[str, str] | None = None,
    cwd: str | None = None,
    stdin: bytes | int = b"",
    out: Path | None = None,
    descriptors: Sequence[int] = (),
) -> Finished:
    """
    Run a program to its end, in a session of its own. What it starts and leaves behind is not waited for; what it
    still runs when it is ended here is ended with it.

    :param environment: its environment; ``None``: this process's.
    :param stdin: what it reads, nothing secret, or a descriptor.
    :param out: a file for its standard output, which then is neither bounded nor kept.
    :param descriptors: further ones that it inherits.
    :raises Unfinished: it took too long or printed too much.
    :raises OSError: it cannot be started.
    """
    with ExitStack() as files:
        question: IO[bytes] | int = stdin if isinstance(stdin, int) else files.enter_context(_filled(stdin))
        target = subprocess.PIPE if out is None else files.enter_context(out.open("wb"))
        process = subprocess.Popen(
            list(argv),
            stdin=question,
            stdout=target,
            stderr=subprocess.PIPE,
            env=None if environment is None else dict(environment),
            cwd=cwd,
            pass_fds=tuple(descriptors),
            start_new_session=True,
        )
    with process:
        try:
            return _read(process, bounds)
        except BaseException:
            if process.returncode is None:  # it has not been waited for: the number is still its own
                os.killpg(process.pid, signal.SIGKILL)
            raise


def _read(process: subprocess.Popen[bytes], bounds: Bounds) -> Finished:
    until, kept = time.monotonic() + bounds.seconds, {1: Kept(bounds.limit), 2: Kept(bounds.limit)}

    def left() -> float:
        if (seconds := until - time.monotonic()) <= 0:
            raise Unfinished(f"took longer than {bounds.seconds:.0f} s", kept[1].content)
        return seconds

    with selectors.DefaultSelector() as selector:
        for number, stream in ((1, process.stdout), (2, process.stderr)):
            if stream is not None:
                selector.register(stream, selectors.EVENT_READ, number)
        has_ended = False
        while selector.get_map():
            ready = selector.select(min(left(), QUIET_SECONDS))
            if not ready and has_ended:  # already before this look, which would have found its last words
                break  # a process that it started still has its streams
            has_ended = process.poll() is not None
            for key, _ in ready:
                if data := os.read(key.fd, _READ):
                    kept[key.data].feed(data)
                else:
                    selector.unregister(key.fileobj)
            if bounds.whole and kept[1].dropped:
                raise Unfinished(f"printed more than {bounds.limit // 1024} KiB", kept[1].content)
    try:
        return Finished(process.wait(left()), kept[1].content, kept[2].content)
    except subprocess.TimeoutExpired:
        raise Unfinished(f"took longer than {bounds.seconds:.0f} s", kept[1].content) from None


def _filled(content: bytes) -> IO[bytes]:
    file = tempfile.TemporaryFile()  # noqa: SIM115  # a pipe holds little, and somebody would have to fill it
    file.write(content)
    file.seek(0)
    return file
