"""Sounds: a program records, what is loud enough is listened to, and the sound is thrown away."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from twisted.internet.defer import Deferred, DeferredLock
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger

from ironcurtain.errors import IronCurtainError, Unavailable
from ironcurtain.process.piped import PipedCommand, exit_status
from ironcurtain.senses.client import SensesWorker
from ironcurtain.services.asyncio_bridge import from_asyncio
from ironcurtain.text.display import one_line
from ironcurtain.watchers.matching import part_matcher
from ironcurtain.watchers.model import Event, Watcher
from ironcurtain.watchers.segments import Segments

AGAIN_SECONDS = 10.0
"""Seconds after which a recorder that has ended is started again: an application may play later."""

WAITING = 4
"""Most pieces of sound that wait to be listened to; further ones are not."""

TEXT_SHOWN = 2000
"""Most characters of what was said in an event."""


class AudioTrigger:
    """
    A :class:`~ironcurtain.watchers.trigger.Trigger` for speech, and without a pattern also for singing and music.

    :param watcher: its ``pattern`` is for a part of what is said.
    :param reactor: provides time, and runs programs.
    :param recorder: returns the command line of a program that writes sound to its standard output, in the format of
        :mod:`ironcurtain.senses.model`; fails with an :class:`~ironcurtain.errors.IronCurtainError` with advice.
    :param environ: for the recorder.
    :param warn: called with a sentence for people.
    """

    log = Logger()

    def __init__(
        self,
        watcher: Watcher,
        reactor: Any,
        worker: SensesWorker,
        recorder: Callable[[], Deferred[Sequence[str]]],
        environ: Mapping[str, str],
        warn: Callable[[str], None],
    ) -> None:
        self._reactor, self._worker, self._recorder, self._environ = reactor, worker, recorder, environ
        self._pattern, self._matches, self._warn = watcher.pattern, part_matcher(watcher.pattern), warn
        self._segments, self._lock, self._life, self._waiting = Segments(), DeferredLock(), 0, 0
        self._fire: Callable[[Event], None] = lambda event: None
        self._command: PipedCommand[int | None] | None = None
        self._timer: IDelayedCall | None = None
        self._stopped = False
        self._said: set[str] = set()

    def start(self, fire: Callable[[Event], None]) -> None:
        """Begin to listen. Where nothing can be recorded, people are told, and it is tried again."""
        self._fire = fire
        self._begin()

    def settle(self) -> None:
        """What was heard until now is no event: the run may have spoken."""
        self._life += 1
        self._segments.forget()

    def stop(self) -> Deferred[None] | None:
        """:returns: fires when the recorder has ended."""
        self._stopped = True
        self.settle()
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        command, self._command = self._command, None
        if command is None:
            return None
        command.drop()
        ended: Deferred[None] = Deferred()
        command.done.addBoth(lambda status: ended.callback(None))
        return ended

    def _begin(self) -> None:
        Deferred.fromCoroutine(self._record()).addErrback(lambda failure: self.log.failure("recording failed", failure))

    async def _record(self) -> None:
        """Run the recorder until it ends, and try again later."""
        try:
            line = await self._recorder()
            if self._stopped:
                return
            self._command = PipedCommand(self._reactor, self._reactor, exit_status, self._heard, lambda data: None)
            self._command.spawn(line, self._environ)
            status = await self._command.done
            why = f"the recorder {line[0]} ended with status {status}"
        except IronCurtainError as e:
            why = str(e)
        self._command = None
        if not self._stopped:
            self._say(why)
            self._timer = self._reactor.callLater(AGAIN_SECONDS, self._begin)

    def _heard(self, sound: bytes) -> None:
        for piece in self._segments.feed(sound):
            if self._waiting < WAITING:
                self._waiting += 1
                Deferred.fromCoroutine(self._listen(piece, self._life)).addErrback(
                    lambda failure: self.log.failure("listening failed", failure)
                )

    async def _listen(self, piece: bytes, life: int) -> None:
        """:param life: at the time of the sound."""
        await self._lock.acquire()
        try:
            event = await self._event(piece) if life == self._life else None
        except IronCurtainError as e:
            event = None
            self._say(str(e))
        finally:
            self._waiting -= 1
            self._lock.release()
        if event is not None and life == self._life:
            self._fire(event)

    async def _event(self, piece: bytes) -> Event | None:
        kinds = {event.kind for event in await from_asyncio(self._worker.sound_events(piece))}
        text = await self._said_in(piece) if "speech" in kinds else ""
        if not kinds or (self._pattern and not (text and self._matches(text))):
            return None
        return Event({"heard": ", ".join(sorted(kinds)), "said": one_line(text, TEXT_SHOWN)})

    async def _said_in(self, piece: bytes) -> str:
        try:
            return " ".join(said.text for said in await from_asyncio(self._worker.transcribe(piece)))
        except Unavailable:
            if self._pattern:
                raise
            return ""  # speech is an event without its words, too

    def _say(self, sentence: str) -> None:
        if sentence not in self._said:
            self._said.add(sentence)
            self._warn(sentence)
