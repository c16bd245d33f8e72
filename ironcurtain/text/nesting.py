"""
How deeply a JSON value is nested.

Parsers accept some 1000 levels. A function that calls itself for each of them fails from 240 or 480 on, since Python
limits calls inside each other to 1000.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def is_nested_deeper(value: Any, levels: int) -> bool:
    """:returns: whether a JSON value has more than so many lists and objects inside each other."""
    level = [value]
    for _ in range(levels + 1):
        level = [each for each in level if isinstance(each, Mapping | list | tuple)]
        if not level:
            return False
        level = [inner for each in level for inner in (each.values() if isinstance(each, Mapping) else each)]
    return True
