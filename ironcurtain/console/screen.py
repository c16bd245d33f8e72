"""urwid on any byte channel: without a terminal device or signals, using the reactor for time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

import urwid
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from urwid.display import raw

INPUT_LIMIT = 64 * 1024
"""Maximum bytes of input processed in one turn; more does not come from a person, and is dropped."""

urwid.set_encoding("utf-8")  # for the whole process: otherwise urwid uses the locale of the process's starter


class Channel(Protocol):
    """The byte channel of a console."""

    @property
    def blocked(self) -> bool:
        """Whether earlier bytes are still queued. The console then draws nothing until the channel is drained."""

    def write(self, data: bytes) -> None:
        """Send bytes to the terminal."""

    def size(self) -> tuple[int, int]:
        """:returns: columns and rows."""

    def close(self, status: int) -> None:
        """End the console."""


class ReactorLoop(urwid.EventLoop):
    """
    urwid's event loop on a running reactor.

    :param failed: called with an exception of a callback, which ends the console.
    """

    def __init__(self, clock: IReactorTime, failed: Callable[[], None]) -> None:
        super().__init__()
        self._clock, self._failed = clock, failed
        self._idle: list[Callable[[], Any]] = []
        self._alarms: set[IDelayedCall] = set()
        self._waking: IDelayedCall | None = None
        self._stopped = False

    def wake(self) -> None:
        """Redraw in the reactor's next turn, once for all changes until then."""
        if self._waking is None and not self._stopped:
            self._waking = self._clock.callLater(0, self._enter_idle)

    def alarm(self, seconds: float, callback: Callable[[], Any]) -> IDelayedCall:
        """Call back later, and redraw."""

        def ring() -> None:
            self._alarms.discard(call)
            self._safely(callback)
            self.wake()

        call = self._clock.callLater(seconds, ring)
        self._alarms.add(call)
        return call

    def remove_alarm(self, handle: IDelayedCall) -> bool:
        """:returns: whether it was still pending."""
        known = handle in self._alarms
        self._alarms.discard(handle)
        if known and handle.active():
            handle.cancel()
        return known

    def enter_idle(self, callback: Callable[[], Any]) -> Callable[[], Any]:
        """Call back before the reactor waits."""
        self._idle.append(callback)
        return callback

    def remove_enter_idle(self, handle: Callable[[], Any]) -> bool:
        """:returns: whether it was registered."""
        known = handle in self._idle
        if known:
            self._idle.remove(handle)
        return known

    def watch_file(self, fd: int, callback: Callable[[], Any]) -> int:
        """Ignored: the channel delivers input."""
        return fd

    def remove_watch_file(self, handle: int) -> bool:
        """:returns: ``False``: nothing is watched."""
        return False

    def run(self) -> None:
        """Return at once: the reactor is running."""

    def stop(self) -> None:
        """Cancel all callbacks."""
        self._stopped = True
        for call in (*self._alarms, *((self._waking,) if self._waking is not None else ())):
            if call.active():
                call.cancel()
        self._alarms.clear()
        self._waking = None

    def _enter_idle(self) -> None:
        self._waking = None
        for callback in list(self._idle):
            self._safely(callback)

    def _safely(self, callback: Callable[[], Any]) -> None:
        try:
            callback()
        except Exception:
            self._failed()


def _colors(term: str, environ: Mapping[str, str]) -> Literal[1, 16, 256, 16777216]:
    if environ.get("NO_COLOR") or term in ("", "dumb") or term.endswith("-m"):
        return 1
    if environ.get("COLORTERM") in ("truecolor", "24bit"):
        return 16777216
    return 256 if "256color" in term or environ.get("COLORTERM") else 16


class _Output:
    """Collects what urwid writes until it is flushed."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._out: list[str] = []

    def write(self, data: str) -> None:
        """Collect output."""
        self._out.append(data)

    def flush(self) -> None:
        """Write it to the channel."""
        data, self._out = "".join(self._out), []
        if data:
            self._channel.write(data.encode("utf-8", "replace"))


class ChannelScreen(raw.Screen):
    """
    urwid's terminal screen, writing to a channel. Pastes and focus are always reported: a terminal that cannot do that
    ignores it.

    :param environ: the viewer's: ``TERM``, ``COLORTERM``, ``NO_COLOR`` ...
    :param drawn: called when a frame was written to the channel.
    """

    def __init__(self, channel: Channel, environ: Mapping[str, str], drawn: Callable[[], None]) -> None:
        super().__init__(None, _Output(channel), True, True)  # type: ignore[arg-type]  # the channel delivers input
        self._channel, self._drawn = channel, drawn
        self._received: list[int] = []
        """Input that is not decoded: it came before urwid took any, or is the beginning of a sequence."""
        self._take: Callable[[], None] = lambda: None
        self._resize: Callable[[], None] = lambda: None
        self.dirty = False
        """Whether a frame was skipped because the channel was blocked."""
        self.alone = True
        """Whether the last input was nothing but one key."""
        self.term = environ.get("TERM", "")
        self.has_mouse = not self.term.startswith("linux")
        """Whether the terminal reports the mouse. For that of the kernel, urwid would watch this machine's."""
        is_kernels = not self.has_mouse
        self.has_underline, self.bg_bright_is_blink = not is_kernels, is_kernels
        self.back_color_erase = not self.term.startswith(("screen", "dumb"))
        self.set_terminal_properties(_colors(self.term, environ), bright_is_bold=is_kernels)

    def received(self, data: bytes) -> None:
        """Process the terminal's input."""
        self._received += data[: max(INPUT_LIMIT - len(self._received), 0)]
        self._take()

    def resized(self) -> None:
        """The terminal has a new size; the next frame is drawn completely."""
        self.clear()
        self._resize()

    def get_cols_rows(self) -> tuple[int, int]:
        """:returns: the size of the terminal."""
        columns, rows = self._channel.size()
        self.maxrow = max(rows, 1)
        return max(columns, 1), self.maxrow

    def draw_screen(self, size: tuple[int, int], canvas: urwid.Canvas) -> None:
        """Draw, unless the channel is blocked: then the current frame is drawn when it is drained."""
        if self._channel.blocked:
            self.dirty = True
            return
        self.dirty = False
        super().draw_screen(size, canvas)
        self._drawn()

    def hook_event_loop(self, event_loop: urwid.EventLoop, callback: Callable[..., Any]) -> None:
        """From now on, pass input to urwid."""

        def parsed(keys: list[Any], codes: list[int]) -> None:
            self._received = self._received[len(codes) :]
            self.alone = len(keys) == 1
            callback(keys, codes)

        self._take = lambda: self.parse_input(event_loop, parsed, list(self._received))
        self._resize = lambda: callback(["window resize"], [])

    def unhook_event_loop(self, event_loop: urwid.EventLoop) -> None:
        """From now on, queue input."""
        self._take = self._resize = lambda: None
        super().unhook_event_loop(event_loop)

    def get_input_descriptors(self) -> list[Any]:
        """:returns: none; the channel delivers input."""
        return []

    def signal_init(self) -> None:
        """Ignored: signals belong to the process."""

    def signal_restore(self) -> None:
        """Ignored: signals belong to the process."""

    def tty_signal_keys(self, *args: Any, **kwargs: Any) -> None:
        """Ignored: there is no terminal device."""
