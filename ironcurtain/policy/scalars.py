"""Compare JSON values: ``true`` is not equal to ``1``, but ``1.0`` is."""

from __future__ import annotations

import math
from typing import Any


def equal(left: Any, right: Any) -> bool:
    """
    Whether two JSON values are equal.

    Numbers compare by value (RFC 8259 has one type of number), everything else by type and value.
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
    Whether a condition treats a JSON value as true.

    The rules are those of ECMAScript, for which the annotation format was designed: null, false, zero, NaN and the
    empty string are false; every list and object is true, even an empty one.
    """
    if value is None or value is False or value == "":
        return False
    return not (isinstance(value, int | float) and (value == 0 or math.isnan(value)))


def fold(text: str) -> str:
    """:returns: the text with ASCII letters in lower case. Folding other letters could make two names equal."""
    return text.lower() if text.isascii() else "".join(c.lower() if c.isascii() else c for c in text)
