"""How deeply JSON values are nested: what follows them to the end may have no room for more than some 480 levels."""

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
