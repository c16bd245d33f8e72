"""
The progress of one call as the agent hears of it: ours while a person decides, then the server's. Pure.

The protocol wants values that grow. Ours are tiny, so that a server may start at 1; one that starts at 0 is shifted by
as little as need be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ironcurtain.jsonrpc import codec

STEP = 1e-6
"""How much our own reports grow each time."""


@dataclass(slots=True)
class ProgressLine:
    """
    Reports under one token.

    :param token: the agent's.
    :param tell: takes the raw JSON parameters of each ``notifications/progress``.
    """

    token: codec.Id
    tell: Callable[[bytes], None]
    _said: float = 0.0
    _shift: float | None = None

    def waiting(self, message: str) -> None:
        """Report that the call still waits."""
        self._said += STEP
        self.tell(codec.encode({"progressToken": self.token, "progress": self._said, "message": message}))

    def relay(self, params: dict[str, Any]) -> None:
        """:param params: a report of the server's, under its own token."""
        value = params.get("progress")
        if self._shift is None:
            behind = self._said and isinstance(value, int | float) and value <= self._said
            self._shift = self._said + STEP - value if behind and isinstance(value, int | float) else 0.0
        shifted = {name: self._shifted(params[name]) for name in ("progress", "total") if name in params}
        self.tell(codec.encode({**params, **shifted, "progressToken": self.token}))

    def _shifted(self, value: Any) -> Any:
        return value + self._shift if self._shift and isinstance(value, int | float) else value
