"""
The tools that operate applications. Each verifies at the act what was judged: the application's process, the element's
role and name, the window and where it is. Where something differs, nothing is done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ironcurtain.servers.desktop.accessibility import TERMINAL, Accessibility, Element, Place, accessibility
from ironcurtain.servers.desktop.bus import NOTIFICATIONS, Bus, NoAnswer, session_address
from ironcurtain.servers.desktop.guard import Guard
from ironcurtain.servers.desktop.keys import parse
from ironcurtain.servers.desktop.looking import described, state, text_part
from ironcurtain.servers.desktop.model import Bounds, DesktopError, Unsupported, Window, shown
from ironcurtain.servers.desktop.screen import Screen, screen
from ironcurtain.servers.server import Part

SETTLE_SECONDS = 0.2
"""How long an application gets to show what became of an action."""

FOCUS_SECONDS = 2.0
"""How long a window may take until it has the focus."""

PIECE = 20
"""Characters that are typed until it is verified again where they go."""

_STEPS = 8
"""Number of movements of which a drag consists."""

_BUTTONS = {"left": 1, "middle": 2, "right": 3}

_TAKEN = "another program has taken the keyboard or the mouse, such as a launcher, a lock or a question for a password"

Arguments = Mapping[str, Any]


async def guard(environ: Mapping[str, str]) -> Guard:
    """
    :returns: one that knows who shows notifications.
    :raises DesktopError: that cannot be known, since the session bus does not answer.
    """
    try:
        address = session_address(environ)
    except Unsupported:  # without a bus nobody shows any
        return Guard()
    async with Bus(address) as bus:
        return Guard(await bus.process(NOTIFICATIONS) if await bus.has_owner(NOTIFICATIONS) else 0)


class Hands:
    """:param environ: names the display."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    async def press(self, given: Arguments) -> list[Part]:
        """Carry out an element's first action."""
        return await self._on_element(given, Accessibility.press)

    async def select(self, given: Arguments) -> list[Part]:
        """Select an element of a list."""
        return await self._on_element(given, Accessibility.select)

    async def set_value(self, given: Arguments) -> list[Part]:
        """Replace an element's text or number."""

        async def act(access: Accessibility, element: Element) -> None:
            await access.set_value(element, given["value"])

        return await self._on_element(given, act)

    async def _on_element(self, given: Arguments, act: Callable[[Accessibility, Element], Any]) -> list[Part]:
        place, known = Place.of(given["ref"]), await guard(self._environ)
        async with accessibility(self._environ) as access:
            known.check_input(await access.process(place), given["app"], given["terminal"], "the element")
            element = await access.read(place)
            if (role := shown(element.role, 60)) != given["role"] or shown(element.name) != given["name"]:
                raise DesktopError(f"the element is now the {role} {shown(element.name, 200)!r}; nothing was done")
            if element.role == TERMINAL and not given["terminal"]:
                raise DesktopError(
                    "the element is a terminal: repeat the call with terminal = true, and a person is asked"
                )
            if "enabled" not in element.states:
                raise DesktopError("the element is disabled now; nothing was done")
            try:
                await act(access, element)
            except NoAnswer as e:
                raise DesktopError(f"{e}; whether it was done is not known") from None
            await asyncio.sleep(SETTLE_SECONDS)
            try:
                return [state(await access.read(place))]
            except DesktopError:
                return [text_part("done; the element is no longer there")]

    async def click(self, given: Arguments) -> list[Part]:
        """Click at a point of a window."""
        x, y = _point(given["point"])
        number, count = _BUTTONS[given["button"]], int(given["count"])
        if not 1 <= count <= 3:
            raise DesktopError("count is 1, 2 or 3")
        with self._at(given, await guard(self._environ), (x, y)) as (found, window):
            found.pointer(x, y)
            for down in (True, False) * count:
                found.button(number, down)
        return [text_part({"clicked": described(window)})]

    async def drag(self, given: Arguments) -> list[Part]:
        """Drag from one point of a window to another."""
        start, end = _point(given["point"]), _point(given["to"])
        with self._at(given, await guard(self._environ), start, end) as (found, window):
            found.pointer(*start)
            found.button(1, True)
            for step in range(1, _STEPS + 1):
                found.pointer(*(a + (b - a) * step // _STEPS for a, b in zip(start, end, strict=True)))
            found.button(1, False)
        return [text_part({"dragged": described(window)})]

    async def scroll(self, given: Arguments) -> list[Part]:
        """Turn the wheel over a point of a window."""
        right, down = int(given["right"]), int(given["down"])
        if abs(right) > 50 or abs(down) > 50:
            raise DesktopError("right and down are at most 50 steps")
        point = _point(given["point"])
        with self._at(given, await guard(self._environ), point) as (found, window):
            found.pointer(*point)
            for number in [5 if down > 0 else 4] * abs(down) + [7 if right > 0 else 6] * abs(right):
                found.button(number, True)
                found.button(number, False)
        return [text_part({"scrolled": described(window)})]

    @contextmanager
    def _at(self, given: Arguments, known: Guard, *points: tuple[int, int]) -> Iterator[tuple[Screen, Window]]:
        """
        Hold the screen while something is done at points of a window.

        :raises DesktopError: the window or its place is not that of the call, or something lies above it.
        """
        wanted = Bounds.of(given["bounds"])
        with screen(self._environ) as found, found.alone():
            window = _find(found, known, given)
            if window.bounds != wanted:
                raise DesktopError(f"the window is now at {window.bounds.list}; nothing was done")
            known.check_input(window.pid, given["app"], given["terminal"], "the window")
            for point in points:
                if not window.bounds.holds(*point):
                    raise DesktopError(f"{list(point)} is not in the window; nothing was done")
                owner, its = found.owner_at(*point)
                if owner != window.pid:
                    known.check_app(owner, given["app"], f"what is at {list(point)}")
                    raise DesktopError(f"another process of {given['app']} is at {list(point)}; nothing was done")
                if its not in ("", window.id):
                    raise DesktopError(f"another window of {given['app']} is at {list(point)}; nothing was done")
            if found.is_taken(window.pid):
                raise DesktopError(f"{_TAKEN}; nothing was done")
            yield found, window

    async def key(self, given: Arguments) -> list[Part]:
        """Press a combination of keys in a window."""
        chord = parse(given["keys"])
        with screen(self._environ) as found:
            known, window = await self._focused(found, given)
            with found.alone():
                _verify_focus(found, known, window)
                found.chord(chord)
            return [text_part({"got": described(window)})]

    async def type(self, given: Arguments) -> list[Part]:
        """Type text in a window."""
        text = given["text"]
        with screen(self._environ) as found:
            if missing := found.missing(text):
                raise DesktopError(
                    f"no key of this keyboard gives {shown(missing, 60)}: use set_value, or the clipboard; nothing was"
                    " typed"
                )
            known, window = await self._focused(found, given)
            for start in range(0, len(text), PIECE):
                with found.alone():
                    try:
                        _verify_focus(found, known, window)
                    except DesktopError as e:
                        raise DesktopError(f"{e}; {start} of {len(text)} characters were typed before") from None
                    found.type(text[start : start + PIECE])
                    _verify_typed(found, known, window, min(start + PIECE, len(text)), len(text))
                await asyncio.sleep(0)
            return [text_part({"got": described(window), "characters": len(text)})]

    async def _focused(self, found: Screen, given: Arguments) -> tuple[Guard, Window]:
        """:returns: the window of a call, which has the focus now."""
        known = await guard(self._environ)
        window = _find(found, known, given)
        known.check_input(window.pid, given["app"], given["terminal"], "the window")
        if not window.focused:
            found.control(window, "activate", None)
        for _ in range(round(FOCUS_SECONDS / 0.05)):
            if any(each.id == window.id and each.focused for each in found.windows(known.app)):
                break
            await asyncio.sleep(0.05)
        return known, window

    async def window(self, given: Arguments) -> list[Part]:
        """Activate, move, resize, minimise, maximise or close a window."""
        known, place = await guard(self._environ), given.get("bounds")
        if given["action"] in ("move", "resize") and place is None:
            raise DesktopError(f"{given['action']} needs bounds: x, y, width and height")
        wanted = None if place is None else Bounds.of(place)
        with screen(self._environ) as found:
            window = _find(found, known, given)
            if shown(window.title, 300) != given["title"]:
                raise DesktopError(f"the window is now called {shown(window.title, 300)!r}; nothing was done")
            known.check_input(window.pid, given["app"], True, "the window")
            found.control(window, given["action"], wanted)
            await asyncio.sleep(SETTLE_SECONDS)
            after = [each for each in found.windows(known.app) if each.id == window.id]
        return [text_part(described(after[0]) if after else "the window is no longer there")]


def _find(found: Screen, known: Guard, given: Arguments) -> Window:
    for each in found.windows(known.app):
        if each.id == given["window"]:
            known.check_app(each.pid, given["app"], "the window")
            return each
    raise DesktopError(f"there is no window {shown(given['window'], 40)} now; call windows again; nothing was done")


def _verify_focus(found: Screen, known: Guard, window: Window) -> None:
    now = next((each for each in found.windows(known.app) if each.focused), None)
    if now is None or now.id != window.id or found.focused_process() != window.pid:
        # Named by what it is now: it may have been started, or have executed its program, since the call began.
        other = "nothing" if now is None else f"{Guard().app(now.pid) or 'another window'} ({now.id})"
        raise DesktopError(f"the window does not have the focus, but {other}")
    if found.is_taken(window.pid):
        raise DesktopError(_TAKEN)


def _verify_typed(found: Screen, known: Guard, window: Window, count: int, whole: int) -> None:
    """:raises DesktopError: the window is still there, and another one has taken the focus while text was typed."""
    try:
        _verify_focus(found, known, window)
    except DesktopError as e:
        if not any(each.id == window.id for each in found.windows(known.app)):
            return  # what was typed has closed it
        raise DesktopError(
            f"{e}; of the {count} of {whole} characters that were typed, up to {PIECE} may have gone there"
        ) from None


def _point(given: list[Any]) -> tuple[int, int]:
    if len(given) != 2:
        raise DesktopError("a point is [x, y], in pixels of the screen")
    return int(given[0]), int(given[1])
