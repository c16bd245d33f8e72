"""``ironcurtain shell`` without a terminal: NDJSON on standard input and output, or one instruction as text."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Any

import click
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.protocol import connectionDone
from twisted.internet.stdio import StandardIO
from twisted.protocols.basic import LineOnlyReceiver
from twisted.python.failure import Failure

from ironcurtain.assembly import Application
from ironcurtain.cli.output import print_lines
from ironcurtain.cli.piped import read_piped, with_data
from ironcurtain.cli.run import run
from ironcurtain.errors import IronCurtainError, SessionError, StaleDecision, UsageError
from ironcurtain.files.locks import is_held
from ironcurtain.home.layout import Home
from ironcurtain.policy.reversal import undo_words
from ironcurtain.services.lifecycle import to_its_end
from ironcurtain.session.model import SessionRequest
from ironcurtain.session.session import Session
from ironcurtain.shell.agent import ShellAgent
from ironcurtain.shell.kind import NAME
from ironcurtain.shell.messages import (
    Action,
    Approval,
    ApprovalRequested,
    Instruct,
    InstructionDone,
    Message,
    ModelText,
    Notice,
    PlanProposed,
    StepCompleted,
    StepDecided,
    StepOutput,
    StepStarted,
)
from ironcurtain.shell.protocol import LINE_LIMIT, decode_action, encode, instruction_lines
from ironcurtain.text.decoding import decode_text
from ironcurtain.text.display import one_line, paragraphs


def instructions_of(path: Path) -> list[str]:
    """
    :returns: the instructions in a file: lines that begin with ``#``, those that follow each other as one.
    :raises UsageError: it cannot be read, or has none.
    :raises ConfigurationError: it is not UTF-8 text.
    """
    try:
        text = decode_text(str(path), path.read_bytes())
    except OSError as e:
        raise UsageError(f"{path} cannot be read: {e.strerror}") from None
    if not (found := instruction_lines(text)):
        raise UsageError(f"{path} has no instructions: write them as lines that begin with #")
    return found


class PipeFrontEnd:
    """
    :param instructions: what to work on, one after the other; ``None``: what comes on standard input.
    :param as_json: whether to print NDJSON; else text for people.
    """

    def __init__(
        self,
        home: Home,
        options: Mapping[str, Any],
        config_file: Path | None,
        instructions: Sequence[str] | None,
        as_json: bool,
        trace: bool,
    ) -> None:
        self._home, self._options, self._config_file = home, options, config_file
        self._instructions, self._as_json, self._trace = instructions, as_json, trace
        self._agent: ShellAgent | None = None
        self._input: _Lines | None = None
        self._failed = self._unread = False
        self._serving: Deferred[None] | None = None
        self._pending: ApprovalRequested | PlanProposed | None = None

    def run(self) -> int:
        """:returns: 0: all was done; 1: something failed or was denied; 141: nobody reads what is said any more."""
        return run(self._main)

    async def _main(self, reactor: Any) -> int:
        instructions = self._with_data()
        application = Application.alone(reactor, self._home, os.environ, self._config_file)
        await application.start()
        try:
            request = SessionRequest(NAME, "", None, self._options)
            session = await application.manager.create(request, self._attended)
            agent = session.agent
            assert isinstance(agent, ShellAgent)  # that is what this kind makes
            self._agent = agent
            agent.watch(self._show)
            if self._trace:
                click.echo(f"trace {agent.trace_id}", err=True)
            self._serving = Deferred.fromCoroutine(self._serve(session, instructions))
            await self._serving
        except CancelledError:
            if not self._unread:
                raise
        finally:
            await to_its_end(application.stop("the command ends"))
        return 128 + signal.SIGPIPE if self._unread else int(self._failed)

    def _with_data(self) -> Sequence[str] | None:
        if self._instructions is None or os.isatty(0):
            return self._instructions
        data = read_piped(0) or b""
        return [with_data(text, data, token_hex(8)) for text in self._instructions] if data else self._instructions

    def _attended(self) -> bool:
        """Whether somebody may answer: the program at the other end, or a person at a console."""
        if self._input is not None and not self._input.ended:
            return True
        return sys.stdin.isatty() or sys.stderr.isatty() or is_held(self._home.listener_lock)

    async def _serve(self, session: Session, instructions: Sequence[str] | None) -> None:
        for each in instructions or ():
            if not self._unread:
                await self._work(session, each)
        if instructions is None:
            self._input = lines = _Lines(self._acted)
            with open(os.devnull, "wb") as unused:  # it would make standard output non-blocking
                StandardIO(lines, stdout=unused.fileno())  # type: ignore[call-arg]  # typed as on Windows
                while not self._unread and (instruction := await lines.next()) is not None:
                    await self._work(session, instruction)

    async def _work(self, session: Session, instruction: str) -> None:
        try:
            await session.send(instruction)
        except SessionError:  # told as the message "done"
            self._failed = True

    def _acted(self, action: Action | None) -> None:
        """What the program at the other end says; ``None``: nothing more."""
        if action is None:
            self._decide_pending()
        elif self._agent is not None:
            try:
                self._agent.act(action)
            except IronCurtainError as e:
                self._print(Notice(text=f"{e.code}: {e}"))

    def _decide_pending(self) -> None:
        """Nobody at the other end decides any more: a person at a console may still decide on steps, not on plans."""
        pending, self._pending = self._pending, None
        if pending is None or self._agent is None:
            return
        with suppress(UsageError, StaleDecision):  # it was decided in time
            if not self._attended():
                step = pending.step.number if isinstance(pending, ApprovalRequested) else None
                self._agent.act(Approval(plan_id=pending.plan_id, step=step, decision="deny"))
            elif isinstance(pending, PlanProposed):
                self._agent.act(Approval(plan_id=pending.plan_id, decision="step"))

    def _show(self, message: Message) -> None:
        match message:
            case ApprovalRequested() | PlanProposed(confirm=True):
                self._pending = message
            case StepDecided() | StepStarted() | InstructionDone():
                self._pending = None
        self._print(message)
        if self._pending is message and (self._input is None or self._input.ended):
            assert self._agent is not None
            self._agent.later(self._decide_pending)

    def _print(self, message: Message) -> None:
        try:
            if self._as_json:
                sys.stdout.buffer.write(encode(message))
                sys.stdout.buffer.flush()
            else:
                _print_text(message)
        except BrokenPipeError:
            self._end()

    def _end(self) -> None:
        """Nobody reads what is said any more."""
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 1)
        if self._agent is not None and self._serving is not None and not self._unread:
            self._unread = True
            self._agent.later(self._serving.cancel)


def _print_text(message: Message) -> None:
    match message:
        case ModelText(text=text):
            click.echo(paragraphs(text), nl=False)
        case PlanProposed(steps=steps):
            click.echo("\n" + "\n".join(f"  {step.number}. {one_line(step.command)}" for step in steps))
        case ApprovalRequested(number=number, step=step):
            how = f"ironcurtain approve {number}, or ironcurtain deny {number}"
            click.echo(f"Step {step.number} waits, {undo_words(step.undo)}: {how}", err=True)
        case StepStarted(command=command):
            click.echo(f"$ {one_line(command)}")
        case StepOutput(text=text):
            click.echo(paragraphs(text), nl=False)
        case StepCompleted(outcome=outcome, exit_code=code, reason=reason):
            status = f" (exit status {code})" if code else ""
            click.echo(f"[{outcome}{status}{f': {one_line(reason)}' if reason else ''}]", err=True)
        case Notice(text=text):
            click.echo(one_line(text), err=True)
        case InstructionDone(error=error):
            print_lines(f"ironcurtain: {one_line(error)}" if error else "", err=bool(error))


class _Lines(LineOnlyReceiver):
    """Standard input: instructions as lines that begin with ``#``, and actions as JSON."""

    delimiter = b"\n"
    MAX_LENGTH = LINE_LIMIT

    def __init__(self, acted: Any) -> None:
        self._acted = acted
        self._instructions: list[str] = []
        self._waiting: Deferred[str | None] | None = None
        self.ended = False

    def lineReceived(self, line: bytes) -> None:
        try:
            action = decode_action(line)
        except UsageError as e:
            click.echo(f"ironcurtain: {e}", err=True)
            return
        if isinstance(action, Instruct):
            self._instructions.append(action.text)
            self._give()
        elif action is not None:
            self._acted(action)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self.ended = True
        self._acted(None)
        self._give()

    def next(self) -> Deferred[str | None]:
        """:returns: fires with the next instruction; ``None``: there are no more."""
        self._waiting = Deferred()
        waiting = self._waiting
        self._give()
        return waiting

    def _give(self) -> None:
        if self._waiting is not None and (self._instructions or self.ended):
            waiting, self._waiting = self._waiting, None
            waiting.callback(self._instructions.pop(0) if self._instructions else None)
