"""A shell whose terminal a test types the output into, with the agent around it."""

from __future__ import annotations

import os
import signal
from base64 import b64encode
from collections.abc import Mapping, Sequence

from msgspec.structs import replace
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from ironcurtain.approver.trusted_input import TrustedInput
from ironcurtain.audit.log import AuditLog
from ironcurtain.escalation import Outcome
from ironcurtain.home.sections import Shell
from ironcurtain.home.settings import Settings
from ironcurtain.llm.registry import Chosen
from ironcurtain.process.accounts import Account
from ironcurtain.secrets.redaction import Redactor
from ironcurtain.session import events
from ironcurtain.session.budget import Accounting, BudgetLimits, BudgetMeter
from ironcurtain.session.history import read_turns
from ironcurtain.session.model import SessionRequest, Turn
from ironcurtain.session.parts import Core
from ironcurtain.session.records import make_snapshots
from ironcurtain.shell.agent import ShellAgent
from ironcurtain.shell.assistant import Assistant, AssistantLimits
from ironcurtain.shell.context import Prompt
from ironcurtain.shell.execution import CommandRunner
from ironcurtain.shell.front_ends import FrontEnds
from ironcurtain.shell.messages import Message, StepCompleted
from ironcurtain.shell.model import ConfirmMode
from ironcurtain.shell.model_requests import ModelRequests
from ironcurtain.shell.relay import Relayed
from ironcurtain.shell.session_budget import SessionBudget
from ironcurtain.shell.starting import ShellStart
from ironcurtain.shell.streams import ShellStreams
from ironcurtain.shell.terminal_mode import Left
from ironcurtain.shell.typed_instructions import JOIN_SECONDS
from ironcurtain.shell.window import ContextWindow
from ironcurtain.shell.wrapped import WrappedShell
from ironcurtain.shell_integration.marks import PRIVATE, MarkReader
from ironcurtain.shell_integration.preparation import Prepared
from ironcurtain.terminal.hub import Hub
from ironcurtain.terminal.model import Mode, ProgramExit
from ironcurtain.terminal.pty import LocalPty, PtyOwner
from ironcurtain.terminal.screen import RingScreen
from ironcurtain.traces.context import TraceContext
from tests.audit.doubles import at_once, scratch
from tests.session.doubles import World
from tests.shell.model import HandModel
from tests.shell.support import ShellTestCase
from tests.terminal.doubles import Eye

NONCE = "5e8f77"
SIZE = (80, 24)


def mark(letter: str) -> bytes:
    """:returns: a mark of the shell's: ``A``, ``B``, ``C`` or ``D;`` and a status."""
    return f"\x1b]133;{letter};aid={NONCE}\x07".encode()


def private(kind: str, text: str) -> bytes:
    """:returns: a mark of our own."""
    return f"\x1b]{PRIVATE};{NONCE};{kind};{b64encode(text.encode()).decode()}\x07".encode()


PASTING = b"\x1b[?2004h"
PROMPT = mark("A") + b"$ " + mark("B")


class HandPty(LocalPty):
    """
    The terminal of a shell that does what the test says.

    :ivar typed: all that it was given.
    :ivar line_editor: whether it waits for keys.
    """

    owner: PtyOwner

    def __init__(self) -> None:
        self.typed = b""
        self.sizes: list[tuple[int, int]] = []
        self.signals: list[signal.Signals] = []
        self.argv: Sequence[str] = ()
        self.pid = 0
        self.done: Deferred[ProgramExit] = Deferred()
        self.paused, self.line_editor = False, True

    def spawn(self, argv: Sequence[str], environ: Mapping[str, str], directory: str, columns: int, rows: int) -> None:
        self.argv, self.pid = argv, os.getpid()

    def adopt(self, pid: int, master: int) -> None:
        self.pid = pid

    @property
    def in_foreground(self) -> bool:
        return True

    @property
    def takes_keys(self) -> bool:
        return self.line_editor

    def write(self, data: bytes) -> None:
        self.typed += data

    def resize(self, columns: int, rows: int) -> None:
        self.sizes.append((columns, rows))

    def signal_foreground(self, number: signal.Signals) -> None:
        self.signals.append(number)

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False

    def stop(self, first: signal.Signals = signal.SIGTERM) -> None:
        self.signals.append(first)
        self.end(128 + first)

    def end(self, status: int) -> None:
        """It ended."""
        ended = ProgramExit(status, f"ended with status {status}")
        self.owner.ended(ended)
        self.done.callback(ended)


class HandShell(WrappedShell):
    """A wrapped shell in such a terminal."""

    pty: HandPty

    def another(self) -> LocalPty:
        return HandPty()


class NotingMode:
    """An agent mode that notes what it is told."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self.noted: list[str] = []
        self.left = Left()
        self.messages: list[Message] = []

    def begin(self) -> None:
        self.noted.append("begin")

    def tell(self, message: Message) -> None:
        self.messages.append(message)

    def output(self, data: bytes) -> None:
        self.noted.append(f"output {data.decode()}")
        self._hub.received(data)

    def typed(self, data: bytes) -> None:
        self.noted.append(f"typed {data.decode()}")

    def resized(self, columns: int, rows: int) -> None:
        self.noted.append(f"resized {columns} {rows}")

    def suspend(self) -> None:
        self.noted.append("suspend")

    def end(self) -> Left:
        self.noted.append("end")
        left, self.left = self.left, Left()
        return left


class AgentTestCase(ShellTestCase):
    """With an agent in a terminal, a shell and a model, both of which the test plays."""

    integrated = True

    def setUp(self) -> None:
        super().setUp()
        self.model = HandModel()
        self.emitted: list[events.SessionEvent] = []
        self.ends: list[str] = []
        self.relayed = Relayed(ShellStreams(MarkReader(NONCE)), (), (), b"", b"")
        self.core = self._core(SIZE)
        self.wrapped = self.wrap(history=True)
        self.pty, self.lines = self.wrapped.pty, self.wrapped.output.lines
        self.front_ends = FrontEnds(self.core, self.wrapped, self.core.services.redactor.text, "7f")
        self.runner = self.commands.runner = CommandRunner(self.wrapped, self.clock, 10_000, self.front_ends.tell)
        self.parts = replace(
            self.parts,
            resumed=self.front_ends.holder.resumed,
            tell=self.front_ends.tell,
            directory=lambda: self.wrapped.directory,
            confirm=ConfirmMode.AUTO,
        )
        self.agent = ShellAgent(self.core, self.wrapped, self.runner, self.front_ends, self._assistant())
        self.front_ends.watch(self.told.append)
        self.addCleanup(self.finish)

    def wrap(self, *, history: bool) -> HandShell:
        """:returns: a shell, whose history has the agent's commands or not."""
        start = ShellStart(Prepared(("/bin/bash",), {}, self.integrated), NONCE, TraceContext("7f", "a1"))
        return HandShell(self.clock, start, "/work", SIZE, Settings(shell=Shell(history=history)))

    def finish(self) -> None:
        """The shell ends, if it has not, and with it all that is under way."""
        if self.pty.pid and not self.pty.done.called:
            self.pty.end(0)

    def _core(self, size: tuple[int, int] | None) -> Core:
        services = World(scratch(self)).services
        services = replace(services, clock=self.clock)
        paths = services.home.session("session-1")
        paths.directory.mkdir(parents=True)
        audit = AuditLog(paths.audit, "session-1", Redactor(), self.clock, self.clock.seconds, at_once)
        self.addCleanup(lambda: self.successResultOf(Deferred.fromCoroutine(audit.close())))
        return Core(
            "session-1",
            SessionRequest("shell", terminal=size),
            paths.sandbox,
            Account(1000, 1000),
            False,
            paths,
            services,
            audit,
            self.escalations,
            make_snapshots(paths, services, audit, self.emitted.append),
            TrustedInput(paths.trusted_input, paths.user_context, str, self.clock.seconds),
            self.emitted.append,
            lambda who, line: None,
            self.ends.append,
        )

    def _assistant(self) -> Assistant:
        async def choose() -> Chosen:
            return Chosen(self.model, "m-1")

        def shown(step: StepCompleted, remark: str) -> str:
            return f"{step.exit_code} {step.output} {remark}".strip()

        accounting = Accounting(
            BudgetMeter(BudgetLimits()), lambda tokens: None, self.emitted.append, self.clock.seconds
        )
        return Assistant(
            ModelRequests(
                choose,
                ContextWindow(len, lambda: 100_000),
                SessionBudget(accounting, True, self.parts.tell),
                1000,
                "",
                self.parts.tell,
            ),
            lambda instruction: Prompt(instruction, "", (), "", "mark"),
            shown,
            AssistantLimits(20, 20),
            self.parts,
        )

    def start(self) -> None:
        """Start it in a terminal that somebody looks at."""

        def noting(agent: ShellAgent, hub: Hub, clock: IReactorTime) -> NotingMode:
            self.hub, self.mode = hub, NotingMode(hub)
            return self.mode

        self.agent.open(lambda columns, rows: RingScreen(), noting, SIZE)
        self.eye = Eye()
        self.successResultOf(Deferred.fromCoroutine(self.agent.start()))
        self.agent.take_over(os.getpid(), -1, self.relayed)
        self.person = self.hub.attach(self.eye, Mode.DRIVE, *SIZE)
        self.eye.new()
        self.agent.take(self.relayed.waiting)

    def shows(self, *output: bytes) -> None:
        """The shell writes something."""
        for each in output:
            self.pty.owner.received(each)
        self.turn()

    def ready(self) -> None:
        """Start it, and let the shell show its first prompt."""
        self.start()
        self.shows(PROMPT)
        self.eye.new()

    def types(self, data: bytes) -> None:
        """The user types something."""
        self.person.typed(data)
        self.turn()

    def instructs(self, text: str) -> None:
        """The user types an instruction; the agent has begun."""
        self.types(f"# {text}\r".encode())
        self.shows(b"# " + text.encode() + b"\r\n", private("instruction", f"# {text}"), PROMPT)
        self.clock.advance(JOIN_SECONDS)
        self.turn()

    def plans(self, *commands: object) -> None:
        """The model proposes a plan."""
        self.model.plan(*commands)
        self.turn()

    def says(self, text: str) -> None:
        """The model ends its answer with words."""
        self.model.say(text)
        self.turn()

    def runs(self, output: bytes, status: int = 0) -> None:
        """The shell runs what was typed."""
        self.shows(b"echo of it\r\n", mark("C"), output, mark(f"D;{status}"), PROMPT)

    def approves(self, number: int) -> None:
        """Somebody at a console approves."""
        self.escalations.decide(number, Outcome.APPROVED, "key:bob")
        self.turn()

    @property
    def turns(self) -> list[Turn]:
        """What is in the session's history."""
        return read_turns(self.core.paths.history)
