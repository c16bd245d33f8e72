"""The numbers in what another host's processes say, and in what they are asked."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

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


def of_host(host: str, value: T) -> T:
    """
    :param value: from a process of a host.
    :returns: the same, with numbers that are unique here.
    """
    made: Any = value
    if isinstance(value, list):
        made = [of_host(host, each) for each in value]
    elif isinstance(value, events.Stamped):
        made = msgspec.structs.replace(value, event=of_host(host, value.event))
    elif (members := _NUMBERS.get(type(value))) is not None:
        made = msgspec.structs.replace(made, **{name: HostNumber(host, getattr(value, name)) for name in members})
    return made  # type: ignore[no-any-return]


def on_host(name: Name) -> Name:
    """:returns: the name of a session or escalation as its own host has it."""
    return name.there if isinstance(name, HostNumber) else name
