"""
The numbers and times in what another host's processes say, and the numbers in what they are asked.

Its clock need not be ours: times are moved by how far it is ahead, so that they mean the same moment here.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from ironcurtain.errors import ProtocolViolation
from ironcurtain.home.host_numbers import HostNumber
from ironcurtain.operations.model import EscalationView, Name, PermissionView
from ironcurtain.session import events
from ironcurtain.session.model import SessionInfo

T = TypeVar("T")

_NUMBERS: Mapping[type[Any], tuple[str, ...]] = MappingProxyType(
    {
        SessionInfo: ("number",),
        EscalationView: ("number", "session"),
        PermissionView: ("number", "session"),
        events.EscalationRaised: ("number",),
        events.EscalationCounted: ("number",),
        events.EscalationApproved: ("number",),
        events.EscalationClosed: ("number",),
        events.PermissionRevoked: ("number",),
    }
)
"""The members that number a session or an escalation. Others, such as those of turns, count within a session."""


_TIMES: Mapping[type[Any], tuple[str, ...]] = MappingProxyType(
    {
        EscalationView: ("raised_at", "expires_at", "closed_at"),
        PermissionView: ("since",),
        events.EscalationRaised: ("raised_at", "expires_at"),
        events.Stamped: ("time",),
    }
)
"""The members that are times, in seconds since the epoch; 0: it is unset."""

TIME_LIMIT = 1e11
"""Seconds since the epoch that no host may name: calendars end before."""

AGREEMENT_SECONDS = 2.0
"""Clocks that differ by less are taken to agree: the date of a response has whole seconds, and was on its way."""


def seconds_ahead(date: bytes, now: float) -> float:
    """
    :param date: of a response, as HTTP has it.
    :param now: seconds since the epoch.
    :returns: how far the clock of whoever answered is ahead of ours; 0: it agrees, or the date is none.
    """
    from twisted.web.http import stringToDatetime  # slow to import, and only other hosts' dates are read

    try:
        ahead = float(stringToDatetime(date)) - now
    except (ValueError, LookupError, OverflowError):
        return 0.0
    return ahead if abs(ahead) > AGREEMENT_SECONDS else 0.0


def of_host(host: str, value: T, ahead: float = 0.0) -> T:
    """
    :param value: from a process of a host.
    :param ahead: seconds by which its clock is.
    :returns: the same, with numbers that are unique here, and times of the clock here.
    :raises ProtocolViolation: a time is none.
    """
    if isinstance(value, list):
        return [of_host(host, each, ahead) for each in value]  # type: ignore[return-value]
    made: dict[str, Any] = {name: HostNumber(host, getattr(value, name)) for name in _NUMBERS.get(type(value), ())}
    made |= {name: _time(getattr(value, name), ahead) for name in _TIMES.get(type(value), ())}
    if isinstance(value, events.Stamped):
        made["event"] = of_host(host, value.event, ahead)
    elif isinstance(value, SessionInfo):
        made["started_at"] = _moment(value.started_at, ahead)
    return msgspec.structs.replace(value, **made) if made else value  # type: ignore[type-var]


def _time(time: float, ahead: float) -> float:
    if not 0 <= time < TIME_LIMIT:
        raise ProtocolViolation("fleet", f"no time: {time}")
    return max(0.0, time - ahead) if time else time


def _moment(text: str, ahead: float) -> str:
    from ironcurtain.audit.chain import timestamp  # slow to import with its package, and only for other hosts

    try:
        return timestamp(_time(datetime.fromisoformat(text).timestamp(), ahead))
    except (ValueError, OverflowError):
        raise ProtocolViolation("fleet", "a session that began at no time") from None


def on_host(name: Name) -> Name:
    """:returns: the name of a session or escalation as its own host has it."""
    return name.there if isinstance(name, HostNumber) else name
