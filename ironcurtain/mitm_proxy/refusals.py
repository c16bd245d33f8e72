"""
What an agent hears when its request is not passed on: the reason, in the shape of the provider's own errors.

Agents show the message of such an error to the person, so it says who refused and why. The status is never 401, which
makes clients ask for another key, or try again for minutes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, Literal

import msgspec

Dialect = Literal["anthropic", "openai", "google", "other"]
"""Whose shapes of requests, errors and token counts a provider uses."""

REASON_LIMIT: Final = 500
"""Most characters of a reason; paths and names in it come from the agent."""

_ANTHROPIC_TYPES: Final = {403: "permission_error", 413: "request_too_large", 503: "overloaded_error"}
_GOOGLE_STATUSES: Final = {403: "PERMISSION_DENIED", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}


@dataclass(frozen=True, slots=True)
class Refusal:
    """
    A request that is not passed on.

    :ivar status: of the answer; 426 for an upgrade.
    :ivar code: a stable word for programs.
    :ivar reason: for people; one sentence that says what was wrong, and what to do where something can be done.
    """

    status: int
    code: str
    reason: str


def response(refusal: Refusal, dialect: Dialect, *, close: bool = False) -> bytes:
    """
    :param close: whether the connection ends after it.
    :returns: the whole answer, head and body.
    """
    body = msgspec.json.encode(_BODIES[dialect](refusal, f"IronCurtain: {refusal.reason[:REASON_LIMIT]}"))
    connection = (["upgrade"] if refusal.status == HTTPStatus.UPGRADE_REQUIRED else []) + (["close"] if close else [])
    head = [
        f"HTTP/1.1 {refusal.status} {HTTPStatus(refusal.status).phrase}",
        "content-type: application/json",
        f"content-length: {len(body)}",
    ]
    if refusal.status < HTTPStatus.INTERNAL_SERVER_ERROR:
        head.append("x-should-retry: false")  # heeded by the SDKs of Anthropic and OpenAI
    if refusal.status == HTTPStatus.UPGRADE_REQUIRED:
        head.append("upgrade: HTTP/1.1")  # a 426 has to name a protocol (RFC 9110 section 15.5.22)
    if connection:
        head.append(f"connection: {', '.join(connection)}")
    return "\r\n".join([*head, "", ""]).encode("ascii") + body


def _anthropic(refusal: Refusal, message: str) -> dict[str, Any]:
    kind = _ANTHROPIC_TYPES.get(refusal.status, "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": message}}


def _openai(refusal: Refusal, message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": refusal.code}}


def _google(refusal: Refusal, message: str) -> dict[str, Any]:
    status = _GOOGLE_STATUSES.get(refusal.status, "INVALID_ARGUMENT")
    return {"error": {"code": refusal.status, "message": message, "status": status}}


def _other(refusal: Refusal, message: str) -> dict[str, Any]:
    return {"error": {"code": refusal.code, "message": message}}


_BODIES: Final[dict[Dialect, Callable[[Refusal, str], dict[str, Any]]]] = {
    "anthropic": _anthropic,
    "openai": _openai,
    "google": _google,
    "other": _other,
}
