"""
What an agent's program reports of its own work, and messages that wait until it takes them.

Nothing here was judged: the program runs in a sandbox, and may report what it likes.
"""

from __future__ import annotations

from ironcurtain.session.event import Event

WHAT_LIMIT = 300
"""Maximum length in characters of an argument or a result in one line."""

DIFF_LIMIT = 16 * 1024
"""Maximum length in characters of a diff in an event."""


class AgentToolStarted(Event, frozen=True, tag="agent_tool"):
    """
    One of the agent's own tools began, as the agent reports.

    ``what``: its argument in one line, shortened. ``parent``: ``tool_id`` of the sub-agent that uses it.
    """

    free_texts = ("name", "what")

    tool_id: str
    name: str
    what: str = ""
    parent: str = ""


class AgentToolFinished(Event, frozen=True, tag="agent_tool_result"):
    """
    One of the agent's own tools ended, as the agent reports, with ``success``, ``error`` or ``cancelled``.

    ``what``: the result in one line, shortened. ``diff``: the change of a file as a unified diff, shortened.
    """

    free_texts = ("what", "diff")

    tool_id: str
    status: str
    what: str = ""
    diff: str = ""


class AgentActivity(Event, frozen=True, tag="agent_activity"):
    """``starting`` until its program takes messages; then what it reports: ``thinking``, ``answering`` and others."""

    free_texts = ("state",)

    state: str


class AgentTextDropped(Event, frozen=True, tag="agent_text_dropped"):
    """The text since the last step will not be completed: what follows repeats or replaces it."""


class MessageQueued(Event, frozen=True, tag="message_queued"):
    """A message was sent while a turn runs, and waits. Its number is the session's, from 1."""

    number: int
    message: str


class MessageTaken(Event, frozen=True, tag="message_taken"):
    """The agent took a message that waited."""

    number: int


class MessageWithdrawn(Event, frozen=True, tag="message_withdrawn"):
    """A message that waited was taken back, and the agent never gets it."""

    number: int


AgentEvent = (
    AgentToolStarted
    | AgentToolFinished
    | AgentActivity
    | AgentTextDropped
    | MessageQueued
    | MessageTaken
    | MessageWithdrawn
)
