"""What a person types, on its way: reserved keys are taken out."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.interfaces import IDelayedCall, IReactorTime

from ironcurtain.terminal.keys import HOLD_SECONDS, Forward, Keys, Reserved


class Keyboard:
    """
    :param forward: gets all that is not reserved.
    :param on_key: gets the names of reserved keys; it may call :meth:`stop`.
    """

    def __init__(
        self, keys: Keys, clock: IReactorTime, forward: Callable[[bytes], None], on_key: Callable[[str], None]
    ) -> None:
        self._keys, self._clock, self._forward, self._on_key = keys, clock, forward, on_key
        self._timer: IDelayedCall | None = None
        self._stopped = False

    def received(self, read: bytes) -> None:
        """:param read: what one read from the terminal gave; cut or joined reads would hide reserved keys."""
        if self._keys.passes(read) and not self._stopped:
            self._forward(read)
            return
        self._cancel()
        self._pass_on(self._keys.feed(read))
        if self._keys.holding and not self._stopped:
            self._timer = self._clock.callLater(HOLD_SECONDS, self._release)

    def stop(self) -> None:
        """Pass nothing on any more."""
        self._stopped = True
        self._cancel()

    def _release(self) -> None:
        self._timer = None
        self._pass_on(self._keys.release())

    def _pass_on(self, meant: list[Forward | Reserved]) -> None:
        for what in meant:
            if self._stopped:
                return
            if isinstance(what, Forward):
                self._forward(what.data)
            else:
                self._on_key(what.name)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
