"""
What another host's processes say, with numbers and times that mean something here, and the numbers in what they are
asked. A host may lie: what cannot be shown or calculated with is refused, so that it harms only its own sessions.

Its clock need not be ours: times are moved by how far it is ahead, so that they mean the same moment here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from ironcurtain.errors import ProtocolViolation
from ironcurtain.escalation.model import Outcome
from ironcurtain.home.host_numbers import NUMBERS, HostNumber
from ironcurtain.operations.model import EscalationView, Name, PermissionView
from ironcurtain.session import events
from ironcurtain.session.model import SessionInfo
from ironcurtain.text.display import shorten

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

TEXT_LIMIT = 1000
"""Maximum number of characters of a text about a session, which is shown on one line."""

LIST_LIMIT = 10_000
"""Maximum number of members of a list."""

DEPTH_LIMIT = 100
"""How deep values may be nested that somebody walks through."""

_DIGEST = re.compile(r"[0-9a-f]{64}")
_OUTCOMES = frozenset(("", *Outcome))

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
    :raises ProtocolViolation: something in it is not what it should be.
    """
    if isinstance(value, list):
        if len(value) > LIST_LIMIT:
            raise ProtocolViolation("fleet", f"a list of {len(value)}")
        return [of_host(host, each, ahead) for each in value]  # type: ignore[return-value]
    _check_sizes(value)
    made: dict[str, Any] = {name: HostNumber(host, getattr(value, name)) for name in _NUMBERS.get(type(value), ())}
    made |= {name: _time(getattr(value, name), ahead) for name in _TIMES.get(type(value), ())}
    if isinstance(value, events.Stamped):
        made["event"] = of_host(host, value.event, ahead)
    elif isinstance(value, SessionInfo):
        texts = {name: _shown(member) for name, member in msgspec.structs.asdict(value).items() if name != "options"}
        made = {**texts, **made, "started_at": _moment(value.started_at, ahead)}
    elif isinstance(value, EscalationView):
        if _DIGEST.fullmatch(value.digest) is None or value.outcome not in _OUTCOMES:
            raise ProtocolViolation("fleet", "a call with no digest, or an outcome that is none")
        made |= {name: _shown(getattr(value, name)) for name in ("by", "approved_by", "undo")}
    return msgspec.structs.replace(value, **made) if made else value  # type: ignore[type-var]


def _check_sizes(value: Any, depth: int = 0) -> None:
    """:raises ProtocolViolation: it is nested too deep, or has a number that nobody can count to."""
    if depth > DEPTH_LIMIT or (isinstance(value, int) and abs(value) >= NUMBERS << 10):
        raise ProtocolViolation("fleet", "a value that is too large")
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.asdict(value)
    for member in value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
        _check_sizes(member, depth + 1)


def _shown(value: Any) -> Any:
    """:returns: what is about a session, with texts that can be shown."""
    if isinstance(value, str):
        return shorten(value, TEXT_LIMIT)
    if isinstance(value, tuple):
        return tuple(map(_shown, value))
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.replace(value, **_shown(msgspec.structs.asdict(value)))
    return {_shown(name): _shown(member) for name, member in value.items()} if isinstance(value, dict) else value


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
