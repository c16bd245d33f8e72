"""Wait, in a reactor, for the listening sockets of a sandbox's network."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorFDSet, IReadDescriptor
from zope.interface import implementer

from ironcurtain.errors import Unavailable
from ironcurtain.sandbox.handover import Handover, Sockets


def awaited_sockets(handover: Handover, reactor: IReactorFDSet) -> Deferred[Sockets]:
    """
    :returns: fires with the sockets, or fails as :meth:`~ironcurtain.sandbox.handover.Handover.take` does. Cancelling
        it gives them up.
    """
    waiting = _Waiting(reactor, handover)
    reactor.addReader(waiting)
    return waiting.done


@implementer(IReadDescriptor)
class _Waiting:
    """The part of a reactor's that waits."""

    def __init__(self, reactor: IReactorFDSet, handover: Handover) -> None:
        self._reactor, self._handover = reactor, handover
        self.done: Deferred[Sockets] = Deferred(lambda _: self._leave())

    def fileno(self) -> int:
        return self._handover.fileno()

    def doRead(self) -> None:
        self._reactor.removeReader(self)
        try:
            self.done.callback(self._handover.take())
        except Unavailable:
            self.done.errback()

    def connectionLost(self, reason: Any) -> None:
        self._leave()

    def logPrefix(self) -> str:
        return "handover"

    def _leave(self) -> None:
        self._reactor.removeReader(self)
        self._handover.give_up()
