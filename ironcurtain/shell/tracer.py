"""Follow what an agent says to its front ends, and write a span for each instruction and one for the session."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable
from typing import NamedTuple

import msgspec
from twisted.logger import Logger

from ironcurtain.errors import Unavailable
from ironcurtain.services.line_sinks import FileSink, LineSink
from ironcurtain.session import events
from ironcurtain.shell.assistant import CANCELLED, REFUSED
from ironcurtain.shell.messages import (
    InstructionAccepted,
    InstructionDone,
    Message,
    StepCompleted,
    StepDecided,
    StepKind,
    StepOutcome,
    StepStarted,
)
from ironcurtain.shell.surroundings import ShellSurroundings
from ironcurtain.traces.context import SPAN_BYTES, TraceContext
from ironcurtain.traces.otlp import Export, from_shell
from ironcurtain.traces.sinks import make_sink
from ironcurtain.traces.span import Span, TracedAction, moment, recent, written

_TYPES = {StepKind.COMMAND: "shell", StepKind.EDIT: "edit", StepKind.TOOL: "mcp", StepKind.AGENT: "agent"}
"""What hooks and traces call the kinds of steps."""


class _Current(msgspec.Struct):
    """What is known of the instruction that is worked on."""

    instruction: str
    began: float
    command: str = ""
    kind: StepKind = StepKind.COMMAND
    actions: list[TracedAction] = msgspec.field(default_factory=list)
    deciders: set[str] = msgspec.field(default_factory=set)
    outcomes: set[StepOutcome] = msgspec.field(default_factory=set)


class _Usage(NamedTuple):
    """
    Tokens.

    :ivar known: whether the model said all that was used.
    """

    tokens_in: int = 0
    tokens_out: int = 0
    known: bool = True

    def said(self) -> tuple[int | None, int | None]:
        """:returns: what the model said."""
        tokens = (self.tokens_in, self.tokens_out)
        return tokens if self.known or any(tokens) else (None, None)


class Tracer:
    """
    :param context: the session's place in its trace.
    :param now: gives seconds since 1970.
    :param new_id: gives random bytes in hexadecimal.
    :param backend: gives the name of the provider that answers.
    :param scrub: takes secrets out of a text.
    :param export: exports a span, too.
    """

    log = Logger()

    def __init__(
        self,
        context: TraceContext,
        sink: LineSink,
        now: Callable[[], float],
        new_id: Callable[[int], str],
        backend: Callable[[], str],
        scrub: Callable[[str], str],
        *,
        anonymize: bool,
        export: Export | None = None,
    ) -> None:
        self._context, self._sink, self._now, self._new_id = context, sink, now, new_id
        self._backend, self._scrub, self._anonymize = backend, scrub, anonymize
        self._export = export
        self._began, self._usage = now(), _Usage()
        self._current: _Current | None = None
        self._model = ""

    def receive(self, message: Message) -> None:
        """Take a message of the agent's."""
        match message, self._current:
            case InstructionAccepted(text=text), _:
                self._current = _Current(text, self._now())
            case StepDecided(allowed=True, by=by), _Current() as current:
                current.deciders.add("policy" if by.startswith("policy") else "human")
            case StepStarted(command=command, kind=kind), _Current() as current:
                current.command, current.kind = command, kind
            case StepCompleted(), _Current() as current:
                current.outcomes.add(message.outcome)
                if current.command:
                    action = TracedAction(
                        type=_TYPES[current.kind],
                        command=current.command,
                        exit=message.exit_code,
                        duration_ms=message.duration_ms,
                    )
                    current.actions.append(action)
                    current.command = ""
            case InstructionDone(), _Current() as current:
                self._current = None
                self._finish(current, message)

    def close(self) -> None:
        """Write the span of the session itself."""
        context = self._context
        self._write(
            self._span(
                _Current("", self._began),
                context.span_id,
                context.parent_span,
                self._usage,
                "success",
            )
        )

    def _finish(self, current: _Current, done: InstructionDone) -> None:
        self._model = done.model
        # Agents below write their own spans.
        usage = _Usage(done.tokens_in - done.below_in, done.tokens_out - done.below_out, done.usage_known)
        all_of = self._usage
        self._usage = _Usage(
            all_of.tokens_in + usage.tokens_in, all_of.tokens_out + usage.tokens_out, all_of.known and usage.known
        )
        span_id = self._new_id(SPAN_BYTES)
        self._write(self._span(current, span_id, self._context.span_id, usage, _result(current, done)))

    def _span(self, current: _Current, span_id: str, parent: str, usage: _Usage, result: str) -> Span:
        tokens_in, tokens_out = usage.said()
        return Span(
            trace_id=self._context.trace_id,
            span_id=span_id,
            parent_span=parent,
            pid=os.getpid(),
            host=socket.gethostname(),
            start=moment(current.began),
            end=moment(self._now()),
            instruction=current.instruction,
            backend=self._backend(),
            model=self._model,
            actions=tuple(current.actions),
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            approval=",".join(sorted(current.deciders)),
            result=result,
        )

    def _write(self, span: Span) -> None:
        if self._export is not None:
            self._export(from_shell(span))
        try:
            self._sink.write(written(span, self._scrub, anonymize=self._anonymize))
        except Unavailable as e:
            self.log.error("a trace is missing: {error}", error=e)


def open_tracer(around: ShellSurroundings, backend: Callable[[], str]) -> Tracer | None:
    """
    :param backend: see :class:`Tracer`.
    :returns: what writes the spans of one session; ``None``: nobody wants them, or they cannot be kept.
    """
    services, telemetry, context = around.core.services, around.settings.telemetry, around.start.trace
    if context.sink is None:
        return None
    sink = make_sink(context.sink, lambda line: print(line.decode(), end="", flush=True))
    if isinstance(sink, FileSink):
        try:
            sink.keep(lambda lines: recent(lines, services.now(), telemetry.retain_days))
        except Unavailable as e:  # a shell without traces is better than none
            around.core.emit(events.Notice(text=f"no traces: {e}"))
            return None
    return Tracer(
        context,
        sink,
        services.now,
        secrets.token_hex,
        backend,
        around.scrubber.text,
        anonymize=telemetry.anonymize,
        export=services.export(telemetry, services.proxies),
    )


def _result(current: _Current, done: InstructionDone) -> str:
    if not done.error and not current.outcomes & {StepOutcome.FAILED, StepOutcome.TIMED_OUT}:
        return "success"
    if StepOutcome.DENIED in current.outcomes or done.error == REFUSED:
        return "denied"
    return "interrupted" if done.error == CANCELLED else "failure"
