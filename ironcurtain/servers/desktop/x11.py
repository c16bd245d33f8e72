"""
Windows and their owners under X11, which the server knows from the kernel, and input to them.

Input is verified and sent while the server serves nobody else, so that nothing moves in between.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any

from ironcurtain.servers.desktop.keys import Chord
from ironcurtain.servers.desktop.model import Bounds, DesktopError, Window
from ironcurtain.servers.desktop.x11_connection import opened

NAME_LIMIT = 1000
"""Most 32-bit units of a title that are asked for."""

MOST_WINDOWS = 500
"""Most windows that are looked at, the topmost: any program can write the window manager's list of them."""

SHADOW = 200
"""Most pixels of a shadow that a window draws itself."""

_DEEPEST = 30
"""Most windows within each other that are looked through under a point."""

_HELD = {"Ctrl": "XK_Control_L", "Alt": "XK_Alt_L", "Shift": "XK_Shift_L"}

_NORMAL, _ADD = 3, 1
_SOURCE = 2
"""Says that a person's tool asks, as pagers do (EWMH, source indication)."""


@contextmanager
def connected(display: str) -> Iterator[X11]:
    """:raises DesktopError: the display cannot be reached, was lost, does not answer, or answers with an error."""
    with opened(display) as connection:
        yield X11(connection)


class X11:
    """:param display: the connection."""

    def __init__(self, display: Any) -> None:
        self._display, self._root = display, display.screen().root

    @property
    def size(self) -> Bounds:
        """The whole screen."""
        known = self._root.get_geometry()
        return Bounds(0, 0, known.width, known.height)

    @property
    def is_known_to_applications(self) -> bool:
        """Whether they can tell where on the screen their elements are."""
        return True

    def windows(self, app_of: Callable[[int], str]) -> list[Window]:
        """:returns: those that the window manager knows, the topmost first."""
        from Xlib.error import XError

        listed = self._property(self._root, "_NET_CLIENT_LIST_STACKING")
        active = next(iter(self._property(self._root, "_NET_ACTIVE_WINDOW")), 0)
        found = []
        for number in islice(dict.fromkeys(reversed(listed)), MOST_WINDOWS):
            try:
                found.append(self._window(int(number), int(active), app_of))
            except XError:
                continue  # it was closed meanwhile
        return found

    def covering(self, window: Window, windows: Sequence[Window]) -> list[Bounds]:
        """:returns: what lies above a window and does not belong to its application, menus and notes included."""
        from Xlib import X
        from Xlib.error import XError

        frames = {}
        for each in windows:
            with suppress(XError):  # it was closed meanwhile
                frames[self._frame(int(each.id, 16))] = each
        children = [each.id for each in self._root.query_tree().children]
        lowest = next((children.index(number) for number, each in frames.items() if each.id == window.id), -1)
        found = []
        for number in children[lowest + 1 :]:
            with suppress(XError):
                child = self._display.create_resource_object("window", number)
                place, visible = child.get_geometry(), child.get_attributes().map_state == X.IsViewable
                owner = frames[number].pid if number in frames else self._process(number)
                if visible and owner != window.pid:
                    found.append(Bounds(place.x, place.y, place.width, place.height))
        return found

    def _frame(self, number: int) -> int:
        """:returns: what holds a window and is on the screen itself: the window manager's frame, or the window."""
        window = self._display.create_resource_object("window", number)
        while (parent := window.query_tree().parent) != self._root and parent:
            window = parent
        return int(window.id)

    def owner_at(self, x: int, y: int) -> tuple[int, str]:
        """
        :returns: id of the process that a click at a point would go to, 0 if there is none; and of the window there
            that the window manager knows, empty if it is none of those, such as a menu.
        """
        known = set(self._property(self._root, "_NET_CLIENT_LIST_STACKING"))
        window, its = self._root, ""
        for _ in range(_DEEPEST):
            child = window.translate_coords(self._root, x, y).child
            if not child:
                return 0 if window is self._root else self._process(window.id), its
            window, its = child, its or (hex(child.id) if child.id in known else "")
        return 0, ""

    def focused_process(self) -> int:
        """:returns: id of the process that gets what is typed; 0 if there is none."""
        focus = self._display.get_input_focus().focus
        return self._process(focus.id) if hasattr(focus, "id") else 0

    def is_taken(self, pid: int) -> bool:
        """
        Whether input goes to another process than the one with the window or the focus, which has grabbed it, as
        launchers, locks and questions for passwords do.

        :param pid: of who should get it. Nobody tells who has grabbed; its own menus do.
        """
        from Xlib import X
        from Xlib.error import XError

        taken = [
            self._root.grab_keyboard(True, X.GrabModeAsync, X.GrabModeAsync, X.CurrentTime),
            self._root.grab_pointer(True, 0, X.GrabModeAsync, X.GrabModeAsync, X.NONE, X.NONE, X.CurrentTime),
        ]
        self._display.ungrab_keyboard(X.CurrentTime)
        self._display.ungrab_pointer(X.CurrentTime)
        if not any(status != X.GrabSuccess for status in taken):
            return False
        for child in self._root.query_tree().children:
            with suppress(XError):  # it was closed meanwhile
                shows = child.get_attributes()
                if shows.override_redirect and shows.map_state == X.IsViewable and self._process(child.id) == pid:
                    return False
        return True

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Let the server carry out no request of other clients."""
        self._display.grab_server()
        try:
            yield
        finally:
            self._display.ungrab_server()
            self._display.sync()

    def check_pointer(self) -> None:
        """A display with X11 always has one."""

    def pointer(self, x: int, y: int) -> None:
        """Move the pointer."""
        from Xlib import X
        from Xlib.ext import xtest

        xtest.fake_input(self._display, X.MotionNotify, x=x, y=y)
        self._display.sync()

    def button(self, number: int, down: bool) -> None:
        """Press or release a button of the mouse; 4 to 7 are the wheel."""
        from Xlib import X
        from Xlib.ext import xtest

        xtest.fake_input(self._display, X.ButtonPress if down else X.ButtonRelease, number)
        self._display.sync()

    def chord(self, chord: Chord) -> None:
        """
        Press keys together.

        :raises DesktopError: no key gives the symbol.
        """
        from Xlib import XK

        if (codes := self._codes(XK.string_to_keysym(chord.symbol))) is None:
            raise DesktopError(f"no key of this keyboard gives {chord.symbol}")
        held = (self._display.keysym_to_keycode(getattr(XK, _HELD[name])) for name in chord.modifiers)
        self._stroke(tuple(dict.fromkeys((*held, *codes))))

    def missing(self, text: str) -> str:
        """:returns: the characters that cannot be typed."""
        return "".join(dict.fromkeys(each for each in text if self._codes(_keysym(each)) is None))

    def type(self, text: str) -> None:
        """Type text, of which nothing is missing."""
        for character in text:
            self._stroke(self._codes(_keysym(character)) or ())

    def _stroke(self, codes: Sequence[int]) -> None:
        """Press keys one after another, and release them in reverse."""
        from Xlib import X
        from Xlib.ext import xtest

        for code in codes:
            xtest.fake_input(self._display, X.KeyPress, code)
        for code in reversed(codes):
            xtest.fake_input(self._display, X.KeyRelease, code)
        self._display.sync()

    def _codes(self, keysym: int) -> tuple[int, ...] | None:
        """:returns: the keys that give a symbol, Shift before it if needed; ``None`` if none do."""
        from Xlib import XK

        for code, level in sorted(self._display.keysym_to_keycodes(keysym), key=lambda each: each[1]):
            if level == 0:
                return (code,)
            if level == 1:
                return (self._display.keysym_to_keycode(XK.XK_Shift_L), code)
        return None

    def picture(self) -> bytes:
        """:returns: the whole screen as a PNG file."""
        from Xlib import X

        size, format = self.size, self._display.display.info
        depth = self._root.get_geometry().depth
        pixels = next((each.bits_per_pixel for each in format.pixmap_formats if each.depth == depth), 0)
        if pixels != 32 or format.image_byte_order != X.LSBFirst:
            raise DesktopError("the screen has colours that are not supported; it needs 24 bits each")
        image = self._root.get_image(0, 0, size.width, size.height, X.ZPixmap, 0xFFFFFFFF)
        return png(size.width, size.height, image.data)

    def control(self, window: Window, action: str, bounds: Bounds | None) -> None:
        """Ask the window manager to do something to a window."""
        from Xlib import X

        number = int(window.id, 16)
        match action:
            case "activate":
                self._send(number, "_NET_ACTIVE_WINDOW", (_SOURCE, X.CurrentTime, 0, 0, 0))
            case "move" | "resize":
                wanted = bounds or window.bounds
                flags = 0x300 if action == "move" else 0xC00
                place = (wanted.x, wanted.y, wanted.width, wanted.height)
                self._send(number, "_NET_MOVERESIZE_WINDOW", (flags | _SOURCE << 12, *place))
            case "minimise":
                self._send(number, "WM_CHANGE_STATE", (_NORMAL, 0, 0, 0, 0))
            case "maximise":
                states = (self._atom(f"_NET_WM_STATE_MAXIMIZED_{way}") for way in ("HORZ", "VERT"))
                self._send(number, "_NET_WM_STATE", (_ADD, *states, _SOURCE, 0))
            case _:
                self._send(number, "_NET_CLOSE_WINDOW", (X.CurrentTime, _SOURCE, 0, 0, 0))
        self._display.sync()

    def _window(self, number: int, active: int, app_of: Callable[[int], str]) -> Window:
        window = self._display.create_resource_object("window", number)
        size, place = window.get_geometry(), window.translate_coords(self._root, 0, 0)
        pid = self._process(number)
        bounds = Bounds(-place.x, -place.y, size.width, size.height)
        content = _without(bounds, self._property(window, "_GTK_FRAME_EXTENTS"))
        return Window(hex(number), app_of(pid), pid, self._title(window), bounds, number == active, content)

    def _process(self, window: int) -> int:
        from Xlib.ext import res

        asked = [(window, res.LocalClientPIDMask)]
        for each in res.query_client_ids(self._display, asked).ids:
            if each.value:
                return int(each.value[0])
        return 0

    def _title(self, window: Any) -> str:
        for name in ("_NET_WM_NAME", "WM_NAME"):
            found = window.get_property(self._atom(name), 0, 0, NAME_LIMIT)
            if found is not None:
                value = found.value
                return value.decode(errors="replace") if isinstance(value, bytes) else ""
        return ""

    def _property(self, window: Any, name: str) -> Any:
        found = window.get_full_property(self._atom(name), 0)
        return () if found is None else found.value

    def _atom(self, name: str) -> int:
        return int(self._display.intern_atom(name))

    def _send(self, window: int, kind: str, data: tuple[int, ...]) -> None:
        from Xlib import X
        from Xlib.protocol import event

        message = event.ClientMessage(window=window, client_type=self._atom(kind), data=(32, data))
        self._root.send_event(message, event_mask=X.SubstructureRedirectMask | X.SubstructureNotifyMask)


def _without(bounds: Bounds, rim: Sequence[int]) -> Bounds | None:
    """:param rim: width of a shadow on the left, right, top and bottom (GTK), as the window says; or nothing."""
    if len(rim) != 4 or not all(0 <= each <= SHADOW for each in rim):
        return None
    left, right, top, bottom = rim
    return Bounds(bounds.x + left, bounds.y + top, bounds.width - left - right, bounds.height - top - bottom)


def _keysym(character: str) -> int:
    """:returns: the symbol of a character (X protocol, appendix A: Latin-1 as it is, Unicode above 0x1000000)."""
    if special := {"\n": 0xFF0D, "\t": 0xFF09}.get(character):
        return special
    return ord(character) if 0x20 <= ord(character) < 0x100 else 0x1000000 + ord(character)


def png(width: int, height: int, pixels: bytes) -> bytes:
    """
    :param pixels: four bytes each: blue, green, red, and one that is not used.
    :returns: a PNG file.
    """
    colours = bytearray(width * height * 3)
    for to, source in enumerate((2, 1, 0)):
        colours[to::3] = pixels[source::4]
    line = width * 3
    lines = b"".join(b"\0" + colours[start : start + line] for start in range(0, len(colours), line))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(lines, 1)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
