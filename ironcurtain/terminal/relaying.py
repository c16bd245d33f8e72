"""A person at a channel who looks at a terminal of another process of this machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ironcurtain.terminal.keyboard import Keyboard
from ironcurtain.terminal.keys import Keys
from ironcurtain.terminal.model import Channel, Ended
from ironcurtain.terminal.remote_client import AttachClient, connect
from ironcurtain.terminal.restore import RESTORE
from ironcurtain.terminal.wire import Hello


class Relaying:
    """
    Joins a channel and the process that owns the terminal, from :meth:`begin` to the end of one of them. To the channel
    it is the same as a :class:`~ironcurtain.terminal.viewing.Viewing`.

    :param on_key: gets the names of reserved keys, of observers too.
    :param on_end: called once, with the person's terminal restored: why, and the status of the program, if it ended.
        Closing the channel is left to it. Not called when the channel is lost.
    """

    def __init__(
        self,
        reactor: Any,
        channel: Channel,
        keys: Keys,
        on_key: Callable[[str], None],
        on_end: Callable[[str, int | None], None],
    ) -> None:
        self._reactor, self._channel, self._on_end = reactor, channel, on_end
        self._keyboard = Keyboard(keys, reactor, self._typed, on_key)
        self._client: AttachClient | None = None

    async def begin(self, path: str, hello: Hello) -> None:
        """
        Show the terminal.

        :param path: of the owner's socket.
        :raises Unavailable: nobody answers there.
        :raises Refused: the owner said no.
        """
        client = AttachClient(hello, self._channel)
        await connect(self._reactor, path, client)
        self._client = client
        client.over.addCallback(self._over)

    def received(self, read: bytes) -> None:
        """For the channel: keys."""
        if self._client is not None:
            self._keyboard.received(read)

    def resized(self, columns: int, rows: int) -> None:
        """For the channel: its size has changed."""
        if self._client is not None:
            self._client.resized(columns, rows)

    def drained(self) -> None:
        """For the channel: it is not blocked any more."""
        if self._client is not None:
            self._client.drained()

    def lost(self) -> None:
        """For the channel: nobody is there any more."""
        client, self._client = self._client, None
        self._keyboard.stop()
        if client is not None:
            client.leave("the viewer is gone")

    def leave(self, reason: str) -> None:
        """Look no longer; the program goes on. The person's terminal is restored."""
        if self._client is not None:
            self._client.leave(reason)

    def _typed(self, data: bytes) -> None:
        if self._client is not None:
            self._client.typed(data)

    def _over(self, ended: Ended) -> None:
        client, self._client = self._client, None
        if client is None:
            return
        client.leave("over")  # it does not notice by itself while the channel is full
        self._keyboard.stop()
        self._channel.write(RESTORE)
        self._on_end(ended.reason, ended.status)
