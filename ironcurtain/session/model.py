"""What all kinds of session have in common: states, requests, descriptions, turns and usage."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from ironcurtain.home.sections import Budget
from ironcurtain.policy.pathmap import AGENT_WORKSPACE

OWNER_GONE = "the process that owned the session is gone"
"""The reason of the last :class:`~ironcurtain.session.events.StateChanged` of a session whose process died."""

DAEMON_STOPS = "the daemon stops"
"""The reason of the same event of a session whose daemon was stopped."""


class State(StrEnum):
    """``initializing -> ready <-> processing -> closed``."""

    INITIALIZING = "initializing"
    READY = "ready"
    PROCESSING = "processing"
    CLOSED = "closed"


class SessionRequest(msgspec.Struct, frozen=True):
    """
    A request to start a session.

    :param kind: the kind of agent; a name in the manager's table; empty: the setting ``default_agent``.
    :param task: the first message or the label's text; may be empty.
    :param typed: what of the task a person typed.
    :param workspace: the directory that the agent works on; ``None``: a fresh one in the session's directory.
    :param options: options of this kind.
    :param directory: where the session keeps its files; ``None``: in the home.
    :param resume: id of an ended session to resume. Its kind and workspace are used, and its options unless others are
        given.
    :param terminal: columns and rows of the terminal in which the agent shows its own screen; ``None``: it has no
        terminal and accepts messages.
    :param by: who starts it, if not the owner of the home: ``watcher:NAME``, or a person of another host.
    :param budget: limits besides those of the settings; ``None``: no others.
    """

    kind: str
    task: str = ""
    workspace: Path | None = None
    options: Mapping[str, Any] = msgspec.field(default_factory=dict)
    directory: Path | None = None
    resume: str = ""
    terminal: tuple[int, int] | None = None
    typed: str = ""
    by: str = ""
    budget: Budget | None = None


class AuditHead(msgspec.Struct, frozen=True, kw_only=True):
    """
    The newest signed head of a session's audit log.

    :param sequence: number of the last record that it stands for.
    :param digest: SHA-256 of that record's line, in hexadecimal.
    :param final: whether no more records can come.
    """

    sequence: int
    digest: str
    final: bool = False


class SessionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """
    The description of a session, as shown to others and stored in ``session.json``.

    :param started_at: UTC in ISO 8601.
    :param turns: number of messages so far; of a loop, iterations.
    :param pending: number of pending escalations.
    :param options: the requested options; those of a resumed session are in force once it is ready.
    :param sandbox: what implements its sandboxes: "bubblewrap", "container" or "landlock"; empty: nothing.
    :param unsandboxed: names of its MCP servers that run outside any sandbox.
    :param servers_down: for each MCP server that failed and is not up again, the reason.
    :param servers_starting: for each MCP server that takes long to start, since when, in seconds since the epoch.
    :param server_faults: for each MCP server that breaks the protocol, what was wrong and what was done about it.
    :param model: the name of its agent's model; empty: the default of the agent's program, or none was chosen yet.
    :param payers: which accounts pay for its agent's models, for people.
    :param by: who started it, if that was no person: ``watcher:NAME``.
    :param directory: path of the workspace for its agent, which finds its conversation by it.
    :param terminal: whether its agent has a screen to attach to, and accepts no messages.
    :param status: the exit status of the program in that terminal, once known.
    :param head: of its audit log; ``None``: there is none yet.
    """

    version: int = 1
    id: str
    number: int
    kind: str
    label: str
    state: str
    started_at: str
    workspace: str
    turns: int = 0
    pending: int = 0
    reason: str = ""
    options: dict[str, Any] = {}
    sandbox: str = ""
    unsandboxed: tuple[str, ...] = ()
    servers_down: dict[str, str] = {}
    servers_starting: dict[str, float] = {}
    server_faults: dict[str, tuple[str, ...]] = {}
    model: str = ""
    payers: tuple[str, ...] = ()
    by: str = ""
    directory: str = AGENT_WORKSPACE
    terminal: bool = False
    status: int | None = None
    head: AuditHead | None = None

    @property
    def over(self) -> bool:
        """Whether it is closed, and its audit log as well."""
        return self.state == "closed" and (self.head is None or self.head.final)


class Ticket(msgspec.Struct, frozen=True, kw_only=True):
    """
    Permits attaching to a session's terminal from another process, once and for a short time.

    :param session: the session's id.
    :param socket: the socket that serves its terminal.
    """

    session: str
    socket: str
    token: str


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """
    Usage of a turn. Tokens are the provider's count; cost is in US dollars, if known.

    :param token_tracking_available: whether the tokens are known; if not, the other numbers are meaningless.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    token_tracking_available: bool = True


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """
    One message and its answer.

    :param timestamp: UTC in ISO 8601, of the message.
    :param answer: with an error, the part of an answer that came before it.
    :param error: why there is no complete answer; empty if there is one.
    """

    number: int
    message: str
    answer: str
    usage: Usage
    timestamp: str
    error: str = ""


class Cancelled(msgspec.Struct, frozen=True, omit_defaults=True):
    """
    What became of a request to cancel a message.

    :param cancelled: whether there was one.
    :param taken_back: texts of the messages that waited for its end and that the agent never gets, in their order.
    """

    cancelled: bool
    taken_back: tuple[str, ...] = ()


class Reply(msgspec.Struct, frozen=True):
    """An agent's answer, and its usage."""

    text: str
    usage: Usage
