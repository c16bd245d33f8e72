"""The operations on the sessions of one process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace
from twisted.internet.defer import Deferred
from twisted.logger import Logger

from ironcurtain.errors import NotFound, NotShown, StaleDecision
from ironcurtain.escalation import Escalation, Outcome
from ironcurtain.escalation.decision_keys import DecisionKeys
from ironcurtain.operations.model import LOOK, EscalationView, Name, PermissionView, Reloaded, permission_view, view
from ironcurtain.operations.principal import Principal, Role, owner
from ironcurtain.session.events import Stamped
from ironcurtain.session.manager import SessionManager
from ironcurtain.session.model import Cancelled, Reply, SessionInfo, SessionRequest, Ticket, Turn
from ironcurtain.session.session import Session
from ironcurtain.session.snapshots import UndoReport
from ironcurtain.terminal.hub import Hub
from ironcurtain.terminal.model import Mode

_NEEDED = {Mode.DRIVE: Role.ATTACH, Mode.OBSERVE: Role.VIEW}


class Operations:
    """
    List, watch, decide, send, attach, stop, audit.

    Every method raises :class:`~ironcurtain.errors.NotAllowed` if the principal lacks the role, and
    :class:`~ironcurtain.errors.NotFound` if this process has no such session or escalation.

    :param reload: reads the configuration files again, or raises :class:`~ironcurtain.errors.ConfigurationError`;
        ``None`` if there are none.
    :param once: returns why the approvals of two principals count once where several must approve; empty: they do not.
    """

    log = Logger()

    def __init__(
        self,
        manager: SessionManager,
        reload: Callable[[], Reloaded] = Reloaded,
        once: Callable[[str, str], str] = lambda first, second: "",
    ) -> None:
        self._manager, self._reload, self._once = manager, reload, once
        self._shown: dict[str, DecisionKeys] = {}
        """Which pending escalations were shown completely, by the name of the principal."""

    def sessions(self, who: Principal) -> list[SessionInfo]:
        """:returns: all sessions, including recently closed ones."""
        who.require(Role.VIEW)
        return [session.info for session in self._manager.all()]

    def session(self, who: Principal, name: Name) -> SessionInfo:
        """:returns: one session."""
        return self._find(who, Role.VIEW, name).info

    async def start(
        self,
        who: Principal,
        request: SessionRequest,
        made: Callable[[Session], None] = lambda session: None,
        attended: bool = True,
    ) -> SessionInfo:
        """
        Start a session.

        :param attended: whether its escalations wait their full time for a person; else they are denied at once.
        :param made: called with the session before it starts, so that its events can be watched.
        :raises UsageError: a command of its own has to start it, such as a loop.
        """
        who.require(Role.ADMIN)
        if who != owner():
            request = replace(request, by=who.name)
        return (await self._manager.create(request, lambda: attended, made, remote=True)).info

    def send(self, who: Principal, name: Name, message: str, typed: str = "") -> Deferred[Reply]:
        """
        Send a session a message.

        :param typed: what of it a person typed, and neither pasted nor piped in.
        :returns: fires with the reply; cancelling it cancels the message.
        :raises SessionError: it is not ready.
        """
        return self._find(who, Role.ATTACH, name).send(message, typed)

    def cancel(self, who: Principal, name: Name) -> Cancelled:
        """:returns: whether there was a message to cancel, and those that waited for its end."""
        return self._find(who, Role.ATTACH, name).cancel()

    def withdraw(self, who: Principal, name: Name, number: int = 0) -> str:
        """
        Take back a message that waits.

        :param number: its number in the queue; 0: the newest.
        :returns: its text.
        :raises SessionError: the agent has it already.
        """
        return self._find(who, Role.ATTACH, name).withdraw(number)

    async def undo(self, who: Principal, name: Name, snapshot: int, everything: bool = False) -> UndoReport:
        """
        Restore a session's workspace, which is recorded.

        :param snapshot: number of the snapshot.
        :raises SessionError: its agent works, or could work.
        """
        return await self._find(who, Role.ATTACH, name).undo(snapshot, who.name, everything)

    def terminal(self, who: Principal, name: Name, mode: Mode) -> Hub:
        """
        Attach to a session's terminal, which is recorded.

        :param mode: driving requires the role ``attach``, observing ``view``.
        :raises SessionError: it has none, or is not ready.
        """
        return self._find(who, _NEEDED[mode], name).shared_terminal.attach(who.name, mode)

    def ticket(self, who: Principal, name: Name, mode: Mode) -> Ticket:
        """
        :param mode: as for :meth:`terminal`.
        :returns: a ticket for attaching from another process.
        :raises SessionError: the session has no terminal, or is not ready.
        """
        return self._find(who, _NEEDED[mode], name).shared_terminal.ticket(who.name, mode)

    def hold(self, who: Principal, name: Name) -> None:
        """Tie a session to the client that started it, unless it was released already: see ``held`` of :meth:`stop`."""
        session = self._find(who, Role.ATTACH, name)
        session.ends_with_owner = session.ends_with_owner is not False

    def release(self, who: Principal, name: Name) -> SessionInfo:
        """Let a session continue without the client that started it."""
        session = self._find(who, Role.ATTACH, name)
        session.ends_with_owner = False
        return session.info

    def join(self, who: Principal, name: Name) -> SessionInfo:
        """
        Take part in a conversation, which is recorded and releases it.

        :raises SessionError: it has a terminal instead, or is not ready.
        """
        session = self._find(who, Role.ATTACH, name)
        session.join(who.name)
        return session.info

    async def stop(self, who: Principal, name: Name, held: bool = False) -> SessionInfo:
        """
        End a session.

        :param held: only if it was not released since it was held.
        :returns: the session; it is not closed if it continues.
        """
        session = self._find(who, Role.ATTACH, name)
        if held and not session.ends_with_owner:
            return session.info
        await self._manager.close(session, f"ended by {who.name}")
        return session.info

    def history(self, who: Principal, name: Name) -> list[Turn]:
        """:returns: the turns so far."""
        return list(self._find(who, Role.VIEW, name).history.turns)

    def events(self, who: Principal, name: Name, after: int) -> list[Stamped]:
        """:returns: the events of a session after a sequence number."""
        return self._find(who, Role.VIEW, name).events.after(after)

    def watch(self, who: Principal, name: Name, wake: Callable[[], None]) -> Callable[[], None]:
        """
        :param wake: called after each event of a session.
        :returns: a function that ends the watch.
        """
        session = self._find(who, Role.VIEW, name)

        def wake_safely() -> None:
            try:
                wake()
            except Exception:  # a failure of a front end must not affect the session
                self.log.failure("a reader of session {number} failed", number=session.number)

        return session.events.watch(wake_safely)

    def escalations(self, who: Principal, closed: bool = False, after: int = 0) -> list[EscalationView]:
        """
        :param closed: include closed ones.
        :param after: only those closed after this ``closing`` number.
        :returns: the escalations of all sessions, oldest first.
        """
        who.require(Role.VIEW)
        views = []
        for session in self._manager.all():
            found = session.escalations.pending()
            if closed:
                found += [escalation for escalation in session.escalations.history() if escalation.closing > after]
            views += [view(escalation, session.number, session.label) for escalation in found]
        return sorted(views, key=lambda escalation: escalation.number)

    def shown(self, who: Principal, number: int, digest: str, calls: int = 1) -> None:
        """
        Report that an escalation was shown completely to a principal, who may then approve it by its number.

        :param digest: digest of the arguments shown.
        :param calls: number of equal calls at that time.
        :raises StaleDecision: it is closed, or has other arguments.
        """
        who.require(Role.VIEW)
        session, _ = self._escalation(number)
        waiting = {each.number: each for each in session.escalations.pending()}
        if number not in waiting or waiting[number].request.digest != digest:
            raise StaleDecision(f"escalation {number} is closed, or has other arguments: view it again")
        pending = {each.number for known in self._manager.all() for each in known.escalations.pending()}
        known = self._shown.setdefault(who.name, DecisionKeys())
        known.show(number, 0.0, min(calls, waiting[number].calls))  # commands decide at any time
        for each in self._shown.values():
            each.keep(pending)

    def decide(
        self,
        who: Principal,
        number: int,
        outcome: Outcome,
        digest: str | None = None,
        keep: bool = False,
        calls: int | None = None,
    ) -> EscalationView:
        """
        Answer an escalation. There is exactly one winner; the error for all others names the winner. An escalation that
        needs two approvals stays pending after the first.

        :param digest: digest of the arguments shown. Without it, an approval requires that the escalation was shown
            completely to the principal.
        :param keep: whether an approval covers all calls of the scope that was shown.
        :param calls: number of equal calls shown, if known: no more are approved.
        :raises UsageError: it cannot be kept; nothing is decided.
        :raises NotShown: it was not shown.
        :raises StaleDecision: it is closed, other arguments were shown, or the principal approved it before.
        """
        who.require(Role.APPROVE)
        session, known = self._escalation(number)
        if outcome is Outcome.APPROVED and digest is None and known.outcome is None:
            seen = self._calls_shown(who, number)
            calls = seen if calls is None else min(calls, seen)
        if outcome is Outcome.APPROVED and known.outcome is None:
            self._another(who, known)
        decided = session.escalations.decide(number, outcome, who.name, digest, keep, calls)
        return view(decided, session.number, session.label)

    def answer(
        self, who: Principal, number: int, content: Mapping[str, Any] | None, digest: str | None = None
    ) -> EscalationView:
        """
        Answer a form, as :meth:`decide` answers a call; it is declined with :meth:`decide`.

        :param content: the values, by name; ``None``: nobody answers it.
        :param digest: digest of the form shown. Without it, values require that the form was shown completely to the
            principal.
        :raises UsageError: it is no form, or the values do not fit it; nothing is sent.
        :raises NotShown: it was not shown.
        :raises StaleDecision: it is closed, or another form was shown.
        """
        who.require(Role.APPROVE)
        session, known = self._escalation(number)
        if content is not None and digest is None and known.outcome is None:
            self._calls_shown(who, number)
        answered = session.escalations.answer(number, content, who.name, digest)
        return view(answered, session.number, session.label)

    def deny_all(self, who: Principal, name: Name | None = None) -> list[int]:
        """
        Deny all pending escalations.

        :param name: only those of this session.
        :returns: their numbers.
        """
        who.require(Role.APPROVE)
        sessions = self._manager.all() if name is None else [self._manager.get(name)]
        return sorted(number for session in sessions for number in session.escalations.deny_all(who.name))

    def permissions(self, who: Principal) -> list[PermissionView]:
        """:returns: the kept approvals of all sessions in force, oldest first."""
        who.require(Role.VIEW)
        views = [
            permission_view(permission, session.id, session.number, session.label)
            for session in self._manager.all()
            for permission in session.escalations.permissions()
        ]
        return sorted(views, key=lambda permission: permission.number)

    def revoke(self, who: Principal, number: int) -> PermissionView:
        """
        Revoke the kept approval of an escalation.

        :returns: the revoked approval.
        """
        who.require(Role.APPROVE)
        for session in self._manager.all():
            if any(permission.number == number for permission in session.escalations.permissions()):
                revoked = session.escalations.revoke(number, who.name)
                return permission_view(revoked, session.id, session.number, session.label)
        raise NotFound(f"there is no kept approval {number} here: see 'ironcurtain permissions'")

    def reload(self, who: Principal) -> Reloaded:
        """
        Read the configuration files again, for new sessions.

        :raises ConfigurationError: one of them is wrong; then nothing changes.
        """
        who.require(Role.ADMIN)
        return self._reload()

    def _another(self, who: Principal, escalation: Escalation) -> None:
        """:raises StaleDecision: an approval that was given counts for this principal, too."""
        for name in escalation.approved_by:
            if name != who.name and (why := self._once(name, who.name)):
                raise StaleDecision(f"{why}: another person must approve it")

    def _calls_shown(self, who: Principal, number: int) -> int:
        """:raises NotShown: the escalation was not shown to the principal."""
        seen = self._shown[who.name].calls(number) if who.name in self._shown else None
        if seen is None:
            raise NotShown(f"escalation {number} was not shown to you completely: {LOOK.format(number)}")
        return seen

    def _escalation(self, number: int) -> tuple[Session, Escalation]:
        for session in self._manager.all():
            for escalation in session.escalations.pending() + session.escalations.history():
                if escalation.number == number:
                    return session, escalation
        raise NotFound(f"there is no escalation {number} here: see 'ironcurtain escalations'")

    def _find(self, who: Principal, role: Role, name: Name) -> Session:
        who.require(role)
        return self._manager.get(name)
