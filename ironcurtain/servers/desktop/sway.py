"""
Windows and input under sway, by its own command ``swaymsg``; pictures by ``grim``, keys by ``wtype``.

Wayland lets no client see the others, so all this is what the compositor says and does. It does not tell of what lies
above windows without being one, such as panels and notifications.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ironcurtain.servers.desktop.keys import Chord
from ironcurtain.servers.desktop.model import Bounds, DesktopError, Unsupported, Window, shown
from ironcurtain.servers.desktop.programs import installed, output

_BUTTONS = {1: "button1", 2: "button2", 3: "button3", 4: "button4", 5: "button5", 6: "button6", 7: "button7"}
ANSWER_SECONDS = 5.0
"""How long an answer of sway may take."""

NOTICE_SECONDS = 0.3
"""How long applications may take to notice a keyboard, and what was typed on it before it goes."""

_NO_SWAY = re.compile("ipc-client|took longer")
"""What is said of ``swaymsg`` if sway does not answer."""

_HOLD = "600000"
"""Milliseconds for which ``wtype`` is the keyboard of a seat that has none; longer than any call."""

_POINTER = 1
"""Number of the capability of a seat with a mouse or its like (Wayland, ``wl_seat``)."""

_LAST_KEY = ("-p", "VoidSymbol")
"""One more key for the keyboard, which nobody presses: GTK 3 knows of no combination with the last one."""

_ENDINGS = {"\n": ("-k", "Return"), "\t": ("-k", "Tab"), "": ()}
"""What is no text to applications, but a key that does something."""

_TREE_LIMIT = 16 * 1024 * 1024
_PICTURE_LIMIT = 64 * 1024 * 1024


class Sway:
    """The whole screen is the rectangle around all outputs; its corner is that of the picture, too."""

    def __init__(self) -> None:
        self._keyboard: subprocess.Popen[bytes] | None = None

    def close(self) -> None:
        """Take away the keyboard that was added to type, where there was none."""
        if self._keyboard is not None:
            time.sleep(NOTICE_SECONDS)
            self._keyboard.kill()
            self._keyboard.wait()

    @property
    def size(self) -> Bounds:
        """The whole screen."""
        return _bounds(self._tree())

    @property
    def is_known_to_applications(self) -> bool:
        """Whether they can tell where on the screen their elements are: Wayland does not tell them."""
        return False

    def windows(self, app_of: Callable[[int], str]) -> list[Window]:
        """:returns: those that the compositor has, the topmost first."""
        return [_window(node, app_of) for node in _leaves(self._tree())]

    def covering(self, window: Window, windows: Sequence[Window]) -> list[Bounds]:
        """:returns: what lies above a window and does not belong to its application, as far as sway says."""
        visible = {str(node["id"]) for node in _leaves(self._tree()) if node.get("visible")}
        before = windows[: next((place for place, each in enumerate(windows) if each.id == window.id), 0)]
        return [each.bounds for each in before if each.id in visible and each.pid != window.pid]

    def owner_at(self, x: int, y: int) -> tuple[int, str]:
        """:returns: id of the process that a click at a point would go to, 0 if there is none; and of the window."""
        nodes = (node for node in _leaves(self._tree()) if node.get("visible") and _inner(node).holds(x, y))
        return next(((_pid(node), str(node["id"])) for node in nodes), (0, ""))

    def focused_process(self) -> int:
        """:returns: id of the process that gets what is typed; 0 if there is none."""
        focused = {seat.get("focus") for seat in self._seats()}  # zero where something has it that is no window
        return next((_pid(node) for node in _leaves(self._tree()) if focused == {node["id"]}), 0)

    def is_taken(self, pid: int) -> bool:
        """Nothing under sway can grab input but what the compositor shows as having the focus."""
        return False

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Sway cannot be kept from serving others meanwhile."""
        yield

    def check_pointer(self) -> None:
        """:raises Unsupported: the seat has none, so that applications would not notice what it does."""
        if not any(seat["capabilities"] & _POINTER for seat in self._seats()):
            raise Unsupported("this seat of sway has no mouse, so nothing can be clicked; use press, set_value or key")

    def pointer(self, x: int, y: int) -> None:
        """Move the pointer."""
        self.check_pointer()
        corner = self.size
        self._do(f"seat - cursor set {x - corner.x} {y - corner.y}")

    def button(self, number: int, down: bool) -> None:
        """Press or release a button of the mouse; 4 to 7 are the wheel."""
        self._do(f"seat - cursor {'press' if down else 'release'} {_BUTTONS[number]}")

    def chord(self, chord: Chord) -> None:
        """Press keys together."""
        modifiers = [name.lower() for name in chord.modifiers]
        before = [word for name in modifiers for word in ("-M", name)]
        after = [word for name in reversed(modifiers) for word in ("-m", name)]
        if len(key := chord.symbol) == 1:  # by its name, a letter would always be a small one
            self._keys([*before, key.upper() if "Shift" in chord.modifiers else key, *after])
        else:
            self._keys([*before, "-k", key, *after])

    def missing(self, text: str) -> str:
        """:returns: the characters that cannot be typed."""
        return ""

    def type(self, text: str) -> None:
        """Type text."""
        for plain, ending in re.findall(r"([^\n\t]*)(\n|\t|\Z)", text):
            if plain or ending:
                self._keys(["-", *_ENDINGS[ending]], plain.encode())

    def picture(self) -> bytes:
        """:returns: the whole screen as a PNG file."""
        return output(["grim", "-s", "1", "-"], limit=_PICTURE_LIMIT)

    def control(self, window: Window, action: str, bounds: Bounds | None) -> None:
        """Ask the compositor to do something to a window."""
        wanted = bounds or window.bounds
        orders = {
            "activate": "focus",
            "move": f"move absolute position {wanted.x} {wanted.y}",
            "resize": f"resize set {wanted.width} px {wanted.height} px",
            "maximise": "fullscreen enable",
            "close": "kill",
        }
        if action not in orders:
            raise DesktopError("sway has no minimised windows")
        self._do(f"[con_id={int(window.id)}] {orders[action]}")

    def _keys(self, words: Sequence[str], stdin: bytes = b"") -> None:
        devices = [each for seat in self._seats() for each in seat["devices"]]
        if self._keyboard is None and not any(each.get("type") == "keyboard" for each in devices):
            line, nothing = [installed("wtype"), "-s", _HOLD], subprocess.DEVNULL
            self._keyboard = subprocess.Popen(line, stdin=nothing, stdout=nothing, stderr=nothing)
            time.sleep(NOTICE_SECONDS)
        output(["wtype", *words, *_LAST_KEY], stdin=stdin)

    def _seats(self) -> Any:
        return _ask("-t", "get_seats")

    def _tree(self) -> Any:
        return _ask("-t", "get_tree")

    def _do(self, order: str) -> None:
        for each in _ask("--", order):
            if not each.get("success"):
                raise DesktopError(f"sway refuses: {shown(str(each.get('error', order)), 200)}")


def _ask(*words: str) -> Any:
    """
    :returns: what sway answers.
    :raises DesktopError: it refuses an order, has ended, or hangs.
    """
    try:
        return json.loads(output(["swaymsg", "-r", *words], seconds=ANSWER_SECONDS, limit=_TREE_LIMIT))
    except DesktopError as e:
        if _NO_SWAY.search(str(e)):
            raise DesktopError("sway has ended, or does not answer") from None
        raise


def _leaves(node: Any) -> Iterator[Any]:
    """:returns: the windows below a node, those in front first."""
    if node.get("pid") and node.get("type") in ("con", "floating_con"):
        yield node
    for child in (*reversed(node.get("floating_nodes", ())), *_by_focus(node)):
        yield from _leaves(child)


def _by_focus(node: Any) -> Sequence[Any]:
    order = {number: place for place, number in enumerate(node.get("focus", ()))}
    return sorted(node.get("nodes", ()), key=lambda child: order.get(child["id"], len(order)))


def _window(node: Any, app_of: Callable[[int], str]) -> Window:
    pid, title = _pid(node), str(node.get("name") or "")
    return Window(str(node["id"]), app_of(pid), pid, title, _inner(node), bool(node["focused"]))


def _pid(node: Any) -> int:
    return int(node.get("pid") or 0)


def _bounds(node: Any) -> Bounds:
    place = node["rect"]
    return Bounds(place["x"], place["y"], place["width"], place["height"])


def _inner(node: Any) -> Bounds:
    """:returns: a window without its frame."""
    outer, inside = _bounds(node), node.get("window_rect") or {}
    if not inside.get("width"):
        return outer
    return Bounds(outer.x + inside["x"], outer.y + inside["y"], inside["width"], inside["height"])
