"""Agents that the agent of a shell starts: how they are started, here or by ssh, and what they say."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from ironcurtain.errors import ConfigurationError, UsageError
from ironcurtain.shell.approval import read_approval
from ironcurtain.shell.inheritance import VARIABLE, AgentPolicies, as_variable
from ironcurtain.shell.messages import (
    InstructionDone,
    Message,
    ProposedStep,
    StepCompleted,
    StepDecided,
    StepOutcome,
    StepStarted,
)
from ironcurtain.shell.protocol import InputLines
from ironcurtain.text.quantities import counted
from ironcurtain.traces.context import TraceContext

REMOTE: Final = ("UA_TRACE_ID", "UA_SPAN_ID", "UA_TRACE_DEPTH")
"""The variables of the trace that an agent on another machine gets. Where spans go is that machine's choice."""

SSH_OPTIONS: Final = tuple(
    word for option in ("BatchMode=yes", "ServerAliveInterval=15", "ServerAliveCountMax=4") for word in ("-o", option)
)
"""Of ssh: it asks nothing, and ends a minute after the network has hung."""

STEPS_KEPT: Final = 200
"""Most steps of an agent below that are listed for the model above; of more, the number."""

STEP_LIMIT: Final = 2000
"""Most characters that are kept of each."""

_SSH_FAILED, _NOT_FOUND = 255, 127
"""Statuses of ssh(1) and sh(1)."""

_HOST: Final = re.compile(r"(?:[A-Za-z0-9._-]+@)?[A-Za-z0-9](?:[A-Za-z0-9._:-]*[A-Za-z0-9])?")


class Only(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """
    What an agent may do at most, besides what those above it may do.

    :param commands: patterns of commands, as ``allow_patterns`` has them.
    :param read: globs of files, as ``write``.
    :param hosts: names of hosts.
    """

    commands: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()

    def tables(self) -> dict[str, Any]:
        """:returns: ``[approval]`` that denies everything else."""
        return {
            "default": "deny",
            "shell": {"mode": "deny", "allow_patterns": list(self.commands)},
            "filesystem": {"mode": "deny", "read": list(self.read), "write": list(self.write)},
            "network": {"mode": "deny", "allow_hosts": list(self.hosts)},
        }


def read_only(given: Any, home: str) -> Only | None:
    """
    :param given: as the model wrote it; ``None``: it wants no narrower limits.
    :returns: the limits.
    :raises UsageError: they are none.
    """
    if given is None:
        return None
    try:
        only = msgspec.convert(given, Only)
        read_approval(only.tables(), "only", home)
    except (msgspec.ValidationError, ConfigurationError) as e:
        raise UsageError(f"the argument only cannot be used: {e}") from None
    return only


def checked_host(host: str) -> str:
    """
    :returns: a host as ``ssh`` takes it, or the empty text.
    :raises UsageError: it may be something else.
    """
    if host and not _HOST.fullmatch(host):
        raise UsageError("the argument host is no name of a host, or USER@HOST")
    return host


def command_line(task: str, host: str) -> str:
    """:returns: the command that does the same, by which it is shown and judged."""
    command = f"ironcurtain shell -c {shlex.quote(task)}"
    return f"ssh {host} {shlex.quote(command)}" if host else command


class ChildStart(msgspec.Struct, frozen=True):
    """
    How a child is started.

    :param stdin: what it reads first: its instruction.
    """

    argv: tuple[str, ...]
    environ: dict[str, str]
    stdin: bytes


def child_start(
    task: str,
    host: str,
    policies: AgentPolicies,
    trace: TraceContext,
    options: Sequence[str],
    environ: Mapping[str, str],
) -> ChildStart:
    """
    :param policies: of the agents above the child, of which this is one, with the limits that it sets.
    :param trace: of this agent.
    :param options: of ``ironcurtain shell``, for a child on this machine.
    :param environ: ours.
    """
    instruction = msgspec.json.encode({"type": "instruction", "text": task}) + b"\n"
    policy = as_variable(policies)
    spans = trace.environment() if trace.sink is not None else {}
    if not host:
        given = {**environ, **spans, VARIABLE: policy}
        program = (sys.executable, "-I", "-m", "ironcurtain.cli", "shell", "--json", *options)
        return ChildStart(program, given, instruction)
    named = {name: value for name, value in spans.items() if name in REMOTE}
    values = {VARIABLE: policy, **named}
    # The values come as lines of input: on the command line, everybody on that machine could read them, and as
    # variables most servers would drop them, and with them what binds the child.
    reads = "".join(f"IFS= read -r {name} && export {name} && " for name in values)
    script = f"{reads}exec ironcurtain shell --json"
    lines = "".join(f"{value}\n" for value in values.values()).encode()
    argv = ("ssh", "-T", *SSH_OPTIONS, "--", host, f"exec sh -c {shlex.quote(script)}")
    return ChildStart(argv, dict(environ), lines + instruction)


def why_no_answer(status: int | None, host: str) -> str:
    """
    :param status: of the process that ended without an answer.
    :param host: where the child was to be; empty: here.
    :returns: why there is none, and what to do.
    """
    if host and status == _SSH_FAILED:
        return f"ssh did not reach {host}, or lost it: see whether 'ssh -o BatchMode=yes {host} true' works"
    if host and status == _NOT_FOUND:
        return f"there is no command ironcurtain for ssh on {host}: install it there, on the PATH of such commands"
    return f"it ended without an answer, with status {status}"


def asked_arguments(asked: ProposedStep, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """
    :param asked: the step that an agent below asks about, in its own words.
    :param arguments: with which it was started.
    :returns: what is shown and recorded of the question: the agent is not believed where it is, and what it does there.
    """
    own = {"command": asked.command, "host": arguments["host"], "task": arguments["task"]}
    return {**asked.arguments, **own}


class ChildReport:
    """
    What a child says, line by line.

    :ivar done: how it ended; ``None``: it has not, as far as is known.
    """

    def __init__(self) -> None:
        self._lines, self._steps = InputLines(), list[str]()
        self._commands: dict[int, str] = {}
        self._more = 0
        self._decoder = msgspec.json.Decoder(Message)
        self.done: InstructionDone | None = None

    def feed(self, data: bytes) -> Iterator[Message]:
        """
        :param data: of its standard output.
        :returns: the messages in it; what is none, as a greeting of a host, is passed over.
        """
        for line in self._lines.feed(data):
            try:
                message: Message = self._decoder.decode(line or b"")
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                continue
            yield message

    def take(self, message: Message) -> str:
        """
        Note a message.

        :returns: what of it is to be shown. It is data of another agent.
        """
        match message:
            case StepStarted(step=number, command=command):
                if len(self._commands) < STEPS_KEPT:
                    self._commands[number] = command[:STEP_LIMIT]
                return f"$ {command}\n"
            case StepDecided(allowed=False, reason=reason):
                return f"[not allowed: {reason}]\n"
            case StepCompleted(step=number, outcome=outcome, reason=reason):
                why = f": {reason}" if reason else ""
                ended = f"[{outcome}{why}] {self._commands.pop(number, f'step {number}')}"
                if len(self._steps) < STEPS_KEPT:
                    self._steps.append(ended[: 2 * STEP_LIMIT])
                else:
                    self._more += 1
                return "" if outcome is StepOutcome.DONE else f"[{outcome}]\n"
            case InstructionDone():
                self.done = message
                return f"{message.error or message.text}\n"
        return ""

    def text(self, used: str) -> str:
        """
        :param used: what it used, in words.
        :returns: what became of the task, for the model above.
        """
        done = self.done or InstructionDone(error="it ended without an answer")
        answer = f"error: {done.error}\n{done.text}" if done.error else done.text
        more = f"({counted(self._more, 'further step')})" if self._more else ""
        return "\n".join(part for part in (*self._steps, more, answer, used) if part)
