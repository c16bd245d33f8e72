"""One program's terminal for any number of viewers; the program does not notice them."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from ironcurtain.errors import NotFound
from ironcurtain.terminal.attachment import QUEUE_LIMIT, Attachment
from ironcurtain.terminal.keys import InputPiece, TypedReader, by_a_person
from ironcurtain.terminal.model import Mode, ProgramExit, ProgramStream, ScreenModel, Viewer, sane_size
from ironcurtain.terminal.recording import Recording
from ironcurtain.text.display import shorten

RESIZE_SECONDS = 0.05
"""Minimum seconds between two changes of size; of several requests, the last one counts."""

FLUSH_SECONDS = 0.1
"""Maximum delay in seconds before recorded data is written (it is lost if the process is killed)."""

NOTICE_LIMIT = 100
"""Maximum length in characters of a notification."""

MARK_LIMIT = 300
"""Maximum length in characters of a mark in a recording."""


class Hub:
    """
    Sends a program's output to its viewers, and their input to the program.

    Output for a viewer that does not read is queued up to a limit. Then it is dropped, and the viewer gets a redraw
    from the screen model when it reads again. The program is paused only while no controlling viewer takes more output;
    observers cannot pause it.

    :param stream: calls :meth:`received`, :meth:`input_full` and :meth:`ended`.
    :param clock: the reactor, or a ``Clock``.
    :param screen: a screen model of the program's terminal size; closed when the program ends.
    :param size: that size.
    :param recording: records all output.
    :param queue_limit: maximum bytes queued for one viewer.
    :param typed: called with the input that goes to the program, before it is sent.
    :ivar active: time of the last output or a person's input, in seconds of the clock.
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
        typed: Callable[[list[InputPiece]], None] = lambda pieces: None,
    ) -> None:
        self._stream, self._clock, self._screen = stream, clock, screen
        self._recording, self._queue_limit, self._typed = recording, queue_limit, typed
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
        """Number of viewers."""
        return len(self._attachments)

    @property
    def over(self) -> ProgramExit | None:
        """How the program ended; ``None`` while it runs."""
        return self._over

    def received(self, data: bytes) -> None:
        """:param data: new output of the program."""
        self.active = self._clock.seconds()
        for attachment in self._attachments:  # first, since a person waits for it
            attachment.output(data)
        self._screen.feed(data)
        self._say(lambda recording: recording.output(self.active, data))
        if self._notice:
            self._give_notice()

    def ended(self, ended: ProgramExit) -> None:
        """The program ended, or cannot be reached: end all attachments. Can be called twice."""
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
        """:param full: whether the program does not read its input, so that viewers must stop typing."""
        self._input_full = full
        for attachment in self._attachments:
            attachment.hold(full)

    def attach(self, viewer: Viewer, mode: Mode, columns: int, rows: int) -> Attachment:
        """
        Attach a viewer: draw the current screen, then further output.

        :param columns: size of the viewer's terminal, with ``rows``; if it controls the program, the program's terminal
            takes this size.
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
        Ring the bell of every viewer, with a notification.

        :param text: text of the notification in terminals that support OSC 9; may be untrusted.
        """
        safe = shorten(text, NOTICE_LIMIT)
        self._notice = (b"\x1b]9;%b\x1b\\" % safe.encode() if safe else b"") + b"\x07"
        self._say(lambda recording: recording.marker(self._clock.seconds(), safe or "bell"))
        self._give_notice()

    def mark(self, label: str) -> None:
        """:param label: text of a mark in the recording at this moment; may be untrusted."""
        self._say(lambda recording: recording.marker(self._clock.seconds(), shorten(label, MARK_LIMIT)))

    def text(self) -> Deferred[str]:
        """
        Read the terminal.

        :returns: screen and scrollback as plain text; wrapped lines are joined. Without an exact model, and after the
            program's end: the last output without its sequences. Does not fail.
        """
        found: Deferred[str] = Deferred()
        self._screen.text(found.callback)
        return found

    def redraw(self, size: tuple[int, int], history: bool, draw: Callable[[bytes], None]) -> None:
        """For attachments: pass a redraw of the current state to ``draw``."""
        self._screen.redraw(*size, history, draw)

    def typed(self, attachment: Attachment, data: bytes) -> None:
        """
        For attachments: input for the program. If several terminals are attached, only the one in use answers the
        program's queries.
        """
        echoed = (
            self._recording is not None and self._recording.echoes()
        )  # take the mode now, since the input can change it
        pieces = self._readers[attachment].feed(data)
        now = self._clock.seconds()
        if by_a_person(pieces):
            self.active, self._driver = now, attachment
            self._want(attachment.size)
        if self._driver in (None, attachment):
            self._typed(pieces)
            self._stream.write(data)
        self._say(lambda recording: recording.typed(now, pieces, echoed))

    def sized(self, attachment: Attachment) -> None:
        """For attachments: a terminal has a new size."""
        attachment.size = sane_size(*attachment.size)
        if attachment.mode is Mode.DRIVE:
            self._want(attachment.size)

    def changed(self) -> None:
        """For attachments: one became full, or is no longer full."""
        drivers = any(attachment.mode is Mode.DRIVE for attachment in self._attachments)
        paused = drivers and all(attachment.full for attachment in self._attachments)
        if paused != self._paused and self._over is None:
            self._paused = paused
            (self._stream.pause if paused else self._stream.resume)()

    def left(self, attachment: Attachment) -> None:
        """For attachments: one was detached."""
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
        """Insert the notification where it does not split a sequence."""
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
