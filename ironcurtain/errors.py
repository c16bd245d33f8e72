"""
The errors of IronCurtain: one root, one class for each way a caller can react.

The message of an error is for people: what happened, and what to do. ``exit_status`` is the exit status of a command
that ends with the error (sysexits.h, where one fits).
"""

from __future__ import annotations


class IronCurtainError(Exception):
    """Root. Catch this at a service boundary; never raise it itself."""

    exit_status = 1
    code = "FAILED"
    """A stable code for programs; messages may change, codes do not."""


class UsageError(IronCurtainError):
    """The request makes no sense. Nothing was done."""

    exit_status = 64
    code = "USAGE"


class ConfigurationError(IronCurtainError):
    """A configuration file is wrong. The message names file, field and, if known, line."""

    exit_status = 78
    code = "CONFIGURATION"

    def __init__(self, source: str, detail: str, *, field: str = "", line: int | None = None) -> None:
        place = source if line is None else f"{source}:{line}"
        super().__init__(f"{place}: {field}: {detail}" if field else f"{place}: {detail}")
        self.source, self.detail, self.field, self.line = source, detail, field, line


class NotFound(IronCurtainError):
    """The session, escalation or record does not exist, or no longer exists."""

    exit_status = 69
    code = "NOT_FOUND"


class NotAllowed(IronCurtainError):
    """The principal lacks the role for this, or the session belongs to somebody else."""

    exit_status = 77
    code = "NOT_ALLOWED"


class Unavailable(IronCurtainError):
    """Something required is not available now: a program, a server, a lock held by another process."""

    exit_status = 69
    code = "UNAVAILABLE"


class ProtocolViolation(IronCurtainError):
    """The peer broke the wire protocol. Answer or disconnect; never guess the meaning."""

    code = "PROTOCOL"

    def __init__(self, protocol: str, detail: str) -> None:
        super().__init__(f"{protocol}: {detail}")
        self.protocol, self.detail = protocol, detail


class AuditUnavailable(IronCurtainError):
    """The audit log cannot be written. Nothing further may happen in its session."""

    exit_status = 74
    code = "AUDIT_UNAVAILABLE"


class StaleDecision(IronCurtainError):
    """An answer arrived for an escalation that is already decided, expired or withdrawn, or for other arguments."""

    code = "STALE_DECISION"


class NotShown(IronCurtainError):
    """An approval came from somebody to whom the call was not shown completely. Nothing was decided."""

    code = "NOT_SHOWN"


class SessionError(IronCurtainError):
    """
    A session cannot do this in its state.

    :param code: ``SESSION_NOT_READY``, ``SESSION_CLOSED``, ``SESSION_INIT_FAILED`` or ``MESSAGE_FAILED``.
    :param partial: the part of an answer that came before the failure.
    """

    def __init__(self, code: str, detail: str, *, partial: str = "") -> None:
        super().__init__(detail)
        self.code, self.partial = code, partial


class AccountLimitReached(SessionError):
    """
    A limit of the account that pays for the model ended a message.

    :param seconds: until the limit ends.
    """

    def __init__(self, detail: str, seconds: float) -> None:
        super().__init__("MESSAGE_FAILED", detail)
        self.seconds = seconds
