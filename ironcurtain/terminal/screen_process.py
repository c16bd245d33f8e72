"""The client of the process of the screen models: starts it, never blocks on it, and does without it when it fails."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger

from ironcurtain.process.frames import packed
from ironcurtain.process.worker import WORDS_LIMIT, Worker, WorkerReactor
from ironcurtain.terminal.screen_wire import (
    CloseScreen,
    ScreenAnswer,
    ScreenOutbox,
    ScreenRefusal,
    ScreenReply,
    ScreenRequest,
    ScreensReady,
    reply_reader,
)
from ironcurtain.text.display import shorten

COMMAND = (sys.executable, "-I", "-m", "ironcurtain.terminal.screen_worker")

ANSWER_SECONDS = 1.0
"""Time limit in seconds for an answer, after which the last output is used (usual: some 20 ms)."""

START_SECONDS = 10.0
"""The same while the process starts (usual: half a second)."""

BATCH_SIZE = 64 * 1024
"""Number of bytes of output sent together (each send costs some 30 us)."""

BATCH_SECONDS = 0.1
"""Maximum delay in seconds of smaller amounts, unless there is a request."""


class ScreenClient(Protocol):
    """One screen."""

    outbox: ScreenOutbox

    def process_gone(self) -> None:
        """The process ended. Pending requests are answered right after this."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    screen: int
    answered: Callable[[bytes | None], None]
    timer: IDelayedCall
    life: int


class ProcessState(Enum):
    """What has become of the process."""

    STARTING = "starting"
    READY = "ready"
    """Requests are answered soon."""

    FINISHED = "finished"
    """Nobody needs it any more."""

    LOST = "lost"
    """It was needed."""


class ScreenProcess:
    """
    One process for any number of screens; it ends with the last one.

    :raises OSError: it cannot be started.
    """

    log = Logger()

    def __init__(self, reactor: WorkerReactor, command: tuple[str, ...] = COMMAND) -> None:
        self._reactor = reactor
        self._clients: dict[int, ScreenClient] = {}
        self._requests: dict[int, _Waiting] = {}
        self._numbers = itertools.count(1)
        self._batch: IDelayedCall | None = None
        self._life = 0
        self._blocked, self._why = False, ""
        self._state = ProcessState.STARTING
        self._worker = Worker(reactor, command, reply_reader(), self)

    @property
    def ready(self) -> bool:
        """Whether requests are answered soon."""
        return self._state is ProcessState.READY

    @property
    def gone(self) -> bool:
        """Whether it ended; another one can be started."""
        return self._state in (ProcessState.FINISHED, ProcessState.LOST)

    @property
    def pid(self) -> int | None:
        """Its process id while it runs."""
        return self._worker.pid

    def number(self) -> int:
        """:returns: a unique number for a screen or a request."""
        return next(self._numbers)

    def add(self, screen: int, client: ScreenClient) -> None:
        """Add a screen; the order to open it is in its outbox."""
        self._clients[screen] = client
        self.flush()

    def remove(self, screen: int) -> None:
        """Remove a screen. Its pending requests are never answered."""
        for request in [number for number, waiting in self._requests.items() if waiting.screen == screen]:
            self.refuse(request)
        if self._clients.pop(screen, None) is None:
            return
        if self._clients:
            self._worker.write(packed(CloseScreen(screen)))
        else:
            self._give_up(ProcessState.FINISHED)
            self._worker.forget()

    def fed(self, client: ScreenClient) -> None:
        """More output is in a screen's outbox."""
        if client.outbox.waiting >= BATCH_SIZE:
            self.flush()
        elif self._batch is None and self.ready and not self._blocked:
            self._batch = self._reactor.callLater(BATCH_SECONDS, self.flush)

    def ask(self, screen: int, make: Callable[[int], ScreenRequest], answered: Callable[[bytes | None], None]) -> None:
        """
        :param make: creates the order from its number.
        :param answered: called with the answer, or with ``None`` if there is none in time.
        """
        request = self.number()
        timer = self._reactor.callLater(ANSWER_SECONDS if self.ready else START_SECONDS, self._late, request)
        self._requests[request] = _Waiting(screen, answered, timer, self._life)
        self._clients[screen].outbox.put(make(request))
        self.flush()

    def refuse(self, request: int) -> None:
        """Answer a request with ``None``; no effect if it has been answered."""
        self._answered(request, None)

    def flush(self) -> None:
        """Send queued data as far as the process reads it; the rest follows automatically."""
        self._stop_batch()
        if not self.ready:
            return
        for client in tuple(self._clients.values()):
            if not self._blocked and (data := client.outbox.take()):
                self._worker.write(data)

    def received(self, reply: ScreenReply) -> None:
        """For the worker."""
        self._life += 1
        if isinstance(reply, ScreensReady):
            self._state = ProcessState.READY if self._state is ProcessState.STARTING else self._state
            self.flush()
        elif isinstance(reply, ScreenAnswer):
            self._answered(reply.request, reply.data)
        else:
            self._refused(reply)

    def blocked(self, blocked: bool) -> None:
        """For the worker: whether sent data waits to be read."""
        self._blocked = blocked
        if not blocked:
            self._life += 1
            self.flush()

    def lost(self, why: str = "") -> None:
        """For the worker: it failed."""
        self._why = self._why or why
        self._give_up(ProcessState.LOST)

    def _refused(self, refusal: ScreenRefusal) -> None:
        if refusal.request in self._requests:
            self.log.warn("a screen model failed: {reason}", reason=shorten(refusal.reason, WORDS_LIMIT))
        self.refuse(refusal.request)

    def _answered(self, request: int, data: bytes | None) -> None:
        if (waiting := self._requests.pop(request, None)) is not None:
            if waiting.timer.active():
                waiting.timer.cancel()
            waiting.answered(data)

    def _late(self, request: int) -> None:
        if self._requests[request].life == self._life:
            self.lost("does not answer")
        else:
            self.refuse(request)

    def _give_up(self, state: ProcessState) -> None:
        if self.gone:
            return
        self._state = state
        self._stop_batch()
        self._worker.kill()
        clients, self._clients = self._clients, {}
        for client in clients.values():
            client.process_gone()
        for request in tuple(self._requests):
            self.refuse(request)

    def ended(self, how: str, words: str) -> None:
        """For the worker: its process ended."""
        if self._state is not ProcessState.FINISHED:
            self.log.warn(
                "the process of the screen models {why}; terminals that are open show their last output instead of "
                "exact redraws: {words}",
                why=self._why or how,
                words=words,
            )
        self._give_up(ProcessState.LOST)

    def _stop_batch(self) -> None:
        batch, self._batch = self._batch, None
        if batch is not None and batch.active():
            batch.cancel()
