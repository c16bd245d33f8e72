"""Request bodies and errors of the control API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from ironcurtain.errors import (
    ConfigurationError,
    IronCurtainError,
    NotAllowed,
    NotFound,
    NotShown,
    SessionError,
    StaleDecision,
    Unavailable,
    UsageError,
)
from ironcurtain.home.sections import Budget
from ironcurtain.operations import Principal, Role
from ironcurtain.operations.model import DECISION_SECONDS
from ironcurtain.operations.principal import NAME_LIMIT
from ironcurtain.terminal.model import Mode
from ironcurtain.text.display import paragraphs, shorten

if TYPE_CHECKING:
    from twisted.web.server import Request

    from ironcurtain.session.model import SessionRequest

BODY_LIMIT = 8 * 1024 * 1024
"""Maximum size in bytes of a request's body (far more than a prompt that a person pastes)."""

_STATUS: tuple[tuple[type[IronCurtainError], int], ...] = (
    (UsageError, 400),
    (NotAllowed, 403),
    (NotFound, 404),
    (StaleDecision, 409),
    (NotShown, 409),
    (SessionError, 409),
    (ConfigurationError, 422),
)


class StartBody(msgspec.Struct, forbid_unknown_fields=True):
    """
    Start a session; ``kind`` is the agent, or empty for the default one; ``workspace`` is an absolute path, or empty
    for a new directory; ``resume`` is the id of an ended session to resume; ``terminal`` is the columns and rows of a
    terminal in which the agent shows its own screen, or null; ``typed`` is what of the task a person typed; ``budget``
    has limits besides those of the settings; if not ``attended``, what the policy escalates is denied at once.
    """

    kind: str
    task: str = ""
    workspace: str = ""
    options: dict[str, Any] = {}
    resume: str = ""
    terminal: tuple[int, int] | None = None
    typed: str = ""
    budget: Budget | None = None
    attended: bool = True


def start_body(request: SessionRequest, attended: bool = True) -> StartBody:
    """:returns: what asks for a session; its escalations are denied at once if it is not ``attended``."""
    return StartBody(
        request.kind,
        request.task,
        str(request.workspace) if request.workspace is not None else "",
        dict(request.options),
        request.resume,
        request.terminal,
        request.typed,
        request.budget,
        attended,
    )


class AttachBody(msgspec.Struct, forbid_unknown_fields=True):
    """Request a token to attach to a session's terminal, to ``drive`` or to ``observe`` it."""

    mode: Mode


class MessageBody(msgspec.Struct, forbid_unknown_fields=True):
    """Send a session a message; ``typed`` is what of it a person typed, and neither pasted nor piped in."""

    text: str
    typed: str = ""


class WithdrawBody(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Take back the message with this number in the queue; 0: the newest."""

    number: Annotated[int, msgspec.Meta(ge=0)] = 0


class UndoBody(msgspec.Struct, forbid_unknown_fields=True):
    """
    Restore the workspace of a session from the ``snapshot`` with this number; with ``everything`` also what others than
    the agent have changed since.
    """

    snapshot: Annotated[int, msgspec.Meta(ge=1)]
    everything: bool = False


class DecisionBody(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """
    Answer an escalation: ``approved`` or ``denied``; ``digest`` is that of the arguments shown, ``calls`` the number of
    equal calls shown; with ``keep`` an approval covers all calls of its scope.
    """

    decision: str
    digest: str | None = None
    keep: bool = False
    calls: Annotated[int, msgspec.Meta(ge=1)] | None = None


class AnswerBody(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Answer a form: ``content`` has its values, null cancels it; ``digest`` is that of the form shown."""

    content: dict[str, Any] | None
    digest: str | None = None


class ShownBody(msgspec.Struct, forbid_unknown_fields=True):
    """
    Report that an escalation was shown completely: the ``digest`` of its arguments, and how many equal ``calls``
    waited.
    """

    digest: str
    calls: Annotated[int, msgspec.Meta(ge=1)] = 1


class DenyAllBody(msgspec.Struct, forbid_unknown_fields=True):
    """Deny all pending escalations, or those of one ``session``, by its number or id."""

    session: str = ""


NAME_HEADER, ROLES_HEADER = "ironcurtain-name", "ironcurtain-roles"
"""
Headers with which a process of the home acts for a principal at another process: the name for the audit log, and the
roles, separated by commas. Without them the local user acts.
"""


UNTIL_HEADER = "ironcurtain-until"
"""
Header of a decision with the end of the time in which it counts, on the monotonic clock of this machine: whoever made
it is told then that it was not answered, and a process that was stopped must not carry it out when it goes on.
"""


class RemoteError(IronCurtainError):
    """An error of the process behind the control API, with its code and exit status."""

    def __init__(self, code: str, message: str, exit_status: int) -> None:
        super().__init__(message)
        self.code, self.exit_status = code, exit_status


class _Error(msgspec.Struct):
    code: str
    message: str
    exit_status: int = 1


class _ErrorBody(msgspec.Struct):
    error: _Error


def error_status(error: IronCurtainError) -> int:
    """:returns: the HTTP status for an error."""
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def error_body(error: IronCurtainError) -> bytes:
    """:returns: the HTTP body for an error."""
    return msgspec.json.encode(_ErrorBody(_Error(error.code, str(error), error.exit_status)))


def read_error(body: bytes) -> RemoteError:
    """:returns: the error in an HTTP body. Whoever answers may be of another host, and chooses no success."""
    try:
        error = msgspec.json.decode(body, type=_ErrorBody).error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return RemoteError("PROTOCOL", "the process behind the control socket gave no proper answer", 76)
    return RemoteError(error.code, paragraphs(error.message), error.exit_status if 0 < error.exit_status < 126 else 1)


def until(method: str, path: str, now: float) -> dict[str, str]:
    """:returns: the header of a request that is made now, if it decides something, or ends it."""
    decides = method == "DELETE" or (method == "POST" and path.startswith("/v1/escalations/"))
    return {UNTIL_HEADER: f"{now + DECISION_SECONDS:.3f}"} if decides else {}


def require_time(request: Request, now: float) -> None:
    """
    :raises UsageError: the time in which a decision counts is no number.
    :raises Unavailable: it is over.
    """
    text = request.getHeader(UNTIL_HEADER) or "inf"
    try:
        is_over = not now <= float(text)
    except ValueError:
        raise UsageError(f"{UNTIL_HEADER} must be a number") from None
    if is_over:
        raise Unavailable("this was asked too long ago, and was not done: ask again")


def principal_headers(who: Principal) -> dict[str, str]:
    """:returns: the headers of a request that say for whom it is made."""
    return {NAME_HEADER: who.name, ROLES_HEADER: ",".join(who.roles)}


def claimed_principal(request: Request) -> Principal | None:
    """
    :returns: whom a request is made for, as it says itself; ``None``: it does not say.
    :raises NotAllowed: a role does not exist.
    """
    name, roles = (request.getHeader(each) or "" for each in (NAME_HEADER, ROLES_HEADER))
    if not name:
        return None
    try:
        granted = frozenset(map(Role, filter(None, roles.split(","))))
    except ValueError as e:
        raise NotAllowed(str(e)) from None
    return Principal(shorten(name, NAME_LIMIT), granted)
