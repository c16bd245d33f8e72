"""The patterns of watchers for what is seen, heard and read."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable
from functools import lru_cache


@lru_cache(64)
def part_matcher(pattern: str) -> Callable[[str], bool]:
    """
    :param pattern: a glob for a part of a text, such as ``OOM`` or ``error*disk``; case does not matter. Empty: any
        text.
    :returns: whether a text has such a part. Its time is bounded by the length of the text times the pattern's.
    """
    compiled = re.compile(fnmatch.translate(f"*{pattern.casefold()}*"))
    return lambda text: not pattern or compiled.match(text.casefold()) is not None
