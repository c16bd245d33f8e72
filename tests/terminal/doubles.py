"""What the tests of terminals share: a program's end and a person's end that remember."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from twisted.internet.error import ConnectionDone, ProcessTerminated
from twisted.internet.protocol import ProcessProtocol, ServerFactory
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure

from ironcurtain.process.frames import packed
from ironcurtain.terminal.attachment import Attachment
from ironcurtain.terminal.emulator_wire import (
    Answer,
    CloseEmulator,
    EmulatorOrder,
    EmulatorReply,
    FeedOutput,
    OpenScreen,
    Ready,
    ScreenRequest,
    order_reader,
)
from ironcurtain.terminal.hub import Hub
from ironcurtain.terminal.model import Mode
from ironcurtain.terminal.screen import RingScreen


class Program:
    """A stream that notes what it is told."""

    def __init__(self) -> None:
        self.typed = b""
        self.sizes: list[tuple[int, int]] = []
        self.paused = self.closed = False

    def write(self, data: bytes) -> None:
        self.typed += data

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False

    def resize(self, columns: int, rows: int) -> None:
        self.sizes.append((columns, rows))

    def close(self) -> None:
        self.closed = True


class Eye:
    """A viewer that takes all, until it is told to stall."""

    def __init__(self) -> None:
        self.seen = b""
        self.stalled = self.held = False
        self.end: tuple[str, int | None] | None = None

    def draw(self, data: bytes) -> bool:
        self.seen += data
        return not self.stalled

    def hold(self, full: bool) -> None:
        self.held = full

    def ended(self, reason: str, status: int | None) -> None:
        assert self.end is None
        self.end = reason, status

    def new(self) -> bytes:
        """:returns: what was drawn since this was last called."""
        seen, self.seen = self.seen, b""
        return seen


class Screen(RingScreen):
    """A screen model whose redraws are easy to find, and come at once unless they are held back."""

    def __init__(self) -> None:
        super().__init__()
        self.slow = False
        self.answers: list[Callable[[], None]] = []
        self.closed = 0

    def redraw(self, columns: int, rows: int, history: bool, draw: Callable[[bytes], None]) -> None:
        data = b"<%d %d %d:%b>" % (columns, rows, history, self.kept())
        if self.slow:
            self.answers.append(lambda: draw(data))
        else:
            draw(data)

    def answer(self) -> None:
        """Let the redraws come that were held back."""
        answers, self.answers = self.answers, []
        for answer in answers:
            answer()

    def close(self) -> None:
        self.closed += 1
        self.answer()


class Stage:
    """A hub with all that it needs."""

    def __init__(self, queue_limit: int = 100) -> None:
        self.clock, self.program, self.screen = Clock(), Program(), Screen()
        self.hub = Hub(self.program, self.clock, self.screen, (80, 24), queue_limit=queue_limit)

    def attach(self, mode: Mode = Mode.DRIVE, columns: int = 80, rows: int = 24) -> tuple[Eye, Attachment]:
        """:returns: a viewer that has forgotten its first redraw, and its attachment."""
        eye = Eye()
        attachment = self.hub.attach(eye, mode, columns, rows)
        eye.new()
        return eye, attachment


class Worker:
    """A process of screen models that the test plays: a screen is all that was fed to it, and says so when asked."""

    def __init__(self, output: ProcessProtocol, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.output, self.command, self.environment = output, command, environment
        self.stream: Any = None
        self.transport = StringTransport()
        self.pid = 1
        self.signals: list[str] = []
        self.screens: dict[int, bytes] = {}
        self.orders: list[EmulatorOrder] = []
        self._reader = order_reader()

    def start(self) -> None:
        """Be ready."""
        self.say(Ready())

    def say(self, *replies: EmulatorReply) -> None:
        """Answer, if anybody listens."""
        if not self.transport.disconnecting:
            self.stream.dataReceived(b"".join(map(packed, replies)))

    def read(self) -> list[EmulatorOrder]:
        """:returns: what has come since this was last called."""
        data = self.transport.value()
        self.transport.clear()
        orders = list(self._reader.feed(data))
        self.orders += orders
        return orders

    def work(self) -> None:
        """Carry out all that has come."""
        for order in self.read():
            if isinstance(order, FeedOutput):
                self.screens[order.number] += order.data
            elif isinstance(order, OpenScreen):
                self.screens[order.number] = b""
            elif isinstance(order, CloseEmulator):
                del self.screens[order.number]
            elif isinstance(order, ScreenRequest):
                self.say(Answer(order.request, b"<%b>" % self.screens[order.number]))

    def block(self, blocked: bool) -> None:
        """Read no more, or again."""
        producer: Any = self.transport.producer
        if producer is not None:
            (producer.pauseProducing if blocked else producer.resumeProducing)()

    def signalProcess(self, name: str) -> None:
        self.signals.append(name)

    def loseConnection(self) -> None:
        """For whoever started it: nobody reads its output any more."""

    def die(self, *, number: int | None = None, status: int | None = None, said: bytes = b"") -> None:
        """End, as the reactor tells it."""
        self.output.childDataReceived(2, said)
        self.stream.connectionLost(Failure(ConnectionDone()))
        self.output.processEnded(Failure(ProcessTerminated(status, number)))


class WorkerReactor(Clock):
    """Starts workers that the test plays."""

    def __init__(self) -> None:
        super().__init__()
        self.workers: list[Worker] = []

    @property
    def worker(self) -> Worker:
        """The last one."""
        return self.workers[-1]

    def spawnProcess(
        self, output: ProcessProtocol, program: str, command: Sequence[str], environment: Mapping[str, str], **_: object
    ) -> Worker:
        self.workers.append(Worker(output, command, environment))
        return self.worker

    def adoptStreamConnection(self, descriptor: int, family: int, factory: ServerFactory) -> None:
        self.worker.stream = factory.buildProtocol(None)
        self.worker.stream.makeConnection(self.worker.transport)
