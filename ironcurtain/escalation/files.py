"""
The file format of escalations, for other programs.

``request-<id>.json`` has at least ``escalationId serverName toolName arguments reason``. A response is
``response-<id>.json`` with ``decision`` (``approved`` or ``denied``), and optionally ``argumentsDigest``, which must
match, and ``by``. A request with ``form`` can be denied so, and is answered by the control API. Unknown members are
ignored.
"""

from __future__ import annotations

import re

import msgspec

from ironcurtain.audit.chain import timestamp
from ironcurtain.escalation.model import Escalation, Outcome
from ironcurtain.home.parsing import parse_json
from ironcurtain.home.structured import convert
from ironcurtain.text.display import one_line

RESPONSE_LIMIT = 64 * 1024
"""Maximum size of a response in bytes."""

BY_LIMIT = 64
"""Maximum length of ``by`` in characters. A longer one is cut."""

_RESPONSE = re.compile(r"response-([0-9a-f-]{1,64})\.json")


class _Response(msgspec.Struct, rename="camel"):
    decision: str
    arguments_digest: str | None = None
    by: str = ""


class FileResponse(msgspec.Struct, frozen=True):
    """
    A response from a file.

    :param digest: the digest of the arguments that its writer saw, if it has one.
    :param by: who answered, escaped for display; empty if the file does not say.
    """

    outcome: Outcome
    digest: str | None
    by: str


def request_name(escalation_id: str) -> str:
    """:returns: the file name of a request."""
    return f"request-{escalation_id}.json"


def response_name(escalation_id: str) -> str:
    """:returns: the file name of a response."""
    return f"response-{escalation_id}.json"


def response_id(name: str) -> str | None:
    """:returns: the escalation id in the file name of a response, or ``None`` for other names."""
    match = _RESPONSE.fullmatch(name)
    return match.group(1) if match else None


def request_file(escalation: Escalation) -> bytes:
    """:returns: the content of a request file."""
    request = escalation.request
    return msgspec.json.encode(
        {
            "escalationId": escalation.id,
            "serverName": request.server,
            "toolName": request.tool,
            "arguments": request.arguments,
            "reason": request.reason,
            "number": escalation.number,
            "sessionId": request.session_id,
            "rule": request.rule,
            "argumentsDigest": request.digest,
            "policyVersion": request.policy_version,
            "raisedAt": timestamp(escalation.raised_at),
            "expiresAt": timestamp(escalation.expires_at),
            "calls": escalation.calls,
            "approvals": request.approvals,
            "approvedBy": escalation.approved_by,
            **({} if request.form is None else {"form": request.form}),
        }
    )


def read_response(source: str, data: bytes) -> FileResponse:
    """
    :param source: the file's name, for messages.
    :returns: the response in a file.
    :raises ConfigurationError: the file is not valid, or not completely written yet.
    """
    response: _Response = convert(source, parse_json(source, data), _Response)
    approved = response.decision == Outcome.APPROVED
    by = one_line(response.by, BY_LIMIT)
    return FileResponse(Outcome.APPROVED if approved else Outcome.DENIED, response.arguments_digest, by)
