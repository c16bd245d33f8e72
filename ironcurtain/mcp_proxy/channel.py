"""What one run of a server needs of the way to it, be that a child's streams or HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ironcurtain.jsonrpc.framing import TooLong

UNSENT_LIMIT = 16 * 1024 * 1024
"""Most bytes that may wait for a server that does not read: 16 MiB, twice an agent's largest message."""


class ChannelOwner(Protocol):
    """Who hears from a channel."""

    def line_received(self, line: bytes | TooLong) -> None:
        """The server sent a message, or one over the limit."""

    def error_line(self, line: str) -> None:
        """There is something to tell for the log: a line of a child's error output, or what HTTP answered."""

    def gone(self, why: str) -> None:
        """The server ended, or cannot be reached: no more will come from it. Called once."""


class Channel(Protocol):
    """The way to one run of a server. Its owner hears of all that happens until :meth:`stop` is called."""

    pid: int
    """The server's process id, 0 if it has none here."""

    @property
    def choked(self) -> bool:
        """Whether so much waits to be read by the server that no more can be sent."""

    async def connect(self) -> None:
        """Begin to hear from it; only then may it be written to."""

    def write(self, line: bytes) -> None:
        """Send a message; nothing happens if the server is gone."""

    def pause(self) -> None:
        """Read no more for now."""

    def resume(self) -> None:
        """Read again."""

    async def stop(self) -> None:
        """End this run of the server; nothing of it is left."""


MakeChannel = Callable[[ChannelOwner], Channel]
"""Makes the way to a new run of a server."""
