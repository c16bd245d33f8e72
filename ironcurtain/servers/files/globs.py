"""
Match paths against patterns as people write them for files.

``*`` and ``?`` stay within one name, ``[abc]`` is one of these characters, ``**`` as a whole component is any number of
components. A pattern without a slash is matched against the last name alone, at any depth. No pattern takes more than
time in proportion to its length times the path's.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence

PATTERN_LIMIT = 1024
"""Most characters of a pattern (a path has at most 4096)."""

Matcher = Callable[[Sequence[str]], bool]
"""Tells whether the names from the start down to a file match."""

_ANY_DEPTH = None
_Name = Callable[[str], object]


def matcher(pattern: str) -> Matcher:
    """
    Prepare a pattern for matching.

    :raises ValueError: it is empty or longer than :data:`PATTERN_LIMIT`.
    """
    if not pattern or len(pattern) > PATTERN_LIMIT:
        raise ValueError(f"a pattern has 1 to {PATTERN_LIMIT} characters")
    components = [part for part in pattern.split("/") if part not in ("", ".")]
    if "/" not in pattern.rstrip("/"):
        components = ["**", *components]
    steps = [_ANY_DEPTH if part == "**" else re.compile(fnmatch.translate(part)).match for part in components]
    return lambda names: _matches(steps, names)


def any_of(patterns: Sequence[str]) -> Matcher:
    """
    Match if one of the patterns does.

    :raises ValueError: as :func:`matcher`.
    """
    prepared = [matcher(pattern) for pattern in patterns]
    return lambda names: any(matches(names) for matches in prepared)


def _matches(steps: Sequence[_Name | None], names: Sequence[str]) -> bool:
    # Only the last "**" seen needs to be tried at other lengths: what lies before it has matched as early as possible.
    step = name = 0
    back: tuple[int, int] | None = None
    while name < len(names):
        if step < len(steps) and (accepts := steps[step]) is _ANY_DEPTH:
            step, back = step + 1, (step + 1, name)
        elif step < len(steps) and accepts is not None and accepts(names[name]):
            step, name = step + 1, name + 1
        elif back is not None:
            back = (back[0], back[1] + 1)
            step, name = back
        else:
            return False
    return all(accepts is _ANY_DEPTH for accepts in steps[step:])
