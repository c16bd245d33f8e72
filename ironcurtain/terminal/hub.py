"""One program's terminal, shown to any number of viewers; the program never knows how many there are."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from ironcurtain.errors import NotFound
from ironcurtain.terminal.attachment import QUEUE_LIMIT, Attachment
from ironcurtain.terminal.keys import TypedReader, by_a_person
from ironcurtain.terminal.model import Mode, ProgramExit, ProgramStream, ScreenModel, Viewer, sane_size
from ironcurtain.terminal.recording import Recording
from ironcurtain.text.display import shorten

RESIZE_SECONDS = 0.05
"""How long the next change of size waits after one; of those that come meanwhile, the last one counts."""

FLUSH_SECONDS = 0.1
"""How long what was recorded waits to be written (it is lost if we are killed)."""

NOTICE_LIMIT = 100
"""Most characters of a notification."""

MARK_LIMIT = 300
"""Most characters of a mark in a recording."""


class Hub:
    """
    Gives a program's output to its viewers and their keys to the program.

    A viewer that does not read has its output kept, up to a limit; then that is dropped, and the viewer is drawn afresh
    from the screen model when it reads again. The program is paused only if no viewer at all takes more, and only for
    those who may drive it: who merely looks on cannot stop it.

    :param stream: calls :meth:`received`, :meth:`input_full` and :meth:`ended`.
    :param clock: the reactor, or a ``Clock``.
    :param screen: of the size that the program's terminal has; it is closed when the program ends.
    :param size: that size.
    :param recording: gets all that is shown.
    :param queue_limit: most bytes that are kept for one viewer.
    :ivar active: when there was output, or a person's input, the last time; in seconds of the clock.
    """

    log = Logger()

    def __init__(
        self,
        stream: ProgramStream,
        clock: IReactorTime,
        screen: ScreenModel,
        size: tuple[int, int],
        *,
        recording: Recording | None = None,
        queue_limit: int = QUEUE_LIMIT,
    ) -> None:
        self._stream, self._clock, self._screen = stream, clock, screen
        self._recording, self._queue_limit = recording, queue_limit
        self._attachments: tuple[Attachment, ...] = ()
        self._readers: dict[Attachment, TypedReader] = {}
        self._driver: Attachment | None = None
        self._over: ProgramExit | None = None
        self._size = self._wanted = size
        self._resizing: IDelayedCall | None = None
        self._flushing: IDelayedCall | None = None
        self._paused = self._input_full = False
        self._notice = b""
        self.active = clock.seconds()

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows of the program's terminal."""
        return self._size

    @property
    def viewers(self) -> int:
        """How many there are."""
        return len(self._attachments)

    @property
    def over(self) -> ProgramExit | None:
        """How the program ended, once it has."""
        return self._over

    def received(self, data: bytes) -> None:
        """:param data: the program's output, as it came."""
        self.active = self._clock.seconds()
        for attachment in self._attachments:  # first: a person waits for it
            attachment.output(data)
        self._screen.feed(data)
        self._say(lambda recording: recording.output(self.active, data))
        if self._notice:
            self._give_notice()

    def ended(self, ended: ProgramExit) -> None:
        """The program ended, or cannot be reached any more: viewers' terminals are restored. Harmless if it has."""
        if self._over is not None:
            return
        self._over = ended
        if self._resizing is not None:
            self._resizing.cancel()
            self._resizing = None
        self._say(lambda recording: recording.end())
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None
        attachments, self._attachments = self._attachments, ()
        self._readers.clear()
        for attachment in attachments:
            attachment.end(ended)
        self._screen.close()

    def input_full(self, full: bool) -> None:
        """:param full: whether the program does not read, so that no more should be typed."""
        self._input_full = full
        for attachment in self._attachments:
            attachment.hold(full)

    def attach(self, viewer: Viewer, mode: Mode, columns: int, rows: int) -> Attachment:
        """
        Show the terminal to one more; the screen as it is now is drawn, soon, then what follows.

        :param columns: of the viewer's terminal, as are ``rows``; if it drives, the program's terminal takes this size.
        :raises NotFound: the program has ended.
        """
        if self._over is not None:
            raise NotFound(f"its terminal is closed: {self._over.reason or 'the program ended'}")
        attachment = Attachment(self, viewer, mode, sane_size(columns, rows), self._queue_limit)
        if mode is Mode.DRIVE:
            self._driver = attachment
            self._want(attachment.size, at_once=True)
        self._attachments += (attachment,)
        self._readers[attachment] = TypedReader()
        attachment.begin()
        if self._input_full:
            attachment.hold(True)
        self.changed()
        return attachment

    def bell(self, text: str = "") -> None:
        """
        Ring at every viewer, and let their terminals notify.

        :param text: what is shown by terminals that can (OSC 9); may come from anywhere.
        """
        safe = shorten(text, NOTICE_LIMIT)
        self._notice = (b"\x1b]9;%b\x1b\\" % safe.encode() if safe else b"") + b"\x07"
        self._say(lambda recording: recording.marker(self._clock.seconds(), safe or "bell"))
        self._give_notice()

    def mark(self, label: str) -> None:
        """:param label: stands in the recording at this moment; may come from anywhere."""
        self._say(lambda recording: recording.marker(self._clock.seconds(), shorten(label, MARK_LIMIT)))

    def text(self) -> Deferred[str]:
        """
        Read the terminal.

        :returns: what it shows and has shown, as plain text; wrapped lines are joined. Without an exact model, and once
            the program has ended: the last output without its sequences. Does not fail.
        """
        found: Deferred[str] = Deferred()
        self._screen.text(found.callback)
        return found

    def redraw(self, size: tuple[int, int], history: bool, draw: Callable[[bytes], None]) -> None:
        """For attachments: what draws from scratch all that there is now."""
        self._screen.redraw(*size, history, draw)

    def typed(self, attachment: Attachment, data: bytes) -> None:
        """For attachments: input for the program. Of several terminals, only the one in use answers its questions."""
        echoed = self._recording is not None and self._recording.echoes()  # now: the program may change that
        pieces = self._readers[attachment].feed(data)
        now = self._clock.seconds()
        if by_a_person(pieces):
            self.active, self._driver = now, attachment
            self._want(attachment.size)
        if self._driver in (None, attachment):
            self._stream.write(data)
        self._say(lambda recording: recording.typed(now, pieces, echoed))

    def sized(self, attachment: Attachment) -> None:
        """For attachments: a terminal has another size."""
        attachment.size = sane_size(*attachment.size)
        if attachment.mode is Mode.DRIVE:
            self._want(attachment.size)

    def changed(self) -> None:
        """For attachments: one is full, or no longer."""
        drivers = any(attachment.mode is Mode.DRIVE for attachment in self._attachments)
        paused = drivers and all(attachment.full for attachment in self._attachments)
        if paused != self._paused and self._over is None:
            self._paused = paused
            (self._stream.pause if paused else self._stream.resume)()

    def left(self, attachment: Attachment) -> None:
        """For attachments: one is gone."""
        if attachment in self._attachments:
            self._attachments = tuple(other for other in self._attachments if other is not attachment)
            del self._readers[attachment]
            self._driver = None if self._driver is attachment else self._driver
            self.changed()

    def _say(self, say: Callable[[Recording], None]) -> None:
        if self._recording is not None:
            try:
                say(self._recording)
            except OSError as e:
                self.log.error("the recording ends here: {error}", error=e)
                self._recording = None
            else:
                if self._flushing is None and self._recording.waits:
                    self._flushing = self._clock.callLater(FLUSH_SECONDS, self._flush)

    def _flush(self) -> None:
        self._flushing = None
        self._say(lambda recording: recording.flush())

    def _give_notice(self) -> None:
        """Put the notice in where it cuts no sequence in two."""
        if self._notice and self._screen.between:
            notice, self._notice = self._notice, b""
            for attachment in self._attachments:
                attachment.notice(notice)

    def _want(self, size: tuple[int, int], at_once: bool = False) -> None:
        self._wanted = size
        if self._resizing is None or at_once:
            self._resize()

    def _resize(self) -> None:
        if self._wanted == self._size or self._over is not None:
            return
        size = self._size = self._wanted
        self._screen.resize(*size)
        self._say(lambda recording: recording.resized(self._clock.seconds(), *size))
        self._stream.resize(*size)
        if self._resizing is None:
            self._resizing = self._clock.callLater(RESIZE_SECONDS, self._resize_again)

    def _resize_again(self) -> None:
        self._resizing = None
        self._resize()
