"""The operations on the sessions of one process."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from ironcurtain.errors import NotFound, NotShown, StaleDecision
from ironcurtain.escalation import Escalation, Outcome
from ironcurtain.operations.model import EscalationView, PermissionView, Reloaded, permission_view, view
from ironcurtain.operations.principal import Principal, Role
from ironcurtain.session.events import Stamped
from ironcurtain.session.manager import SessionManager
from ironcurtain.session.model import Reply, SessionInfo, SessionRequest, Ticket, Turn
from ironcurtain.session.session import Session
from ironcurtain.terminal.hub import Hub
from ironcurtain.terminal.model import Mode

Name = int | str
"""A session's number or id."""

LOOK = "'ironcurtain escalations show {0}' shows it (over SSH: escalations show {0})"
"""How to see an escalation whole."""

_NEEDED = {Mode.DRIVE: Role.ATTACH, Mode.OBSERVE: Role.VIEW}


class Operations:
    """
    List, watch, decide, send, attach, stop, audit.

    Every method raises :class:`~ironcurtain.errors.NotAllowed` if the principal lacks the role, and
    :class:`~ironcurtain.errors.NotFound` if this process has no such session or escalation.

    :param reload: reads the files that people write again, or raises
        :class:`~ironcurtain.errors.ConfigurationError`; without it there are none.
    """

    log = Logger()

    def __init__(self, manager: SessionManager, reload: Callable[[], Reloaded] = Reloaded) -> None:
        self._manager, self._reload = manager, reload
        self._shown: dict[tuple[str, int], int] = {}
        """To whom which escalation that waits was shown whole, and how many equal calls there were."""

    def sessions(self, who: Principal) -> list[SessionInfo]:
        """:returns: all sessions, newly closed ones among them."""
        who.require(Role.VIEW)
        return [session.info for session in self._manager.all()]

    def session(self, who: Principal, name: Name) -> SessionInfo:
        """:returns: one session."""
        return self._find(who, Role.VIEW, name).info

    async def start(
        self, who: Principal, request: SessionRequest, made: Callable[[Session], None] = lambda session: None
    ) -> SessionInfo:
        """
        Start a session, whose escalations wait for a person for their full time.

        :param made: gets it before it starts, so that its events can be seen meanwhile.
        :raises UsageError: a command of its own has to start it, as it does loops.
        """
        who.require(Role.ADMIN)
        return (await self._manager.create(request, made=made, remote=True)).info

    def send(self, who: Principal, name: Name, message: str) -> Deferred[Reply]:
        """
        Give a session a message.

        :returns: fires with the reply; cancelling it cancels the message.
        :raises SessionError: it is not ready.
        """
        return self._find(who, Role.ATTACH, name).send(message)

    def cancel(self, who: Principal, name: Name) -> bool:
        """:returns: whether there was a message to cancel."""
        return self._find(who, Role.ATTACH, name).cancel()

    def terminal(self, who: Principal, name: Name, mode: Mode) -> Hub:
        """
        Attach to a session's terminal, which is recorded.

        :param mode: to drive needs the role ``attach``, to observe ``view``.
        :raises SessionError: it has none, or is not ready.
        """
        return self._find(who, _NEEDED[mode], name).shared_terminal.attach(who.name, mode)

    def ticket(self, who: Principal, name: Name, mode: Mode) -> Ticket:
        """
        :param mode: as for :meth:`terminal`.
        :returns: what lets another process attach for somebody.
        :raises SessionError: the session has no terminal, or is not ready.
        """
        return self._find(who, _NEEDED[mode], name).shared_terminal.ticket(who.name, mode)

    def hold(self, who: Principal, name: Name) -> None:
        """Tie a session to whoever started it, unless it was released already: see ``held`` of :meth:`stop`."""
        session = self._find(who, Role.ATTACH, name)
        session.ends_with_owner = session.ends_with_owner is not False

    def release(self, who: Principal, name: Name) -> SessionInfo:
        """Have a session go on without whoever started it."""
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
        :returns: the session; it is not closed if it goes on.
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
        :param wake: is called after each event of a session.
        :returns: call it to be woken no more.
        """
        session = self._find(who, Role.VIEW, name)

        def wake_safely() -> None:
            try:
                wake()
            except Exception:  # a front end's trouble must not become the session's
                self.log.failure("a reader of session {number} failed", number=session.number)

        return session.events.watch(wake_safely)

    def escalations(self, who: Principal, closed: bool = False, after: int = 0) -> list[EscalationView]:
        """
        :param closed: also those that have their outcome.
        :param after: of these, only those with a greater number of closing.
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
        An escalation was shown whole to somebody, who may approve it by its number from now on.

        :param digest: of the arguments that were shown.
        :param calls: how many equal calls waited for it then.
        :raises StaleDecision: it has an outcome already, or has other arguments.
        """
        who.require(Role.VIEW)
        session, _ = self._escalation(number)
        waiting = {each.number: each for each in session.escalations.pending()}
        if number not in waiting or waiting[number].request.digest != digest:
            raise StaleDecision(f"escalation {number} waits no more, or has other arguments: look again")
        pending = {each.number for known in self._manager.all() for each in known.escalations.pending()}
        self._shown = {key: seen for key, seen in self._shown.items() if key[1] in pending}
        self._shown[who.name, number] = min(calls, waiting[number].calls)

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
        Answer an escalation. There is exactly one winner; everybody else is told who it was.

        :param digest: of the arguments that were shown. Without it, an approval counts only from somebody to whom the
            escalation was shown whole.
        :param keep: whether an approval stands for all calls of the scope that was shown.
        :param calls: how many equal calls were shown, where that is known: no more are approved.
        :raises UsageError: it cannot be kept; nothing is decided then.
        :raises NotShown: it was not shown.
        :raises StaleDecision: it has an outcome already, or other arguments were shown.
        """
        who.require(Role.APPROVE)
        session, known = self._escalation(number)
        if outcome is Outcome.APPROVED and digest is None and known.outcome is None:
            if (seen := self._shown.get((who.name, number))) is None:
                raise NotShown(f"escalation {number} was not shown to you whole: {LOOK.format(number)}")
            calls = seen if calls is None else min(calls, seen)
        decided = session.escalations.decide(number, outcome, who.name, digest, keep, calls)
        return view(decided, session.number, session.label)

    def deny_all(self, who: Principal, name: Name | None = None) -> list[int]:
        """
        Deny all that waits.

        :param name: of one session, if not of all.
        :returns: the numbers of the escalations.
        """
        who.require(Role.APPROVE)
        sessions = self._manager.all() if name is None else [self._manager.get(name)]
        return sorted(number for session in sessions for number in session.escalations.deny_all(who.name))

    def permissions(self, who: Principal) -> list[PermissionView]:
        """:returns: the approvals of all sessions that were kept and still stand, oldest first."""
        who.require(Role.VIEW)
        views = [
            permission_view(permission, session.id, session.number, session.label)
            for session in self._manager.all()
            for permission in session.escalations.permissions()
        ]
        return sorted(views, key=lambda permission: permission.number)

    def revoke(self, who: Principal, number: int) -> PermissionView:
        """
        Have people asked again about what the approval of an escalation permits.

        :returns: what stands no more.
        """
        who.require(Role.APPROVE)
        for session in self._manager.all():
            if any(permission.number == number for permission in session.escalations.permissions()):
                revoked = session.escalations.revoke(number, who.name)
                return permission_view(revoked, session.id, session.number, session.label)
        raise NotFound(f"there is no permission {number} here: see 'ironcurtain permissions'")

    def reload(self, who: Principal) -> Reloaded:
        """
        Read the files that people write again, for sessions that start from now on.

        :raises ConfigurationError: one of them is wrong; then nothing changes.
        """
        who.require(Role.ADMIN)
        return self._reload()

    def _escalation(self, number: int) -> tuple[Session, Escalation]:
        for session in self._manager.all():
            for escalation in session.escalations.pending() + session.escalations.history():
                if escalation.number == number:
                    return session, escalation
        raise NotFound(f"there is no escalation {number} here: see 'ironcurtain escalations'")

    def _find(self, who: Principal, role: Role, name: Name) -> Session:
        who.require(role)
        return self._manager.get(name)
