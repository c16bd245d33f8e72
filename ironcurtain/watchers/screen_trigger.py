"""Changes of the screen: pictures of it are compared, and the text in what has changed is read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import msgspec
from twisted.internet.defer import Deferred, DeferredLock
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger

from ironcurtain.errors import IronCurtainError, Unavailable
from ironcurtain.senses.client import SensesWorker
from ironcurtain.senses.model import Box
from ironcurtain.services.asyncio_bridge import from_asyncio
from ironcurtain.text.display import one_line
from ironcurtain.watchers.matching import part_matcher
from ironcurtain.watchers.model import Event, Watcher

POLL_SECONDS = 1.0
"""Seconds between looks."""

REST = 4.0
"""A look that took a while is followed by a rest of so many times as long."""

TEXT_SHOWN = 2000
"""Most characters of text in an event."""


class Shot(msgspec.Struct, frozen=True):
    """
    A screen at a time.

    :param png: all of it.
    :param area: what of it is watched.
    :param hidden: what must not be read, such as fields with passwords.
    """

    png: bytes
    area: Box
    hidden: tuple[Box, ...] = ()


class ScreenTrigger:
    """
    A :class:`~ironcurtain.watchers.trigger.Trigger` for what appears on the screen.

    :param watcher: its ``pattern`` is for a part of a line of text; without one, every change is an event.
    :param reactor: provides time.
    :param look: takes a picture, as a coroutine of asyncio; fails with an
        :class:`~ironcurtain.errors.IronCurtainError` with advice.
    :param warn: called with a sentence for people.
    """

    log = Logger()

    def __init__(
        self,
        watcher: Watcher,
        reactor: Any,
        worker: SensesWorker,
        look: Callable[[], Coroutine[Any, Any, Shot]],
        warn: Callable[[str], None],
    ) -> None:
        self._reactor, self._worker, self._take, self._warn = reactor, worker, look, warn
        self._app, self._pattern = watcher.app, watcher.pattern
        self._matches, self._lock = part_matcher(watcher.pattern), DeferredLock()
        self._fire: Callable[[Event], None] = lambda event: None
        self._before: Shot | None = None
        self._timer: IDelayedCall | None = None
        self._stopped, self._failures = False, 0
        self._said: set[str] = set()

    def start(self, fire: Callable[[Event], None]) -> None:
        """Begin to watch; the first look shows what is known. Where none is possible, people are told."""
        self._fire = fire
        self._begin(report=False)

    def settle(self) -> Deferred[None]:
        """:returns: fires when what is on the screen now is known."""
        self._before = None
        return self._begin(report=False)

    def stop(self) -> Deferred[None]:
        """:returns: fires when no look is in progress any more."""
        self._stopped = True
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        return self._lock.run(lambda: None)

    def _begin(self, report: bool = True) -> Deferred[None]:
        return Deferred.fromCoroutine(self._look(report))

    async def _look(self, report: bool) -> None:
        """:param report: whether what has changed is an event."""
        await self._lock.acquire()
        begun, event = self._reactor.seconds(), None
        try:
            if not self._stopped:
                event = await self._compare(await from_asyncio(self._take()))
            self._failures = 0
        except IronCurtainError as e:
            self._failures += 1
            if self._failures > 1:  # a window can close, or an application end, during a look
                self._say(str(e))
        except Exception:  # a later look may do
            self.log.failure("looking at the screen failed")
        finally:
            self._lock.release()
        if self._stopped:
            return
        if self._timer is None or not self._timer.active():
            rest = max(POLL_SECONDS, REST * (self._reactor.seconds() - begun))
            self._timer = self._reactor.callLater(rest, self._begin)
        if event is not None and report:
            self._fire(event)  # which may stop it

    async def _compare(self, shot: Shot) -> Event | None:
        before = self._before
        if before is None or before.area != shot.area:
            self._before = shot
            return None
        if before.png == shot.png:
            return None
        hidden = (*before.hidden, *shot.hidden)
        changed = await from_asyncio(self._worker.changes(before.png, shot.png, shot.area, hidden))
        if not changed:  # what adds up slowly is noticed once it is large enough
            return None
        self._before = shot
        texts = [line for line in await self._read(shot, _around(changed), hidden) if self._matches(line)]
        if self._pattern and not texts:
            return None
        text = "\n".join(texts)
        data = {"app": one_line(self._app or "screen", 100), "text": one_line(text, TEXT_SHOWN)}
        return Event(data, hashlib.sha256(text.encode()).hexdigest() if text else "")

    async def _read(self, shot: Shot, region: Box, hidden: tuple[Box, ...]) -> list[str]:
        try:
            return [line.text for line in await from_asyncio(self._worker.lines_of(shot.png, region, hidden))]
        except Unavailable:
            if self._pattern:
                raise
            return []  # the change is an event without its text, too

    def _say(self, sentence: str) -> None:
        if sentence not in self._said:
            self._said.add(sentence)
            self._warn(sentence)


def _around(boxes: Sequence[Box]) -> Box:
    left, top = min(box.x for box in boxes), min(box.y for box in boxes)
    right, bottom = max(box.x + box.width for box in boxes), max(box.y + box.height for box in boxes)
    return Box(left, top, right - left, bottom - top)
