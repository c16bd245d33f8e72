"""Conditions on what happened before in a session, and the history that they are judged by."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Struct

RATE_LIMIT = 1000
"""Maximum number of calls in a ``rate`` condition, and of times that are remembered for each tool."""

CREATED_LIMIT = 10_000
"""Maximum number of created files that are remembered. Then it is not known of others whether they were created."""

Names = tuple[str, ...] | None
"""The names in a condition; ``None`` for any."""


class AfterCondition(Struct, frozen=True, forbid_unknown_fields=True):
    """Holds if the session made a call to one of these servers and tools before, whether it succeeded or not."""

    server: tuple[str, ...] | None = None
    tool: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.server is None and self.tool is None:
            raise ValueError("after needs a server or a tool")


class RateCondition(Struct, frozen=True, forbid_unknown_fields=True):
    """
    Holds if the session made this many calls to the servers and tools of the rule within this time, so that the call
    to judge is one too many.
    """

    calls: int
    seconds: float

    def __post_init__(self) -> None:
        if not 1 <= self.calls <= RATE_LIMIT:
            raise ValueError(f"calls must be from 1 to {RATE_LIMIT}")
        if not self.seconds > 0:
            raise ValueError("seconds must be more than 0")


class CallHistory(Struct, frozen=True):
    """
    What happened in a session before a call: the calls that were made, which excludes all that were refused.

    :param now: the time of the call, in seconds of any clock.
    :param uses: for each server and tool the times of its calls, oldest first, the last :data:`RATE_LIMIT` of them.
    :param created: real paths of the files that the agent's calls created, and did not delete since.
    :param complete: whether every file that was created is known.
    """

    now: float = 0.0
    uses: dict[tuple[str, str], tuple[float, ...]] = {}
    created: frozenset[str] = frozenset()
    complete: bool = True

    @property
    def is_complete(self) -> bool:
        """Whether it is known of each file whether it was created."""
        return self.complete and len(self.created) < CREATED_LIMIT

    def at(self, now: float) -> CallHistory:
        """:returns: the same history at a later time."""
        return msgspec.structs.replace(self, now=now)

    def shifted(self, seconds: float) -> CallHistory:
        """:returns: the same history in the time of a clock that is ahead by ``seconds``."""
        uses = {key: tuple(time + seconds for time in times) for key, times in self.uses.items()}
        return msgspec.structs.replace(self, now=self.now + seconds, uses=uses)

    def made(self, server: str, tool: str, time: float) -> CallHistory:
        """:returns: the history with one more call."""
        times = (*self.uses.get((server, tool), ())[1 - RATE_LIMIT :], time)
        return msgspec.structs.replace(self, uses={**self.uses, (server, tool): times})

    def changed(self, created: Iterable[str], deleted: Iterable[str]) -> CallHistory:
        """
        :param created: real paths that did not exist before a call that succeeded.
        :param deleted: real paths that the call removed. Unless the agent created all of them, what the call creates
            can be what it removed, under another name: then it counts as not created.
        :returns: the history after the call.
        """
        removed = frozenset(deleted)
        new = frozenset(created) if removed <= self.created else frozenset[str]()
        if not (new or removed & self.created):
            return self
        kept = self.created - removed
        return msgspec.structs.replace(self, created=kept | new if len(kept) < CREATED_LIMIT else kept)

    def earlier(self, servers: Names, tools: Names) -> str:
        """:returns: ``server.tool`` of a call that was made to one of these; empty if there was none."""
        return next((f"{server}.{tool}" for server, tool in self.uses if _in(servers, server) and _in(tools, tool)), "")

    def count(self, servers: Names, tools: Names, seconds: float) -> int:
        """:returns: the number of calls to these within the last ``seconds``, at most :data:`RATE_LIMIT` for a tool."""
        concerned = (times for (server, tool), times in self.uses.items() if _in(servers, server) and _in(tools, tool))
        return sum(self.now - time < seconds for times in concerned for time in times)


def _in(names: Names, name: str) -> bool:
    return names is None or name in names


NO_HISTORY = CallHistory()
"""The history of a session that has made no call."""
