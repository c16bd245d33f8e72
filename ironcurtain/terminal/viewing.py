"""A person at a channel who looks at a terminal, and perhaps drives it."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.interfaces import IReactorTime

from ironcurtain.terminal.attachment import Attachment
from ironcurtain.terminal.hub import Hub
from ironcurtain.terminal.keyboard import Keyboard
from ironcurtain.terminal.keys import Keys
from ironcurtain.terminal.model import Channel, Mode
from ironcurtain.terminal.restore import RESTORE


class Viewing:
    """
    Joins a channel and a hub, from :meth:`begin` to the end of one of them.

    :param on_key: gets the names of reserved keys, of observers too.
    :param on_end: called once, with the terminal restored: why, and the status of the program, if it ended. Closing
        the channel is left to it. Not called when the channel is lost.
    """

    def __init__(
        self,
        channel: Channel,
        clock: IReactorTime,
        keys: Keys,
        on_key: Callable[[str], None],
        on_end: Callable[[str, int | None], None],
    ) -> None:
        self._channel, self._on_end = channel, on_end
        self._keyboard = Keyboard(keys, clock, self._typed, on_key)
        self._attachment: Attachment | None = None

    def begin(self, hub: Hub, mode: Mode) -> None:
        """
        Show the terminal.

        :raises NotFound: its program has ended.
        """
        self._attachment = hub.attach(self, mode, *self._channel.size())

    def received(self, read: bytes) -> None:
        """For the channel: keys."""
        if self._attachment is not None:
            self._keyboard.received(read)

    def resized(self, columns: int, rows: int) -> None:
        """For the channel: its size has changed."""
        if self._attachment is not None:
            self._attachment.resized(columns, rows)

    def drained(self) -> None:
        """For the channel: it is not blocked any more."""
        if self._attachment is not None:
            self._attachment.drained()

    def lost(self) -> None:
        """For the channel: nobody is there any more."""
        self._leave()

    def leave(self, reason: str) -> None:
        """Look no longer; the program goes on. The person's terminal is restored."""
        if self._leave():
            self._channel.write(RESTORE)
            self._on_end(reason, None)

    def draw(self, data: bytes) -> bool:
        """For the hub."""
        self._channel.write(data)
        return not self._channel.blocked

    def hold(self, full: bool) -> None:
        """For the hub."""
        self._channel.hold(full)

    def ended(self, reason: str, status: int | None) -> None:
        """For the hub."""
        if self._leave():
            self._on_end(reason, status)

    def _typed(self, data: bytes) -> None:
        if self._attachment is not None:
            self._attachment.typed(data)

    def _leave(self) -> bool:
        attachment, self._attachment = self._attachment, None
        self._keyboard.stop()
        if attachment is not None:
            attachment.detach()
        return attachment is not None
