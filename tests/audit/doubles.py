"""What tests of the audit log and of its users need: a thread that runs when told, a directory, open descriptors."""

from __future__ import annotations

import gc
import os
import resource
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from twisted.internet.defer import Deferred, succeed
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase


class ManualThread:
    """Runs blocking functions when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Callable[[], None], Deferred[None]]] = []
        self.begun = 0

    def __call__(self, function: Callable[[], None]) -> Deferred[None]:
        done: Deferred[None] = Deferred()
        self.waiting.append((function, done))
        self.begun += 1
        return done

    def run(self) -> None:
        """Run the oldest function."""
        function, done = self.waiting.pop(0)
        function()
        done.callback(None)

    def fail(self, error: Exception) -> None:
        """Let the oldest function fail."""
        self.waiting.pop(0)[1].errback(Failure(error))


def at_once(function: Callable[[], None]) -> Deferred[None]:
    """A thread that is done before anybody can look."""
    function()
    return succeed(None)


def scratch(test: SynchronousTestCase) -> Path:
    """:returns: a directory with a short path that goes with the test."""
    path = tempfile.mkdtemp(prefix="ic-")
    test.addCleanup(shutil.rmtree, path, ignore_errors=True)
    return Path(path)


def open_files(alone: bool = False) -> list[str]:
    """
    :param alone: throw away what earlier tests left as garbage, before it closes something in the middle of this one.
    :returns: what the open descriptors of this process stand for, but for sockets: threads of earlier tests close
        theirs when they end.
    """
    if alone:
        gc.collect()
    names = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            names.append(os.readlink(f"/proc/self/fd/{fd}"))
        except FileNotFoundError:  # the one that lists the directory
            continue
    return sorted(name for name in names if not name.startswith(("/proc", "socket:")))


def descriptor_of(path: Path) -> int:
    """:returns: the one descriptor of this process that a file is open on."""
    (fd,) = [fd for fd in os.listdir("/proc/self/fd") if _target(fd) == str(path)]
    return int(fd)


def _target(fd: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except FileNotFoundError:
        return ""


@contextmanager
def file_limit(size: int) -> Iterator[None]:
    """Files cannot grow beyond a size. Python ignores the signal that comes with it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
