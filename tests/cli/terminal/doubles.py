"""A session that plays what a test says, behind the interface of every front end; and a surface that keeps all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from twisted.internet.defer import Deferred

from ironcurtain.cli.terminal.surface import Listener, Surface
from ironcurtain.errors import NotFound, NotShown, SessionError, StaleDecision
from ironcurtain.escalation import Outcome
from ironcurtain.escalation.forms import Form, check_answer
from ironcurtain.operations.api import OnEvent
from ironcurtain.operations.model import EscalationView, PermissionView
from ironcurtain.session import events
from ironcurtain.session.agent_events import MessageQueued
from ironcurtain.session.model import Cancelled, Reply, SessionInfo, SessionRequest, Turn, Usage
from ironcurtain.session.snapshots import LeftPath, UndoReport
from ironcurtain.text.columns import Line, unstyled
from ironcurtain.view.look import ASCII
from ironcurtain.view.narration import Live

INFO = SessionInfo(
    id="5a1e", number=7, kind="builtin", label="builtin: notes", state="ready", started_at="", workspace="/home/me"
)


class PlayedSession:
    """
    One session. A message is worked on until the test says how it ends.

    :param now: seconds since the epoch.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.log = events.EventLog(now)
        self.state, self.model = "ready", ""
        self.turns: list[Turn] = []
        self.messages: list[str] = []
        self.keeps = False
        """Whether messages wait while the agent works."""
        self.queue: list[str] = []
        self.decisions: list[tuple[int, Outcome, str | None]] = []
        self.answers: list[tuple[int, Mapping[str, Any] | None, str | None]] = []
        self.pending: dict[int, EscalationView] = {}
        self.kept: dict[int, PermissionView] = {}
        self.closed: dict[int, str] = {}
        self.calls: list[int | None] = []
        """How many equal calls each decision was for."""
        self.seen_elsewhere: set[int] = set()
        """Escalations that were shown whole by other means."""
        self.lagging = False
        """Whether events are kept from the followers for now, as they may be on their way from another process."""
        self.undone: list[int] = []
        self.left: tuple[LeftPath, ...] = ()
        """What an undo cannot restore."""
        self._followers: list[Callable[[], None]] = []
        self._reply: Deferred[Reply] | None = None
        self.emit(events.StateChanged(state="ready"))

    def emit(self, event: events.SessionEvent) -> None:
        """Something happens."""
        self.log.emit(event)
        self.deliver()

    def deliver(self) -> None:
        """Give the followers what they do not have, unless events lag."""
        if not self.lagging:
            for follower in list(self._followers):
                follower()

    def raise_escalation(
        self,
        number: int,
        arguments: dict[str, Any] | None = None,
        seconds: float = 300.0,
        form: Form | None = None,
    ) -> None:
        """A call, or a form, waits for a person."""
        raised = events.EscalationRaised(
            number=number,
            call_id=f"c{number}",
            server="filesystem",
            tool="write_file",
            arguments=arguments if arguments is not None else {"path": "/etc/motd"},
            digest=f"digest-{number}",
            rule="outside",
            reason="outside the workspace",
            raised_at=self._now(),
            expires_at=self._now() + seconds,
            scope="" if form is not None else "filesystem.write_file in /etc and below",
            form=form,
        )
        known = [name for name in events.EscalationRaised.__struct_fields__ if name not in ("call_id", "omitted")]
        self.pending[number] = EscalationView(
            session=INFO.number,
            session_id=INFO.id,
            label=INFO.label,
            policy_version="v",
            **{name: getattr(raised, name) for name in known},
        )
        self.emit(raised)

    def close_escalation(self, number: int, outcome: str, by: str = "", kept: str = "") -> None:
        """It got its outcome, from anybody."""
        del self.pending[number]
        self.closed[number] = outcome
        self.emit(events.EscalationClosed(number=number, outcome=outcome, by=by, kept=kept))

    def reply(self, text: str) -> None:
        """The message has its answer."""
        self._over(text, "", "")

    def fail(self, error: str, code: str = "MESSAGE_FAILED") -> None:
        """The message failed."""
        self._over("", error, code)

    def end(self, reason: str) -> None:
        """Somebody closes the session."""
        self.state = "closed"
        self.emit(events.StateChanged(state="closed", reason=reason))
        if self._reply is not None:
            self.fail("cancelled", "CANCELLED")

    async def sessions(self) -> list[SessionInfo]:
        return [SessionInfo(**{**_fields(INFO), "state": self.state, "model": self.model})]

    async def start(self, request: SessionRequest, on_event: OnEvent = lambda stamped: None) -> SessionInfo:
        return INFO

    async def send(self, name: int | str, message: str, typed: str = "") -> Reply:
        if self.keeps and self.state == "processing":
            self.queue.append(message)
            self.emit(MessageQueued(number=len(self.queue), message=message))
            return await Deferred()
        if self.state != "ready":
            raise SessionError("SESSION_NOT_READY", f"session {name} is {self.state}: wait for its answer")
        self.messages.append(message)
        self.state = "processing"
        self._reply = Deferred(lambda _: self.fail("cancelled", "CANCELLED"))
        self.emit(events.StateChanged(state="processing"))
        self.emit(events.TurnStarted(turn=len(self.messages), message=message))
        return await self._reply

    async def withdraw(self, name: int | str, number: int = 0) -> str:
        if not self.queue:
            raise NotFound("no message waits")
        return self.queue.pop()

    async def cancel(self, name: int | str) -> Cancelled:
        if self._reply is None:
            return Cancelled(False)
        waiting, self.queue = self.queue, []
        self.fail("cancelled", "CANCELLED")
        return Cancelled(True, tuple(waiting))

    async def undo(self, name: int | str, snapshot: int, everything: bool = False) -> UndoReport:
        self.undone.append(snapshot)
        return UndoReport(changed=1, removed=2, left=self.left, kept=True)

    async def stop(self, name: int | str) -> SessionInfo:
        self.end("stopped")
        return INFO

    async def history(self, name: int | str) -> list[Turn]:
        return list(self.turns)

    async def escalations(self, closed: bool = False, after: int = 0) -> list[EscalationView]:
        return list(self.pending.values())

    async def permissions(self) -> list[PermissionView]:
        return list(self.kept.values())

    async def revoke(self, number: int) -> PermissionView:
        permission = self.kept.pop(number)
        self.emit(events.PermissionRevoked(number=number, scope=permission.scope, by="me"))
        return permission

    async def shown(self, number: int, digest: str, calls: int = 1) -> None:
        self.seen_elsewhere.add(number)

    async def deny_all(self, name: int | str | None = None) -> list[int]:
        numbers = list(self.pending)
        for number in numbers:
            self.close_escalation(number, "denied", "me")
        return numbers

    async def decide(
        self,
        number: int,
        outcome: Outcome,
        digest: str | None = None,
        keep: bool = False,
        calls: int | None = None,
    ) -> EscalationView:
        self.decisions.append((number, outcome, digest))
        self.calls.append(calls)
        if number in self.pending and outcome is Outcome.APPROVED and not digest and number not in self.seen_elsewhere:
            raise NotShown("not shown")
        if number in self.closed:
            raise StaleDecision(f"too late: escalation {number} was {self.closed[number]} before")
        if number not in self.pending:
            raise NotFound(f"there is no escalation {number} here")
        view = self.pending[number]
        if keep:
            self.kept[number] = PermissionView(
                number=number,
                session=INFO.number,
                session_id=INFO.id,
                label=INFO.label,
                server=view.server,
                tool=view.tool,
                scope=view.scope,
                by="me",
                since=self._now(),
                used=0,
            )
        self.close_escalation(number, outcome.value, "me", view.scope if keep else "")
        return view

    async def answer(self, number: int, content: Mapping[str, Any] | None, digest: str | None = None) -> EscalationView:
        self.answers.append((number, content, digest))
        if number not in self.pending:
            raise StaleDecision(f"too late: escalation {number} was {self.closed[number]} before")
        view = self.pending[number]
        assert view.form is not None
        if content is not None:
            check_answer(view.form, content)
        self.close_escalation(number, "cancelled" if content is None else "answered", "me")
        return view

    async def follow(self, name: int | str, after: int, on_event: OnEvent) -> Callable[[], None]:
        last = [after]

        def more() -> None:
            for stamped in self.log.after(last[0]):
                last[0] = stamped.sequence
                on_event(stamped)

        self._followers.append(more)
        more()
        return lambda: self._followers.remove(more)

    @property
    def followed(self) -> bool:
        """Whether anybody gets its events."""
        return bool(self._followers)

    def _over(self, text: str, error: str, code: str) -> None:
        reply, self._reply = self._reply, None
        assert reply is not None, "no message is being worked on"
        number, message = len(self.messages), self.messages[-1]
        usage = Usage(input_tokens=100, output_tokens=10, cost=0.001)
        self.turns.append(Turn(number=number, message=message, answer=text, usage=usage, timestamp="", error=error))
        for waiting in list(self.pending):
            self.close_escalation(waiting, "withdrawn")
        self.emit(events.TurnFinished(turn=number, answer=text, error=error, code=code))
        if self.state == "processing":
            self.state = "ready"
            self.emit(events.StateChanged(state="ready"))
        if error:
            reply.errback(SessionError("MESSAGE_FAILED", error))
        else:
            reply.callback(Reply(text, usage))


class KeptSurface(Surface):
    """Keeps what it is told to show."""

    signs = ASCII

    def __init__(self, live: bool) -> None:
        self.live = live
        self.printed: list[str] = []
        self.answers: list[str] = []
        self.last = Live((), ())
        self.bells: list[str] = []
        self.input_line = ""
        self.is_open = False
        self.is_gone = False
        self.listener: Listener | None = None

    def width(self) -> int:
        return 80

    def open(self, listener: Listener, reads: bool) -> None:
        self.listener, self.is_open = listener, True

    def print(self, lines: Sequence[Line], answer: bool = False) -> None:
        if self.is_gone:
            raise BrokenPipeError("nobody reads")
        (self.answers if answer else self.printed).extend(map(unstyled, lines))

    def show(self, live: Live) -> None:
        self.last = live

    def bell(self, text: str) -> None:
        self.bells.append(text)

    def calm(self) -> None:
        self.bells.append("")

    def put_back(self, text: str) -> None:
        self.input_line = text

    async def close(self) -> None:
        self.is_open = False

    @property
    def text(self) -> str:
        """All that was printed."""
        return "\n".join(self.printed)


def _fields(info: SessionInfo) -> dict[str, Any]:
    return {name: getattr(info, name) for name in SessionInfo.__struct_fields__}
