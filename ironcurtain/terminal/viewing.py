"""Let a person at a channel observe or control a terminal of this process or another one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime

from ironcurtain.terminal.attachment import Attachment
from ironcurtain.terminal.hub import Hub
from ironcurtain.terminal.keys import HOLD_SECONDS, ForwardedInput, KeyPressed, Keys
from ironcurtain.terminal.local import LocalTerminal
from ironcurtain.terminal.model import Mode, ProgramExit, TerminalChannel
from ironcurtain.terminal.remote import RemoteAttachment, connect
from ironcurtain.terminal.sequences import RESTORE
from ironcurtain.terminal.wire import Hello


class Keyboard:
    """
    :param forward: called with all input that is not reserved.
    :param on_key: called with the names of reserved keys; it may call :meth:`stop`.
    """

    def __init__(
        self, keys: Keys, clock: IReactorTime, forward: Callable[[bytes], None], on_key: Callable[[str], None]
    ) -> None:
        self._keys, self._clock, self._forward, self._on_key = keys, clock, forward, on_key
        self._timer: IDelayedCall | None = None
        self._stopped = False

    def received(self, read: bytes) -> None:
        """:param read: the bytes of one read from the terminal; split or joined reads would hide reserved keys."""
        self._cancel()
        self._pass_on(self._keys.feed(read))
        if self._keys.holding and not self._stopped:
            self._timer = self._clock.callLater(HOLD_SECONDS, self._release)

    def stop(self) -> None:
        """Stop forwarding."""
        self._stopped = True
        self._cancel()

    def _release(self) -> None:
        self._timer = None
        self._pass_on(self._keys.release())

    def _pass_on(self, meant: list[ForwardedInput | KeyPressed]) -> None:
        for what in meant:
            if self._stopped:
                return
            if isinstance(what, ForwardedInput):
                self._forward(what.data)
            else:
                self._on_key(what.name)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Viewing:
    """
    Connects a channel with a hub, of this process or another one, until one of them ends.

    :param on_key: called with the names of reserved keys, also for observers.
    :param on_end: called once, with the terminal restored: the reason, and the status of the program if it ended. It
        has to close the channel. Not called when the channel is lost.
    """

    def __init__(
        self,
        channel: TerminalChannel,
        clock: IReactorTime,
        keys: Keys,
        on_key: Callable[[str], None],
        on_end: Callable[[str, int | None], None],
    ) -> None:
        self._channel, self._on_end = channel, on_end
        self._keyboard = Keyboard(keys, clock, self._typed, on_key)
        self._attachment: Attachment | RemoteAttachment | None = None

    def begin(self, hub: Hub, mode: Mode) -> None:
        """
        Show the terminal.

        :raises NotFound: its program has ended.
        """
        self._attachment = hub.attach(self, mode, *self._channel.size())

    async def begin_remote(self, reactor: Any, path: str, hello: Hello) -> None:
        """
        Show the terminal of another process.

        :param path: path of the owner's socket.
        :raises Unavailable: the owner does not answer.
        :raises AttachRefused: the owner refused.
        """
        self._attachment = await connect(reactor, path, hello, self)

    def received(self, read: bytes) -> None:
        """For the channel: input."""
        if self._attachment is not None:
            self._keyboard.received(read)

    def resized(self, columns: int, rows: int) -> None:
        """For the channel: it has a new size."""
        if self._attachment is not None:
            self._attachment.resized(columns, rows)

    def drained(self) -> None:
        """For the channel: it accepts output again."""
        if self._attachment is not None:
            self._attachment.drained()

    def lost(self) -> None:
        """For the channel: it is closed."""
        self._leave()

    def leave(self, reason: str) -> None:
        """Detach; the program continues. The person's terminal is restored."""
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


async def attach(
    reactor: Any,
    path: str,
    hello: Hello,
    terminal: LocalTerminal,
    keys: Keys,
    on_key: Callable[[str, Viewing], None],
) -> ProgramExit:
    """
    Connect the local terminal with one of another process, until one of them ends; then restore it.

    Cancelling this leaves the program running.

    :param path: path of the owner's socket.
    :param on_key: called with the names of reserved keys; it may call :meth:`Viewing.leave`.
    :returns: how the program ended; without a status if the connection was lost or detached.
    :raises Unavailable: the owner does not answer.
    :raises AttachRefused: the owner refused.
    """
    over: Deferred[ProgramExit] = Deferred()

    def ended(reason: str, status: int | None) -> None:
        if not over.called:
            over.callback(ProgramExit(status, reason))

    viewing = Viewing(terminal, reactor, keys, lambda name: on_key(name, viewing), ended)
    await viewing.begin_remote(reactor, path, hello)
    try:
        # The reactor does not run between the answer and this, so that the terminal is ready for the first output.
        terminal.begin(viewing)
        terminal.closed.addCallback(lambda _: ended("the terminal is gone", None))
        return await over
    finally:
        viewing.lost()
        terminal.close(None)
        if terminal.connected:
            await terminal.closed
