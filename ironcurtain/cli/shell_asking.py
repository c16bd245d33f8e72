"""Questions of ``ironcurtain shell`` at the terminal, although its standard streams are pipes or its answers NDJSON."""

from __future__ import annotations

import os
import termios
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure

from ironcurtain.cli.shell_above import session_above
from ironcurtain.errors import ConfigurationError
from ironcurtain.escalation.decision_keys import QUIET_SECONDS
from ironcurtain.home.layout import Home
from ironcurtain.policy.reversal import undo_words
from ironcurtain.shell.inheritance import policies_in
from ironcurtain.shell.messages import Approval, ApprovalRequested
from ironcurtain.text.display import one_line, paragraphs
from ironcurtain.view.diffs import diff_lines

TERMINAL = "/dev/tty"

LINE_LIMIT = 4096
"""Most bytes of an answer."""


def nobody_attends(home: Home, environ: Mapping[str, str]) -> str:
    """
    :returns: why nobody can answer at this process's terminal: an agent has it; empty if somebody may.
    """
    if (entry := session_above(home)) is not None:
        return f"this terminal is that of session {entry.number}, in which an agent works"
    try:
        depth = policies_in(environ).depth
    except ConfigurationError:
        depth = 1
    return "an agent on another machine has started this" if depth else ""


def open_terminal(home: Home, environ: Mapping[str, str]) -> int | None:
    """
    :returns: a descriptor of the terminal at which somebody can be asked: that of this process, if it has one, is in
        its foreground, and no agent has it.
    """
    try:
        descriptor = os.open(TERMINAL, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None
    with suppress(OSError):
        if os.tcgetpgrp(descriptor) == os.getpgrp() and not nobody_attends(home, environ):
            return descriptor
    os.close(descriptor)
    return None


def question(request: ApprovalRequested) -> str:
    """:returns: a question about a step, with all that it would do."""
    step = request.step
    purpose = f": {one_line(step.purpose)}" if step.purpose else ""
    lines = [f"Step {step.number} needs your approval{purpose}"]
    lines += [f"  {line}" for line in paragraphs(step.command).splitlines()]
    if step.diff:
        lines += ["".join(span.text for span in line) for line in diff_lines(step.diff, indent="  ")]
    else:
        lines += [f"  {one_line(name)}: {one_line(str(value))}" for name, value in step.arguments.items()]
    lines.append(f"  {one_line(step.reason)}; {undo_words(step.undo)}")
    if request.scope:
        lines.append(f"  A allows until this ends: {one_line(request.scope)}")
    if request.category:
        lines.append(f"  C allows until this ends: {request.category}")
    keep = (", A keep" if request.scope else "") + (", C category" if request.category else "")
    return "\n".join((*lines, f"a allow{keep}, x skip, d deny, and Enter: "))


def answer(line: str, request: ApprovalRequested) -> Approval | None:
    """
    :param line: what was typed.
    :returns: the decision, on exactly what was shown; ``None`` if it is none.
    """
    word = line.strip()
    keys = {"a": "allow", "y": "allow", "yes": "allow", "x": "skip", "d": "deny", "n": "deny", "no": "deny"}
    kept = {"A": "allow_session" if request.scope else None, "C": "allow_category" if request.category else None}
    decision = kept[word] if word in kept else keys.get(word)
    if decision is None:
        return None
    digest = request.digest if decision != "skip" else None
    return Approval(plan_id=request.plan_id, step=request.step.number, decision=decision, digest=digest)  # type: ignore[arg-type]


class TerminalQuestions:
    """
    Asks one question after the other. What was typed before a question, or within a second after it, answers nothing.

    :param descriptor: of the terminal, which this closes.
    :param decide: gets the decisions.
    """

    def __init__(self, reactor: Any, descriptor: int, decide: Callable[[Approval], None]) -> None:
        self._reactor, self._clock, self._descriptor = reactor, reactor, descriptor
        self._decide = decide
        self._asked: ApprovalRequested | None = None
        self._since = 0.0
        self._line = bytearray()

    def ask(self, request: ApprovalRequested) -> None:
        """Ask about a step."""
        if self._asked is None:
            self._reactor.addReader(self)
        self._asked, self._since = request, self._now()
        self._show(question(request))

    def withdraw(self) -> None:
        """The step was decided, here or elsewhere."""
        if self._asked is not None:
            self._asked = None
            self._reactor.removeReader(self)

    def close(self) -> None:
        """Ask nothing more."""
        self.withdraw()
        os.close(self._descriptor)

    def fileno(self) -> int:
        """For the reactor."""
        return self._descriptor

    def logPrefix(self) -> str:
        """For the reactor."""
        return "terminal"

    def doRead(self) -> Failure | None:
        """For the reactor: something was typed."""
        try:
            read = os.read(self._descriptor, LINE_LIMIT)
        except OSError:
            read = b""
        self.typed(read)
        return None

    def connectionLost(self, reason: Failure) -> None:
        """For the reactor."""
        self._asked = None

    def typed(self, read: bytes) -> None:
        """:param read: from the terminal; empty: its end."""
        if (request := self._asked) is None:
            return
        self._line += read
        if read and not self._line.endswith(b"\n"):
            return
        line, self._line = self._line.decode("utf-8", "replace"), bytearray()
        decided = answer(line, request) if read else answer("d", request)
        early = read and self._now() - self._since < QUIET_SECONDS
        if decided is None or early:
            self._show("too early: read it, and answer again: " if early else "a, x or d: ")
            return
        self.withdraw()
        self._decide(decided)

    def _now(self) -> float:
        clock: IReactorTime = self._clock
        return clock.seconds()

    def _show(self, text: str) -> None:
        with suppress(termios.error):
            termios.tcflush(self._descriptor, termios.TCIFLUSH)
        data = text.encode("utf-8", "replace")
        with suppress(OSError):
            while data:
                data = data[os.write(self._descriptor, data) :]
