"""
The control API's client without its transport: what is one request and one answer.

It imports no event loop, so that commands that only ask something start in a fraction of the time.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import msgspec

from ironcurtain.control import wire
from ironcurtain.control.host_numbers import of_host, on_host
from ironcurtain.errors import ProtocolViolation, Unavailable
from ironcurtain.escalation import Outcome
from ironcurtain.home.host_numbers import HostNumber
from ironcurtain.operations import Principal
from ironcurtain.operations.model import EscalationView, Name, PermissionView, Reloaded
from ironcurtain.operations.principal import owner
from ironcurtain.session.model import Cancelled, Reply, SessionInfo, Ticket, Turn, Usage
from ironcurtain.terminal.model import Mode
from ironcurtain.text.display import shorten

if TYPE_CHECKING:
    from ironcurtain.session.snapshots import UndoReport

ANSWER_LIMIT = 64 * 1024 * 1024
"""Maximum number of bytes of an answer (the longest is the history of a session): a process can be of another host."""

REFUSAL_LIMIT = 1000
"""Maximum number of characters that another host says in a refusal."""

T = TypeVar("T")


class Ended(Unavailable):
    """Nothing accepts connections, although the socket of a process may exist: it was killed, or is ending."""


class _Reply(msgspec.Struct):
    text: str
    usage: Usage


def session_path(name: Name) -> str:
    """:returns: the path of a session in the API of its own host."""
    return f"/v1/sessions/{quote(str(on_host(name)), safe='')}"


class ControlCalls(ABC):
    """
    The operations of another process.

    Every method raises :class:`~ironcurtain.errors.Unavailable` if the process is gone, and
    :class:`~ironcurtain.control.wire.RemoteError` if it refuses.

    :ivar path: path of its control socket.
    :param who: the principal, if not the local user.
    :ivar host: the name of its host; empty: this one.
    """

    def __init__(self, path: str, who: Principal | None = None, host: str = "") -> None:
        self.path, self.host = path, host
        self._ahead = 0.0
        """Seconds by which the host's clock is ahead, as its last answer said."""
        who = who or (owner() if host else None)
        self._headers: dict[str, str] = {} if who is None else wire.principal_headers(who)

    async def sessions(self) -> list[SessionInfo]:
        """:returns: all sessions of that process."""
        return await self._call("GET", "/v1/sessions", list[SessionInfo])

    async def send(self, name: Name, message: str, typed: str = "") -> Reply:
        """See :meth:`ironcurtain.operations.api.SessionApi.send`."""
        reply = await self._call("POST", f"{session_path(name)}/messages", _Reply, wire.MessageBody(message, typed))
        return Reply(reply.text, reply.usage)

    async def cancel(self, name: Name) -> Cancelled:
        """See :meth:`ironcurtain.operations.api.SessionApi.cancel`."""
        return await self._call("POST", f"{session_path(name)}/cancel", Cancelled)

    async def withdraw(self, name: Name, number: int = 0) -> str:
        """See :meth:`ironcurtain.operations.api.SessionApi.withdraw`."""
        answer = await self._call("POST", f"{session_path(name)}/withdraw", dict[str, str], wire.WithdrawBody(number))
        return answer["text"]

    async def undo(self, name: Name, snapshot: int, everything: bool = False) -> UndoReport:
        """See :meth:`ironcurtain.operations.api.SessionApi.undo`."""
        from ironcurtain.session.snapshots import UndoReport  # with what it imports, slow to import

        return await self._call("POST", f"{session_path(name)}/undo", UndoReport, wire.UndoBody(snapshot, everything))

    async def session(self, name: Name) -> SessionInfo:
        """:returns: one session."""
        return await self._call("GET", session_path(name), SessionInfo)

    async def ticket(self, name: Name, mode: Mode) -> Ticket:
        """:returns: a ticket for attaching to a session's terminal."""
        ticket = await self._call("POST", f"{session_path(name)}/terminal", Ticket, wire.AttachBody(mode))
        return msgspec.structs.replace(ticket, socket=self.path) if self.host else ticket

    async def stop(self, name: Name, held: bool = False) -> SessionInfo:
        """
        End a session.

        :param held: only if it was not released since it was held.
        :returns: the session; it is not closed if it continues.
        """
        return await self._call("DELETE", f"{session_path(name)}?held={int(held)}", SessionInfo)

    async def join(self, name: Name) -> SessionInfo:
        """Take part in a conversation, which releases it."""
        return await self._call("POST", f"{session_path(name)}/join", SessionInfo)

    async def release(self, name: Name) -> SessionInfo:
        """Let a session continue without the client that holds it."""
        return await self._call("POST", f"{session_path(name)}/release", SessionInfo)

    async def history(self, name: Name) -> list[Turn]:
        """:returns: the turns so far."""
        return await self._call("GET", f"{session_path(name)}/history", list[Turn])

    async def escalations(self, closed: bool = False, after: int = 0) -> list[EscalationView]:
        """:returns: the pending escalations; with ``closed`` also those closed after that number."""
        return await self._call("GET", f"/v1/escalations?closed={int(closed)}&after={after}", list[EscalationView])

    async def shown(self, number: int, digest: str, calls: int = 1) -> None:
        """Report that an escalation was shown completely, so that it may be approved by its number."""
        body = wire.ShownBody(digest, calls)
        await self._call("POST", f"/v1/escalations/{on_host(number)}/shown", dict[str, str], body)

    async def decide(
        self,
        number: int,
        outcome: Outcome,
        digest: str | None = None,
        keep: bool = False,
        calls: int | None = None,
    ) -> EscalationView:
        """Answer an escalation; with ``keep``, an approval covers all calls of its scope."""
        body = wire.DecisionBody(outcome.value, digest, keep, calls)
        return await self._call("POST", f"/v1/escalations/{on_host(number)}", EscalationView, body)

    async def answer(self, number: int, content: Mapping[str, Any] | None, digest: str | None = None) -> EscalationView:
        """Answer a form; without content it is cancelled."""
        body = wire.AnswerBody(None if content is None else dict(content), digest)
        return await self._call("POST", f"/v1/escalations/{on_host(number)}/answer", EscalationView, body)

    async def deny_all(self, name: Name | None = None) -> list[int]:
        """Deny all pending escalations, or those of one session; returns their numbers."""
        body = wire.DenyAllBody("" if name is None else str(on_host(name)))
        denied = (await self._call("POST", "/v1/escalations/deny-all", dict[str, list[int]], body))["denied"]
        return [HostNumber(self.host, number) for number in denied] if self.host else denied

    async def permissions(self) -> list[PermissionView]:
        """:returns: the kept approvals in force."""
        return await self._call("GET", "/v1/permissions", list[PermissionView])

    async def revoke(self, number: int) -> PermissionView:
        """Revoke a kept approval."""
        return await self._call("DELETE", f"/v1/permissions/{on_host(number)}", PermissionView)

    async def reload(self) -> Reloaded:
        """Make that process read its configuration files again."""
        return await self._call("POST", "/v1/reload", Reloaded)

    async def read(self, path: str, type_: type[T]) -> T:
        """:returns: what that process answers at another path of the API."""
        return await self._call("GET", path, type_)

    async def ask(self, path: str, type_: type[T], body: msgspec.Struct | None = None) -> T:
        """:returns: what that process answers to a request at another path of the API, which changes something."""
        return await self._call("POST", path, type_, body)

    async def content(self, path: str, limit: int) -> bytes:
        """
        :param limit: maximum number of bytes.
        :returns: what that process answers at another path of the API, as it is.
        """
        return await self._content("GET", path, None, limit)

    async def _call(self, method: str, path: str, type_: type[T], body: msgspec.Struct | None = None) -> T:
        content = await self._content(method, path, body)
        try:
            return self._from_host(msgspec.json.decode(content, type=type_))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            text = f"the process behind {self.path} gave no proper answer: is it of another version?"
            raise wire.RemoteError(ProtocolViolation.code, text, 76) from None

    @abstractmethod
    async def _content(self, method: str, path: str, body: msgspec.Struct | None, limit: int | None = None) -> bytes:
        """
        :param limit: maximum number of bytes of an answer, if not :data:`ANSWER_LIMIT`.
        :returns: the answer, if its status is 200.
        """

    def _from_host(self, value: T) -> T:
        return of_host(self.host, value, self._ahead) if self.host else value

    def _headers_of(self, method: str, path: str) -> dict[str, str]:
        """:returns: the headers of a request."""
        return self._headers | wire.until(method, path, time.monotonic())

    def _refusal(self, content: bytes) -> wire.RemoteError:
        """:returns: the error in an answer."""
        error = wire.read_error(content)
        if self.host:
            return wire.RemoteError(error.code, shorten(str(error), REFUSAL_LIMIT), error.exit_status)
        return error

    def _ended(self) -> Ended:
        return Ended(f"the process behind {self.path} does not answer: it was killed, or is ending")

    def _unavailable(self, why: str) -> Unavailable:
        return Unavailable(f"the process behind {self.path} does not answer: {why}")
