"""What the stub remembers of a request."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from twisted.internet.defer import Deferred

from tests.model_stub.dialect import Asked


@dataclass
class Record:
    """
    One request that was made.

    :ivar at: seconds of the machine's monotonic clock when its head had come.
    :ivar headers: by name in lower case; the last value of each.
    :ivar json: the body, where it was JSON.
    :ivar refused: the message of the error the request itself led to, empty when it followed the rules.
    :ivar provider: whose API it was for, empty if none's.
    :ivar agent: what sent it, empty if that is no agent that is known.
    :ivar purpose: ``"turn"`` if the script answered; else the name of the side request, empty if it was refused.
    :ivar asked: what the model was asked, in one shape for all APIs.
    :ivar end: ``"finished"``, or ``"aborted"`` if the client went away before; empty until then.
    :ivar ended: fires with ``end``.
    """

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    query: str = ""
    json: Any = None
    refused: str = ""
    provider: str = ""
    agent: str = ""
    purpose: str = ""
    asked: Asked | None = None
    end: str = ""
    ended: Deferred[str] = field(default_factory=Deferred)
    at: float = field(default_factory=time.monotonic)

    def over(self, end: str) -> None:
        """The exchange has come to its end."""
        self.end = end
        self.ended.callback(end)

    def summary(self) -> dict[str, Any]:
        """:returns: the record as a JSON object, for tests in another process."""
        names = ("method", "path", "query", "headers", "json", "refused", "provider", "agent", "purpose", "end", "at")
        seen = self.asked
        return {
            **{name: getattr(self, name) for name in names},
            "host": self.headers.get("host", ""),
            "model": seen.model if seen else "",
            "system": seen.system if seen else "",
            "tools": list(seen.tools) if seen else [],
            "results": list(seen.results) if seen else [],
            "said": seen.said if seen else "",
        }
