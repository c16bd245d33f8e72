"""The client of a process of terminal emulators: starts it, never blocks on it, and does without it when it fails."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from enum import Enum
from typing import Protocol

import msgspec
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger

from ironcurtain.process.frames import packed
from ironcurtain.process.worker import WORDS_LIMIT, Worker, WorkerReactor
from ironcurtain.terminal.emulator_wire import (
    BATCH_SIZE,
    Answer,
    CloseEmulator,
    EmulatorFailed,
    EmulatorOutbox,
    EmulatorReply,
    Ready,
    Refusal,
    ScanReport,
    ScreenRequest,
    reply_reader,
)
from ironcurtain.text.display import shorten

COMMAND = (sys.executable, "-I", "-m", "ironcurtain.terminal.emulator_worker")

ANSWER_SECONDS = 1.0
"""Time limit in seconds for an answer, after which the last output is used (usual: some 20 ms)."""

START_SECONDS = 10.0
"""The same while the process starts (usual: half a second)."""

BATCH_SECONDS = 0.1
"""Maximum delay in seconds of output smaller than a batch, unless there is a request."""


class Purpose(Enum):
    """What a process is for: its niceness (nice(2)), and what is lost with it, in words."""

    SCREENS = (5, "terminals that are open show their last output instead of exact redraws")
    """Only viewers that attach wait for it, not those that are attached."""

    SCAN = (10, "it is unknown what the output of this iteration said")
    """Nobody waits for it before the end of an iteration."""


class EmulatorClient(Protocol):
    """The owner of one emulator."""

    outbox: EmulatorOutbox

    def reported(self, report: ScanReport) -> None:
        """A scan found something, or has read something."""

    def process_gone(self, why: str) -> None:
        """The emulator or its process failed. Pending requests are answered right after this."""


class _Waiting(msgspec.Struct, frozen=True):
    emulator: int
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


class EmulatorProcess:
    """
    One process for any number of emulators; it ends with the last one.

    :raises OSError: it cannot be started.
    """

    log = Logger()

    def __init__(self, reactor: WorkerReactor, purpose: Purpose, command: tuple[str, ...] = COMMAND) -> None:
        self._reactor, self._purpose = reactor, purpose
        self._clients: dict[int, EmulatorClient] = {}
        self._requests: dict[int, _Waiting] = {}
        self._numbers = itertools.count(1)
        self._batch: IDelayedCall | None = None
        self._life = 0
        self._blocked, self._why = False, ""
        self._state = ProcessState.STARTING
        niceness, _ = purpose.value
        self._worker = Worker(reactor, (*command, str(niceness)), reply_reader(), self)

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
        """:returns: a unique number for an emulator or a request."""
        return next(self._numbers)

    def add(self, emulator: int, client: EmulatorClient) -> None:
        """Add an emulator; the order to open it is in its outbox."""
        if self.gone:
            client.process_gone(self._why or "ended")
            return
        self._clients[emulator] = client
        self.flush()

    def remove(self, emulator: int) -> None:
        """Remove an emulator. Its pending requests are never answered."""
        known = self._forget(emulator)
        if not self._clients:
            self._finish()
        elif known:
            self._worker.write(packed(CloseEmulator(emulator)))

    def fed(self, client: EmulatorClient) -> None:
        """There is more in an emulator's outbox."""
        if client.outbox.waiting >= BATCH_SIZE:
            self.flush()
        elif self._batch is None and self.ready and not self._blocked:
            self._batch = self._reactor.callLater(BATCH_SECONDS, self.flush)

    def ask(
        self, emulator: int, make: Callable[[int], ScreenRequest], answered: Callable[[bytes | None], None]
    ) -> None:
        """
        :param make: creates the order from its number.
        :param answered: called with the answer, or with ``None`` if there is none in time.
        """
        request = self.number()
        timer = self._reactor.callLater(ANSWER_SECONDS if self.ready else START_SECONDS, self._late, request)
        self._requests[request] = _Waiting(emulator, answered, timer, self._life)
        self._clients[emulator].outbox.put(make(request))
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

    def received(self, reply: EmulatorReply) -> None:
        """For the worker."""
        self._life += 1
        match reply:
            case Ready():
                self._state = ProcessState.READY if self._state is ProcessState.STARTING else self._state
                self.flush()
            case Answer():
                self._answered(reply.request, reply.data)
            case Refusal():
                self._refused(reply)
            case EmulatorFailed():
                self._failed(reply)
            case _ if (client := self._clients.get(reply.number)) is not None:
                client.reported(reply)

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

    def ended(self, how: str, words: str) -> None:
        """For the worker: its process ended."""
        if self._state is not ProcessState.FINISHED:
            _, loss = self._purpose.value
            self.log.warn(
                "the process of the terminal emulators {why}; {loss}: {words}",
                why=self._why or how,
                loss=loss,
                words=words,
            )
        self._give_up(ProcessState.LOST)

    def _warn(self, reason: str) -> None:
        self.log.warn("a terminal emulator failed: {reason}", reason=shorten(reason, WORDS_LIMIT))

    def _refused(self, refusal: Refusal) -> None:
        if refusal.request in self._requests:
            self._warn(refusal.reason)
        self.refuse(refusal.request)

    def _failed(self, failed: EmulatorFailed) -> None:
        if failed.number not in self._clients:
            return
        self._warn(failed.reason)
        self._forget(failed.number, f"failed ({shorten(failed.reason, WORDS_LIMIT)})")
        if not self._clients:
            self._finish()

    def _forget(self, emulator: int, why: str = "") -> bool:
        """
        :param why: why it failed, for its client; empty: the client itself wants this.
        :returns: whether it was known.
        """
        client = self._clients.pop(emulator, None)
        if client is not None and why:
            client.process_gone(why)
        for request in [number for number, waiting in self._requests.items() if waiting.emulator == emulator]:
            self.refuse(request)
        return client is not None

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

    def _finish(self) -> None:
        if not self.gone:
            self._give_up(ProcessState.FINISHED)
            self._worker.forget()

    def _give_up(self, state: ProcessState) -> None:
        if self.gone:
            return
        self._state = state
        self._stop_batch()
        self._worker.kill()
        for emulator in tuple(self._clients):
            self._forget(emulator, self._why or "ended")

    def _stop_batch(self) -> None:
        batch, self._batch = self._batch, None
        if batch is not None and batch.active():
            batch.cancel()
