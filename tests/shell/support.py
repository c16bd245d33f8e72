"""What tests of the shell's agent share: a shell that answers at once, and a policy of a few words."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.audit.log import AuditLog
from ironcurtain.audit.syncing import InThread
from ironcurtain.command_rules import Risk
from ironcurtain.escalation.queue import EscalationQueue, closing_numbers
from ironcurtain.mcp_proxy.admission import CallAdmission
from ironcurtain.mcp_proxy.catalogue import ToolDefinition
from ironcurtain.policy.verdict import Decision, Reversal, Verdict
from ironcurtain.secrets.redaction import Redactor
from ironcurtain.shell.commands import CommandHand
from ironcurtain.shell.execution import ENTER, CommandResult, CommandRunner
from ironcurtain.shell.messages import Message, ProposedStep
from ironcurtain.shell.model import ConfirmMode, PlanParts
from ironcurtain.shell.plan_snapshots import PlanSnapshots
from ironcurtain.shell.step_policy import StepPolicy
from ironcurtain.shell.tools import Hands, JudgedStep
from ironcurtain.terminal.sequences import PASTE_BEGIN, PASTE_END
from tests.audit.doubles import at_once, scratch

SCHEMA = {"type": "object", "properties": {"command": {"type": "string", "enum": []}}}


class PromptShell:
    """
    A shell at its prompt: it runs what is pasted, in the clock's next turn unless a command is in :attr:`slow`.

    :ivar statuses: of commands that do not end with 0.
    :ivar deaf: whether it begins nothing.
    :ivar pasting: whether it takes pastes as such.
    :ivar line: gives what is typed of a command.
    :ivar end_line: gives what is typed after an interrupt.
    :ivar in_foreground: whether it has the terminal, and not a command of it.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.statuses: dict[str, int] = {}
        self.slow: set[str] = set()
        self.ran: list[str] = []
        self.deaf = self.in_foreground = False
        self.pty, self.pasting = self, True
        self.line: Callable[[str], str | None] = lambda command: command
        self.end_line: Callable[[], str | None] = lambda: None
        self.signals: list[signal.Signals] = []
        self.written = b""
        self.runner: CommandRunner

    def write(self, data: bytes) -> None:
        self.written += data
        if data.endswith(ENTER) and data.startswith(PASTE_BEGIN) and not self.deaf:
            self.clock.callLater(0, self._run, data.removeprefix(PASTE_BEGIN).partition(PASTE_END)[0].decode())
        elif data == b"\x03" and self.runner.running and not self.deaf:
            self.finish(130)

    def _run(self, command: str) -> None:
        self.ran.append(command)
        self.runner.command_began()
        self.runner.output(f"output of {command}\r\n".encode())
        if command not in self.slow:
            self.finish(self.statuses.get(command, 0))

    def finish(self, status: int) -> None:
        """The command that runs ends."""
        self.runner.command_ended(status)
        self.prompt()

    def prompt(self) -> None:
        """It shows its prompt."""
        self.runner.prompt_began()
        self.runner.prompt_ended()

    def signal_foreground(self, number: signal.Signals) -> None:
        self.signals.append(number)


@dataclass
class WordHand(CommandHand):
    """Denies what begins with ``deny``, allows what begins with ``allow``, and asks about everything else."""

    rewritten: dict[str, str] = field(default_factory=dict)
    finished_steps: list[int] = field(default_factory=list)

    def preview(self, step: ProposedStep, directory: str) -> JudgedStep:
        command = step.command
        word = command.split()[0] if command.split() else ""
        decision = {"deny": Decision.DENY, "allow": Decision.ALLOW}.get(word, Decision.ESCALATE)
        arguments = {"command": command, "directory": directory}
        verdict = Verdict(decision, f"{decision}-rule", "because", arguments, reversal=Reversal.SNAPSHOT)
        return JudgedStep(step, verdict, Risk.READ)

    async def judge(self, step: ProposedStep, directory: str) -> JudgedStep:
        command = self.rewritten.get(step.command, step.command)
        return self.preview(msgspec.structs.replace(step, command=command), directory)

    async def finished(self, step: ProposedStep, directory: str, result: CommandResult) -> bool:
        self.finished_steps.append(step.number)
        return True

    def tool(self, judged: JudgedStep) -> ToolDefinition | None:
        return ToolDefinition("shell", "run", "shell.run", {"inputSchema": SCHEMA}, "digest")


class CountedSnapshots(PlanSnapshots):
    """
    Snapshots of which only the numbers are known.

    :ivar ready: whether there is one once a plan is prepared.
    """

    def __init__(self) -> None:
        self.possible = self.ready = True
        self.prepared = self.finished = 0

    async def prepare(self) -> bool:
        self.prepared += 1
        return self.ready

    async def end(self) -> None:
        self.finished += 1


class ShellTestCase(SynchronousTestCase):
    """With all parts of plans, real but for the shell and the policy."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.shell = PromptShell(self.clock)
        self.told: list[Message] = []
        self.directory = "/work"
        self.audit_path = scratch(self) / "audit.jsonl"
        numbers = itertools.count(1)
        self.disk: InThread = at_once
        audit = AuditLog(
            self.audit_path,
            "session-1",
            Redactor(),
            self.clock,
            self.clock.seconds,
            lambda function: self.disk(function),
        )
        self.addCleanup(lambda: self.successResultOf(Deferred.fromCoroutine(audit.close())))
        self.attended = True
        escalation_numbers = itertools.count(1)
        self.escalations = EscalationQueue(
            next_number=lambda: succeed(next(escalation_numbers)),
            new_id=lambda: "id",
            clock=self.clock,
            now=self.clock.seconds,
            next_closing=closing_numbers(0.0),
            timeout=300.0,
            attended=lambda: self.attended,
        )
        self.admission = CallAdmission(
            session_id="session-1",
            audit=audit,
            escalations=self.escalations,
            clock=self.clock,
            new_id=lambda: f"call-{next(numbers)}",
            policy_version=lambda: "1",
            events=lambda event: None,
            soon=lambda function: function(),
        )
        self.undo = CountedSnapshots()
        self.runner = self.shell.runner = CommandRunner(self.shell, self.clock, 10_000, self.told.append)
        self.shell.prompt()
        unused: Any = None  # words decide
        policy = StepPolicy(unused, unused, self.admission, lambda: "", self.told.append, "/home/ada")
        self.commands = WordHand(policy, self.runner)
        self.parts = PlanParts(
            hands=Hands([self.commands]),
            escalations=self.escalations,
            clock=self.clock,
            confirm=ConfirmMode.PLAN,
            by="local:ada",
            directory=lambda: self.directory,
            resumed=lambda: succeed(None),
            text=lambda data: data.decode().replace("\r", "").removesuffix("\n"),
            tell=self.told.append,
            undo=self.undo,
            command_seconds=300.0,
            plan_seconds=1800.0,
        )

    def last(self, kind: type[Message]) -> Message:
        """:returns: the last message of a kind."""
        return next(message for message in reversed(self.told) if isinstance(message, kind))

    def turn(self) -> None:
        """Let everything happen that is due."""
        while any(call.getTime() <= self.clock.seconds() for call in self.clock.getDelayedCalls()):
            self.clock.advance(0)


def steps(*commands: str) -> list[ProposedStep]:
    """:returns: them as the steps of a plan."""
    return [ProposedStep(number=number, command=command) for number, command in enumerate(commands, 1)]
