"""
The form in which an escalation lies in a directory, for programs that are not ours.

``request-<id>.json`` holds at least ``escalationId serverName toolName arguments reason``; an answer is
``response-<id>.json`` with ``decision`` approved or denied, and may carry ``argumentsDigest`` (then it must match) and
``by``. Members that we do not know are ignored.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec

from ironcurtain.audit.chain import timestamp
from ironcurtain.escalation.model import Escalation, Outcome
from ironcurtain.home.structured import convert, parse_json
from ironcurtain.text.display import one_line

RESPONSE_LIMIT = 64 * 1024
"""Most bytes of an answer that are read."""

BY_LIMIT = 64
"""Most characters of who answered that are kept; it is shown to everybody who comes later."""

_RESPONSE = re.compile(r"response-([0-9a-f-]{1,64})\.json")


class _Response(msgspec.Struct, rename="camel"):
    decision: str
    arguments_digest: str | None = None
    by: str = ""


@dataclass(frozen=True, slots=True)
class Response:
    """
    An answer from a file.

    :param digest: of the arguments that its writer saw, if it says so.
    :param by: who answered, if it says so; safe to show.
    """

    outcome: Outcome
    digest: str | None
    by: str


def request_name(escalation_id: str) -> str:
    """:returns: the file name of a request."""
    return f"request-{escalation_id}.json"


def response_name(escalation_id: str) -> str:
    """:returns: the file name of an answer."""
    return f"response-{escalation_id}.json"


def response_id(name: str) -> str | None:
    """:returns: the escalation id in the file name of an answer, or ``None`` for other names."""
    match = _RESPONSE.fullmatch(name)
    return match.group(1) if match else None


def request_file(escalation: Escalation) -> bytes:
    """:returns: the content of a request's file."""
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
        }
    )


def read_response(source: str, data: bytes) -> Response:
    """
    :param source: the file's name, for messages.
    :returns: the answer in a file.
    :raises ConfigurationError: the file holds none (yet).
    """
    response: _Response = convert(source, parse_json(source, data), _Response)
    approved = response.decision == Outcome.APPROVED
    by = one_line(response.by, BY_LIMIT)
    return Response(Outcome.APPROVED if approved else Outcome.DENIED, response.arguments_digest, by)
