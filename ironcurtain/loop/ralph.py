"""The keys of Ralph's files that IronCurtain spells otherwise, or cannot obey."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

SECTIONS: Final = ("event_loop", "cli")
"""Those whose settings older files have without a section."""

FLAT: Final[Mapping[str, str]] = {
    "agent": "cli.backend",
    "max_cost": "event_loop.max_cost_usd",
    "max_failures": "event_loop.max_consecutive_failures",
    "max_runtime": "event_loop.max_runtime_seconds",
    "max_time": "event_loop.max_runtime_seconds",
    "git_checkpoint": "loop.git_checkpoint",
}
"""
Keys of older files, besides the last parts of the settings in :data:`SECTIONS`.
"""

SIMILAR: Final = frozenset(("cli.prompt_mode", "event_loop.cancellation_promise"))
"""Keys that are similar to supported ones, but not typing errors."""

ABSENT: Final = frozenset(("RObot", "features", "memories", "skills", "tasks", "tui"))
"""Sections for parts of Ralph that do not exist here, so that there is nothing that their limits could bound."""

_WORD: Final = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_BOUNDS: Final = frozenset(
    ("max", "maximum", "cap", "timeout", "timeouts", "limit", "limits", "budget", "deadline", "quota", "stop")
)
_ENDS: Final = frozenset(("cancellation_promise",))


def flat_name(key: str, known: Mapping[str, Any]) -> str | None:
    """
    :param known: all settings, by dotted name.
    :returns: the setting that a key outside of all sections means; ``None`` if it means none.
    """
    return next((name for name in (FLAT.get(key, ""), *(f"{each}.{key}" for each in SECTIONS)) if name in known), None)


def bounds(name: str, value: Any) -> Iterator[str]:
    """
    :param name: dotted name of a key without a counterpart here.
    :returns: the names of the keys, it and those in its value, that say how long or how much something may go on.
    """
    if name in ABSENT or value is None or value is False:
        return
    key = name.rpartition(".")[2]
    if key in _ENDS or _BOUNDS & {word.lower() for word in _WORD.findall(key)}:
        yield name
    elif isinstance(value, dict):
        for inner, its_value in value.items():
            yield from bounds(f"{name}.{inner}", its_value)
    elif isinstance(value, list):
        for its_value in value:
            yield from bounds(f"{name}.-", its_value)
