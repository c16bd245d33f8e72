"""
Match paths against glob patterns.

``*`` and ``?`` match within one name, ``[abc]`` one of these characters, ``**`` as a complete component any number of
components. A pattern without a slash is matched against the last name alone, at any depth. The time is bounded by the
pattern's length times the path's.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence

PATTERN_LIMIT = 1024
"""Maximum length in characters of a pattern (a path has at most 4096)."""

Matcher = Callable[[Sequence[str]], bool]
"""Returns whether the names from the start down to a file match."""

_ANY_DEPTH = None
_Name = Callable[[str], object]


def matcher(pattern: str) -> Matcher:
    """
    Compile a pattern.

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
    Match any of the patterns.

    :raises ValueError: as :func:`matcher`.
    """
    prepared = [matcher(pattern) for pattern in patterns]
    return lambda names: any(matches(names) for matches in prepared)


def _matches(steps: Sequence[_Name | None], names: Sequence[str]) -> bool:
    # Only the last "**" needs to be tried at other lengths: everything before it has matched as early as possible.
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
