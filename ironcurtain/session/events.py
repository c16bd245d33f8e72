"""
Events of a session, for front ends in this process or, as JSON, over the control API.

Each event has a sequence number and a time. A log keeps the newest events and never waits for a reader; a reader that
is too slow gets a :class:`Missed` event with the number of lost events.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from ironcurtain.escalation.forms import Form
from ironcurtain.policy.verdict import Reversal
from ironcurtain.session.agent_events import AgentEvent
from ironcurtain.session.event import Event
from ironcurtain.session.server_events import ServerEvent

KEPT = 2000
"""Number of events that a session keeps for readers (some minutes of a busy agent)."""


class StateChanged(Event, frozen=True, tag="state"):
    """The session is ``initializing``, ``ready``, ``processing`` or ``closed``."""

    state: str
    reason: str = ""


class TurnStarted(Event, frozen=True, tag="turn_start"):
    """The session began to work on a message."""

    turn: int
    message: str


class TurnFinished(Event, frozen=True, tag="turn_finish"):
    """The turn ended. If it failed, ``error`` says why, and ``code`` is the error's code."""

    turn: int
    answer: str = ""
    error: str = ""
    code: str = ""


class AgentText(Event, frozen=True, tag="agent_text"):
    """A piece of the agent's text, as it arrives."""

    free_texts = ("text",)

    text: str


class CodeStarted(Event, frozen=True, tag="code_start"):
    """The agent runs code in its interpreter."""

    code: str


class CodeFinished(Event, frozen=True, tag="code_finish"):
    """The code ended; ``error`` is empty if it succeeded."""

    error: str = ""


class ToolCallRaised(Event, frozen=True, tag="tool_call"):
    """The agent called a tool. The arguments are redacted and shortened, otherwise unchanged."""

    call_id: str
    server: str
    tool: str
    arguments: str


class ToolDecision(Event, frozen=True, tag="tool_decision"):
    """
    The policy judged a call (``allow``, ``deny``, ``escalate``), or a person did (``approved``, ``denied`` ...).

    ``permission``: the number of the escalation whose kept approval allowed the call without asking.
    """

    call_id: str
    decision: str
    rule: str = ""
    reason: str = ""
    by: str = ""
    permission: int = 0


class ToolFinished(Event, frozen=True, tag="tool_result"):
    """A call ended with ``success``, ``error``, ``denied`` or ``withdrawn``."""

    call_id: str
    status: str
    duration_ms: float = 0.0
    size: int = 0


class StepFinished(Event, frozen=True, tag="step_finish"):
    """A model request of a turn ended. Tokens are the provider's count; cost is in US dollars, if known."""

    step: int
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None


class ModelRetry(Event, frozen=True, tag="model_retry"):
    """A model request failed and is repeated after ``delay`` seconds."""

    delay: float
    reason: str


class ModelFellBack(Event, frozen=True, tag="model_fallback"):
    """The model ``failed`` cannot be reached; ``model`` is asked instead. Each is a provider and its model."""

    failed: str
    model: str
    reason: str


class BudgetWarning(Event, frozen=True, tag="budget_warning"):
    """A limit is nearly reached."""

    message: str


class BudgetExhausted(Event, frozen=True, tag="budget_exhausted"):
    """A limit is reached; the turn ends."""

    message: str


class Notice(Event, frozen=True, tag="notice"):
    """
    A message to the user, such as: a tool is withheld, or a server runs outside a sandbox.

    :param routine: whether it only says how things are, and nothing is amiss.
    """

    text: str
    routine: bool = False


class ProxyDown(Event, frozen=True, tag="proxy_down"):
    """The ``MCP`` or ``MITM`` proxy died. It passes nothing, so the agent cannot continue."""

    proxy: str
    reason: str


class ContainerEnded(Event, frozen=True, tag="container_end"):
    """The agent's container ended unexpectedly. The next message starts a new one."""

    reason: str


class Progress(Event, frozen=True, tag="progress"):
    """Progress of a long operation, such as cloning a repository or building an image."""

    text: str


class AgentDiagnostic(Event, frozen=True, tag="agent_diagnostic"):
    """A line that the agent's program wrote to standard error."""

    text: str


class RequestRefused(Event, frozen=True, tag="request_refused"):
    """A request of the agent or of another program was refused; ``CONNECT``: a connection, with its target as path."""

    host: str
    method: str
    path: str
    reason: str


class PackageInstalled(Event, frozen=True, tag="package"):
    """A file of a package, verified, reached the agent from a registry."""

    registry: str
    name: str
    version: str
    digest: str


class FileToReview(Event, frozen=True, tag="file_to_review"):
    """
    A new or changed file in the workspace that programs run or obey on their own, found when the session ended.

    ``building``: it runs only in a build or a test.
    """

    path: str
    what: str
    reason: str
    building: bool = False


class LoopDetected(Event, frozen=True, tag="loop_detection"):
    """The agent repeated a call too often; the call is refused for a while."""

    server: str
    tool: str


class ResultTruncated(Event, frozen=True, tag="result_truncation"):
    """The agent got part of a result: ``kept`` of about ``size`` bytes."""

    size: int
    kept: int


class MessagesCompacted(Event, frozen=True, tag="message_compaction"):
    """
    The model gets a shorter form of the conversation from now on; the files keep all of it.

    :param strategy: how it was shortened: ``truncate``, ``summarise`` or ``sliding``.
    :param turns: number of turns that are left out so far.
    :param before: tokens of the request, about, as are those ``after``.
    """

    strategy: str
    turns: int
    before: int
    after: int


class EscalationRaised(Event, frozen=True, tag="escalation_raised"):
    """
    A call waits for a person; ``arguments`` are those that will be forwarded. Or a server's ``form`` waits.

    ``scope``: the calls that a kept approval would cover; empty if it cannot be kept. ``omitted``: size in bytes of the
    arguments as JSON if they are too long for an event; the list of escalations has them. ``calls``: the number of
    equal calls that wait for the decision. ``undo``: whether the call can be undone. ``approvals``: the number of
    different people who must approve; ``approved_by``: those who have. ``diff``: how the call changes a file that is
    there now, as a unified diff; empty if that is unknown.
    """

    number: int
    call_id: str
    server: str
    tool: str
    arguments: dict[str, Any]
    digest: str
    rule: str
    reason: str
    raised_at: float
    expires_at: float
    scope: str = ""
    omitted: int = 0
    calls: int = 1
    undo: str = Reversal.UNKNOWN.value
    approvals: int = 1
    approved_by: tuple[str, ...] = ()
    form: Form | None = None
    diff: str = ""


class EscalationCounted(Event, frozen=True, tag="escalation_counted"):
    """The number of equal calls that wait for an escalation's decision changed."""

    number: int
    calls: int


class EscalationApproved(Event, frozen=True, tag="escalation_approved"):
    """Somebody approved an escalation, which still waits for the approval of another person."""

    number: int
    by: str


class EscalationClosed(Event, frozen=True, tag="escalation_closed"):
    """
    An escalation was closed. ``by``: all who decided. ``kept``: the calls that a kept approval permits from now on.
    """

    number: int
    outcome: str
    by: str = ""
    kept: str = ""


class PermissionRevoked(Event, frozen=True, tag="permission_revoked"):
    """A person revoked a kept approval; ``scope`` says which calls are asked about again."""

    number: int
    scope: str
    by: str


class Missed(Event, frozen=True, tag="missed"):
    """The reader was too slow and lost ``count`` events."""

    count: int


SessionEvent = (
    StateChanged
    | TurnStarted
    | TurnFinished
    | AgentText
    | CodeStarted
    | CodeFinished
    | ToolCallRaised
    | ToolDecision
    | ToolFinished
    | StepFinished
    | ModelRetry
    | ModelFellBack
    | BudgetWarning
    | BudgetExhausted
    | LoopDetected
    | Notice
    | ProxyDown
    | ContainerEnded
    | Progress
    | AgentDiagnostic
    | RequestRefused
    | PackageInstalled
    | FileToReview
    | ResultTruncated
    | MessagesCompacted
    | EscalationRaised
    | EscalationCounted
    | EscalationApproved
    | EscalationClosed
    | PermissionRevoked
    | Missed
    | AgentEvent
    | ServerEvent
)


class Stamped(msgspec.Struct, frozen=True):
    """An event with its number in the session, from 1, and its time in seconds since the epoch."""

    sequence: int
    time: float
    event: SessionEvent


class EventLog:
    """
    The newest events of one session.

    :param now: seconds since the epoch.
    :param kept: maximum number of events.
    """

    def __init__(self, now: Callable[[], float], kept: int = KEPT) -> None:
        self._now = now
        self._events: deque[Stamped] = deque(maxlen=kept)
        self._watchers: list[Callable[[], None]] = []
        self.last = 0
        """Sequence number of the newest event."""

    def emit(self, event: SessionEvent) -> None:
        """Add an event and call the watchers."""
        self.last += 1
        self._events.append(Stamped(self.last, self._now(), event))
        for wake in list(self._watchers):
            wake()

    def after(self, sequence: int) -> list[Stamped]:
        """
        :param sequence: number of the last event that the reader has.
        :returns: all later events; the first is a :class:`Missed` if some were lost.
        """
        events = [stamped for stamped in self._events if stamped.sequence > sequence]
        first = events[0].sequence if events else self.last + 1
        if (gone := first - sequence - 1) > 0:
            events.insert(0, Stamped(first - 1, self._now(), Missed(count=gone)))
        return events

    def watch(self, wake: Callable[[], None]) -> Callable[[], None]:
        """
        :param wake: called after each event. It must not raise; it reads with :meth:`after`.
        :returns: a function that ends the watch.
        """
        self._watchers.append(wake)
        return lambda: self._watchers.remove(wake) if wake in self._watchers else None
