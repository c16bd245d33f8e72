"""How far a session is: its state, its turns, and its end."""

from __future__ import annotations

from twisted.internet.defer import Deferred

from ironcurtain.session import events
from ironcurtain.session.model import State
from ironcurtain.session.server_events import ServersStarting


class Progress:
    """
    :param turns: number of turns so far.
    :ivar reason: why it has this state; may be empty.
    :ivar in_turn: whether the agent works on a message.
    :ivar servers_starting: since when MCP servers start that take long, by name.
    """

    def __init__(self, turns: int) -> None:
        self.state, self.reason = State.INITIALIZING, ""
        self.turns, self.in_turn = turns, False
        self.servers_starting: dict[str, float] = {}

    @property
    def closed(self) -> bool:
        """Whether the session has ended, or is ending."""
        return self.state is State.CLOSED

    def enter(self, state: State, reason: str = "") -> events.StateChanged | None:
        """:returns: the event; ``None``: it has ended, and keeps that state."""
        if self.closed:
            return None
        self.state, self.reason = state, reason
        return events.StateChanged(state=state, reason=reason)

    def heard(self, event: events.SessionEvent) -> None:
        """An event of the session."""
        if isinstance(event, events.TurnStarted | events.TurnFinished):
            self.in_turn = isinstance(event, events.TurnStarted)
        if isinstance(event, events.TurnFinished):
            self.turns = event.turn
        if isinstance(event, ServersStarting):
            self.servers_starting = event.servers


class Ending:
    """:ivar begun: whether the session is being closed."""

    def __init__(self) -> None:
        self.begun = False
        self._is_over = False
        self._waiting: list[Deferred[None]] = []

    def over(self) -> None:
        """All parts have stopped."""
        self._is_over = True
        waiting, self._waiting = self._waiting, []
        for done in waiting:
            done.callback(None)

    def awaited(self) -> Deferred[None]:
        """:returns: fires when it is over."""
        done: Deferred[None] = Deferred()
        if self._is_over:
            done.callback(None)
        else:
            self._waiting.append(done)
        return done
