"""What the operations give back, in lines for people; safe for a terminal. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ironcurtain.display import ago, json_line, one_line
from ironcurtain.operations.model import EscalationView, PermissionView

ARGUMENT_LIMIT = 2000
"""Most characters of one argument, or of the reason, that are shown; the digest covers all arguments."""

NAME_LIMIT = 64
"""Most characters of a name."""


def escalation_lines(view: EscalationView, now: float) -> Iterator[str]:
    """
    :param now: seconds since the epoch.
    :returns: all that an escalation would do, and until when it waits or what became of it.
    """
    state = f"{ago(view.expires_at - now)} left"
    if view.outcome:
        state = f"{view.outcome}{f' by {one_line(view.by, NAME_LIMIT)}' if view.by else ''}"
    yield f"{view.number}  {_tool(view)}  ({state})"
    for name, value in view.arguments.items():
        yield f"   {one_line(name, NAME_LIMIT)} = {_argument(value)}"
    yield f"   why: {one_line(view.reason, ARGUMENT_LIMIT)} [{one_line(view.rule, NAME_LIMIT)}]"
    if view.scope and not view.outcome:
        yield f"   an approval can be kept for: {scope_words(view.scope)}"
    yield f"   session {view.session}, {one_line(view.label, 80)}; digest {view.digest[:16]}"


def decided(view: EscalationView) -> str:
    """:returns: what a decision did."""
    kept = f" From now on nobody is asked about: {scope_words(view.scope)}." if view.kept else ""
    return f"{view.outcome.capitalize()}: {_tool(view)} in session {view.session}.{kept}"


def permission_lines(view: PermissionView, now: float) -> Iterator[str]:
    """
    :param now: seconds since the epoch.
    :returns: what nobody is asked about, since when, and who said so.
    """
    times = "once" if view.used == 1 else f"{view.used} times"
    yield f"{view.number}  {scope_words(view.scope)}"
    yield f"   kept by {one_line(view.by, NAME_LIMIT)} {ago(now - view.since)} ago, used {times}"
    yield f"   session {view.session}, {one_line(view.label, 80)}"


def revoked(view: PermissionView) -> str:
    """:returns: what revoking a permission did."""
    return f"Revoked: people are asked again about {scope_words(view.scope)} in session {view.session}."


def scope_words(scope: str) -> str:
    """:returns: for which calls an approval stands, escaped; all of it, since a part would say something else."""
    return one_line(scope)


def _tool(view: EscalationView) -> str:
    return f"{one_line(view.server, NAME_LIMIT)}.{one_line(view.tool, NAME_LIMIT)}"


def _argument(value: Any) -> str:
    return one_line(value, ARGUMENT_LIMIT) if isinstance(value, str) else json_line(value, ARGUMENT_LIMIT)
