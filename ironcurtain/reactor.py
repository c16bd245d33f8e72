"""
Twisted's reactor on asyncio, with a shorter way from an event to who reads it.

A key and its echo are two events. Next to a loop on a bare epoll(7), asyncio takes 25 us longer for both, Twisted on it
42 us, and this reactor 13 us (Python 3.11). ``benchmarks/loop.py`` measures what a session makes of that.
"""

from __future__ import annotations

import asyncio
import gc
import os
import select
from collections.abc import Callable
from contextvars import Context
from functools import partial
from selectors import EVENT_READ, EVENT_WRITE, EpollSelector, SelectorKey
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeVarTuple

from twisted.internet.asyncioreactor import AsyncioSelectorReactor
from twisted.internet.interfaces import IReadDescriptor
from twisted.internet.main import installReactor
from twisted.logger import Logger
from twisted.python.log import callWithLogger

from ironcurtain.alarm import Alarm
from ironcurtain.cork import cork

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike


Ts = TypeVarTuple("Ts")

_IN: Final = select.EPOLLIN
_OUT: Final = select.EPOLLOUT

MOST = 64
"""How many descriptors are heard of at once (our choice: the others follow at once)."""


NEW_OBJECTS = 20_000
"""After how many Python looks for garbage in circles (its own: 700, which took 4 % of a model request's time)."""


class DirectSelector(EpollSelector):
    """
    Where descriptors can be read and nothing else is to be done, it calls who reads them by itself, and waits again:
    all that is called is called in asyncio's order. What several of them write goes out when all have been called.

    :ivar asked: set this whenever something is to be done.
    """

    def __init__(self) -> None:
        super().__init__()
        self._epoll = select.epoll.fromfd(os.dup(self.fileno()))
        self._alarm = Alarm()
        self._epoll.register(self._alarm.descriptor, select.EPOLLIN)
        self._watched: dict[int, SelectorKey] = {}
        self._readers: dict[int, Callable[[], object]] = {self._alarm.descriptor: self._rang}
        self.asked = False

    def call(self, descriptor: int, reader: Callable[[], object]) -> None:
        """
        Have a function called when a descriptor can be read, for as long as it is watched for that.

        :param descriptor: is watched for it by now; if not, nothing is done.
        :param reader: must not raise.
        """
        key = self._watched.get(descriptor)
        if key is not None and key.events & EVENT_READ:
            self._readers[descriptor] = reader

    def register(self, fileobj: FileDescriptorLike, events: int, data: Any = None) -> SelectorKey:
        """See :class:`selectors.BaseSelector`."""
        key = super().register(fileobj, events, data)
        self._watched[key.fd] = key
        self._readers.pop(key.fd, None)
        return key

    def unregister(self, fileobj: FileDescriptorLike) -> SelectorKey:
        """See :class:`selectors.BaseSelector`."""
        key = super().unregister(fileobj)
        self._watched.pop(key.fd, None)
        self._readers.pop(key.fd, None)
        return key

    def modify(self, fileobj: FileDescriptorLike, events: int, data: Any = None) -> SelectorKey:
        """See :class:`selectors.BaseSelector`."""
        try:
            key = super().modify(fileobj, events, data)
        except OSError:  # then it is watched no more
            self._watched = {key.fd: key for key in self.get_map().values()}
            raise
        self._watched[key.fd] = key
        if not events & EVENT_READ:
            self._readers.pop(key.fd, None)
        return key

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        """See :class:`selectors.BaseSelector`. A timeout of zero says that something else is to be done."""
        if timeout is not None:
            if timeout <= 0:
                return self._known(self._epoll.poll(0, MOST))
            self._alarm.by(monotonic() + timeout)
        while True:
            self.asked = False
            found = self._epoll.poll(-1, MOST)
            for descriptor, event in found:
                if event != _IN or descriptor not in self._readers:
                    return self._known(found)
            if len(found) == 1:
                self._readers[descriptor]()
            else:
                self._call_all([(descriptor, self._readers[descriptor]) for descriptor, _ in found])
            if self.asked:
                return []

    def close(self) -> None:
        """See :class:`selectors.BaseSelector`."""
        self._alarm.close()
        self._epoll.close()
        super().close()

    def _call_all(self, due: list[tuple[int, Callable[[], object]]]) -> None:
        cork.on = True
        try:
            for descriptor, reader in due:
                if self._readers.get(descriptor) is reader:  # what was called before may have ended this one
                    reader()
        finally:
            cork.release()

    def _rang(self) -> None:
        self._alarm.rang()
        self.asked = True

    def _known(self, found: list[tuple[int, int]]) -> list[tuple[SelectorKey, int]]:
        watched = self._watched
        return [(key, _events(event) & key.events) for descriptor, event in found if (key := watched.get(descriptor))]


def _events(event: int) -> int:
    """:returns: for each that it is good for; an error is found by whoever reads or writes."""
    return (EVENT_READ if event & ~_OUT else 0) | (EVENT_WRITE if event & ~_IN else 0)


class DirectLoop(asyncio.SelectorEventLoop):
    """asyncio's loop, with a :class:`DirectSelector`."""

    def __init__(self) -> None:
        self.selector = DirectSelector()
        self._begun = False
        super().__init__(self.selector)
        self._begun = True

    def _add_reader(self, fd: FileDescriptorLike, callback: Callable[[*Ts], object], *args: *Ts) -> asyncio.Handle:
        """
        All of asyncio's readers come by here, those of its transports too. The first one, of the loop itself, is left:
        what another thread asks for is not seen in ``call_soon``.
        """
        handle: asyncio.Handle = super()._add_reader(fd, callback, *args)  # type: ignore[misc]
        if self._begun:
            self.selector.call(self.selector.get_key(fd).fd, handle._run)
        return handle

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """See :class:`asyncio.AbstractEventLoop`."""
        self.selector.asked = True
        return super().call_soon(callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """See :class:`asyncio.AbstractEventLoop`."""
        self.selector.asked = True
        return super().call_at(when, callback, *args, context=context)

    def stop(self) -> None:
        """See :class:`asyncio.AbstractEventLoop`."""
        self.selector.asked = True
        super().stop()


class DirectReactor(AsyncioSelectorReactor):
    """
    Has its readers called by a :class:`DirectSelector`: without a context of their own (``contextvars``, and the prefix
    of old log lines).
    """

    log = Logger()

    def __init__(self) -> None:
        loop = DirectLoop()
        self._selector = loop.selector
        asyncio.set_event_loop(loop)
        super().__init__(loop)

    def addReader(self, reader: IReadDescriptor) -> None:
        """See :class:`~twisted.internet.interfaces.IReactorFDSet`."""
        known = reader in self._readers  # type: ignore[comparison-overlap]
        super().addReader(reader)
        if not known:
            self._selector.call(reader.fileno(), partial(self._read, reader))

    def _read(self, reader: IReadDescriptor) -> None:
        """Whatever a reader raises ends neither the loop nor other readers, as in Twisted."""
        why: Any
        try:
            why = reader.doRead()
        except KeyboardInterrupt:
            raise
        except BaseException as e:
            self.log.failure("what came could not be handled")
            why = e
        if why:
            callWithLogger(reader, self._disconnectSelectable, reader, why, True)


def install() -> None:
    """
    Make it the reactor of this process, which looks for garbage less often from now on.

    :raises twisted.internet.error.ReactorAlreadyInstalledError: there is one.
    """
    installReactor(DirectReactor())
    gc.set_threshold(NEW_OBJECTS)
