"""Back-pressure between two transports that must not end each other."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.interfaces import IPushProducer
from zope.interface import implementer


@implementer(IPushProducer)
class FlowSignal:
    """
    Register this as a transport's producer to hear whether it takes more.

    A transport that closes calls ``stopProducing``. Were the other transport itself registered, it would close too,
    in the middle of what it has to say to somebody else.

    :param full: called with true when more has been written than the peer reads, with false when it has caught up.
    """

    def __init__(self, full: Callable[[bool], None]) -> None:
        self._full = full

    def pauseProducing(self) -> None:
        self._full(True)

    def resumeProducing(self) -> None:
        self._full(False)

    def stopProducing(self) -> None:
        pass
