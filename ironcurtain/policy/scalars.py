"""Compare JSON values as JSON does: ``true`` is not ``1``, but ``1.0`` is."""

from __future__ import annotations

import math
from typing import Any


def equal(left: Any, right: Any) -> bool:
    """
    Whether two JSON values are the same value.

    Numbers compare by value (RFC 8259 has one kind of number), everything else also by type.
    """
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, int | float) and isinstance(right, int | float):
        return left == right
    if type(left) is not type(right):
        return False
    if isinstance(left, list):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(equal(value, right[key]) for key, value in left.items())
    return bool(left == right)


def truthy(value: Any) -> bool:
    """
    Whether a JSON value counts as true in a condition.

    As in ECMAScript, which the annotations were first written for: null, false, zero and the empty string do not;
    every list and object does, empty or not.
    """
    if value is None or value is False or value == "":
        return False
    return not (isinstance(value, int | float) and (value == 0 or math.isnan(value)))


def fold(text: str) -> str:
    """:returns: the text with ASCII letters in lower case. Other letters stay, or two names could become one."""
    return text.lower() if text.isascii() else "".join(c.lower() if c.isascii() else c for c in text)
