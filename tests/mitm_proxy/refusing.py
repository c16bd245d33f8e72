"""For tests that go through lists of wrong inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ironcurtain.errors import ProtocolViolation


def refuses(function: Callable[..., Any], *arguments: Any) -> bool:
    """:returns: whether a call ends in a :class:`ProtocolViolation`."""
    try:
        function(*arguments)
    except ProtocolViolation:
        return True
    return False
