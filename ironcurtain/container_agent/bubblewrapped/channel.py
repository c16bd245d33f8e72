"""
The way to a sandbox's first program (:mod:`~ironcurtain.container_agent.bubblewrapped.first_program`), and what it
runs. The agent has the same account, and could answer in its place: what comes is taken for what it is, never more.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IReadDescriptor
from twisted.python.failure import Failure
from zope.interface import implementer

from ironcurtain.container.errors import ContainerDied
from ironcurtain.container.execution import Sink
from ironcurtain.container_agent.bubblewrapped.first_program import MESSAGE_LIMIT
from ironcurtain.container_agent.bubblewrapped.pipes import PipeReader, PipeWriter
from ironcurtain.errors import UsageError
from ironcurtain.platform.files import nameless_file

MESSAGES = 100
"""Most messages that are taken at once, so that a flood does not hold up the reactor."""

_NUMBER = re.compile(r"[0-9]{1,18}")

NOBODY = os.devnull
"""The input of a program without any."""


class Order(msgspec.Struct, frozen=True):
    """
    A program to run.

    :param argv: a path, or a name that is looked up in the ``PATH`` of its environment.
    :param environment: its complete environment.
    """

    argv: Sequence[str]
    environment: Mapping[str, str]
    directory: str

    def encoded(self, terminal: bool) -> bytes:
        """
        :param terminal: whether its standard streams are a terminal, which becomes its own.
        :raises UsageError: a text in it cannot be given to a program.
        """
        variables = [f"{name}={value}" for name, value in self.environment.items()]
        parts = ["terminal" if terminal else "", self.directory, str(len(self.argv)), *self.argv, *variables]
        if any("\0" in part for part in parts):
            raise UsageError("no program can be started with a zero byte in its command or environment")
        return b"".join(os.fsencode(part) + b"\0" for part in parts)


@implementer(IReadDescriptor)
class Channel:
    """
    :ivar theirs: what the sandbox inherits; close it once the sandbox was started.
    :ivar takes_requests: whether the first program runs.
    :ivar ready: fires once requests are taken; fails with :class:`ContainerDied` if the sandbox ends before.
    """

    def __init__(self, reactor: Any) -> None:
        self._reactor = reactor
        self._ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ours.setblocking(False)
        self._number = 0
        self._dead: ContainerDied | None = None
        self.takes_requests = False
        self._running: dict[int, Deferred[int]] = {}
        self._asked: dict[str, list[Deferred[Any]]] = {"gone": [], "count": []}
        self.ready: Deferred[None] = Deferred()
        reactor.addReader(self)

    def start(self, order: Order, streams: Sequence[int], terminal: bool) -> Deferred[int]:
        """
        Start a program.

        :param streams: descriptors of its standard streams, which stay open here.
        :returns: fires with its exit status; fails with :class:`ContainerDied` if the sandbox ends.
        """
        self._number += 1
        encoded, described = order.encoded(terminal), nameless_file()
        with os.fdopen(described, "r+b") as file:
            file.write(encoded)
            file.seek(0)
            self._send(f"run {self._number}", [described, *streams])
        ended: Deferred[int] = Deferred()
        if self._dead is not None:
            ended.errback(self._dead)
        else:
            self._running[self._number] = ended
        return ended

    def end(self, grace: float) -> Deferred[bool]:
        """
        End all programs.

        :param grace: seconds between SIGTERM and SIGKILL.
        :returns: fires once they are gone; fails with :class:`ContainerDied` if the sandbox ends.
        """
        return self._ask("gone", f"end {grace}")

    def count(self) -> Deferred[int]:
        """:returns: fires with the number of processes and threads inside."""
        return self._ask("count", "count")

    def close(self, why: ContainerDied) -> None:
        """The sandbox has ended. Can be called twice."""
        if self._dead is not None:
            return
        self._dead = why
        self._reactor.removeReader(self)
        self._ours.close()
        waiting = [*self._running.values(), *(each for asked in self._asked.values() for each in asked), self.ready]
        self._running.clear()
        for deferred in waiting:
            if not deferred.called:
                deferred.errback(why)

    def fileno(self) -> int:
        """For the reactor."""
        return self._ours.fileno()

    def logPrefix(self) -> str:
        """For the reactor."""
        return "sandbox"

    def doRead(self) -> None:
        """For the reactor: there are answers."""
        for _ in range(MESSAGES):
            try:
                said = self._ours.recv(MESSAGE_LIMIT)  # descriptors that come with it are not taken
            except BlockingIOError:
                return
            except OSError:
                said = b""
            if not said:  # its end is noticed elsewhere
                self._reactor.removeReader(self)
                return
            self._take(said.decode("ascii", "replace").split(" "))

    def connectionLost(self, reason: Failure) -> None:
        """For the reactor: it stops."""

    def _take(self, words: Sequence[str]) -> None:
        name, *values = words
        numbers = [int(value) for value in values if _NUMBER.fullmatch(value)]
        match name, numbers:
            case "ready", [] if not self.ready.called:
                self.takes_requests = True
                self.ready.callback(None)
            case "ended", [number, status] if number in self._running:
                self._running.pop(number).callback(status & 0xFF)
            case what, [number] if waiting := self._asked.get(what):
                waiting.pop(0).callback(number)

    def _ask(self, what: str, request: str) -> Deferred[Any]:
        asked: Deferred[Any] = Deferred()
        self._send(request, [])
        if self._dead is not None:
            asked.errback(self._dead)
        else:
            self._asked[what].append(asked)
        return asked

    def _send(self, request: str, descriptors: Sequence[int]) -> None:
        with suppress(OSError):  # it has ended, or does not take requests any more, which its owner ends
            socket.send_fds(self._ours, [request.encode()], list(descriptors))


class PipedProgram:
    """
    A program with pipes.

    :param has_input: whether its input is open.
    :ivar status: fires with its exit status after the last output; fails with :class:`ContainerDied` if the sandbox
        ends.
    """

    def __init__(
        self, reactor: Any, channel: Channel, order: Order, has_input: bool, stdout: Sink, stderr: Sink
    ) -> None:
        theirs = list[int]()
        try:
            self._input = None
            if has_input:
                read, write = os.pipe()
                theirs.append(read)
                self._input = PipeWriter(reactor, write)
            else:
                theirs.append(os.open(NOBODY, os.O_RDONLY | os.O_CLOEXEC))
            self._readers = list[PipeReader]()
            for sink in (stdout, stderr):
                read, write = os.pipe()
                theirs.append(write)
                self._readers.append(PipeReader(reactor, read, sink))
            ended = channel.start(order, theirs, False)
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        self.status = Deferred.fromCoroutine(self._watch(ended))

    def write(self, data: bytes) -> None:
        """Give it input. Nothing happens if it has ended."""
        if self._input is not None:
            self._input.write(data)

    def close_input(self) -> None:
        """End its input, after what was written."""
        if self._input is not None:
            self._input.loseConnection()

    async def _watch(self, ended: Deferred[int]) -> int:
        try:
            return await ended
        finally:
            for reader in self._readers:
                reader.finish()
            if self._input is not None:
                self._input.connectionLost(Failure(ConnectionDone()))
            await gatherResults([reader.done for reader in self._readers])
