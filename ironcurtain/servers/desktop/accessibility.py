"""
The elements of applications, by the accessibility bus (AT-SPI).

Roles, names and values are what an application says of itself. Who says it is known: the bus has each connection's
process from the kernel, and never gives out the name of a connection twice.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from ironcurtain.servers.desktop.bus import Bus, NoAnswer, session_address
from ironcurtain.servers.desktop.model import Bounds, DesktopError, Unsupported, shown
from ironcurtain.servers.desktop.placement import Frame

PASSWORD = "password text"
"""Role of elements whose text is secret."""

MENU = "menu"
"""Role of elements with entries, which need not be open to be pressed."""

TERMINAL = "terminal"
"""Role of elements in which a terminal is shown."""

VALUE_LIMIT = 4000
"""Most characters that are read of an element's text."""

CHILD_LIMIT = 500
"""Most children of one element that are asked for; lists can have a hundred thousand."""

FRAME_LIMIT = 100
"""Most windows of one application that are asked for."""

_LAUNCHER = "org.a11y.Bus"
_PREFIX = "/org/a11y/atspi/accessible/"
ROOT = f"{_PREFIX}root"
"""Path of an application's first element."""

_SPI = "org.a11y.atspi."
_PROPERTIES = "org.freedesktop.DBus.Properties"
_REF = re.compile(r"([0-9]{1,9}\.[0-9]{1,9})(/[A-Za-z0-9_/]{1,200})")

_STATES = {
    4: "checked", 7: "editable", 9: "expandable", 10: "expanded", 12: "focused", 16: "modal", 20: "pressed",
    23: "selected", 24: "enabled", 25: "showing", 30: "visible",
}  # fmt: skip
"""Numbers of the states of AT-SPI that are used here, counted as its header does."""

_PASSWORD_NUMBER = 40
"""Number of the role ``password text`` (AT-SPI)."""

_PASSWORD_FIELDS = ([[], 1, {}, 1, [0, 1 << 8, 0, 0], 2, [], 1, False], 1, 100, True)
"""Arguments of ``GetMatches`` that find elements of the role with this number."""

_SEARCHED, _SEARCHED_DEPTH = 2000, 40
"""Most elements that are searched for passwords where that does not work."""

_DEEPEST = 200
"""Most elements within each other that are read."""

_TELLING = frozenset(("EditableText", "Selection", "Table", "Text", "Value"))
"""Interfaces of elements that are more than a frame around others."""

_NOWHERE = -(2**31)
"""Where elements are that are not shown."""

_PRESSING = (
    "click", "press", "activate", "toggle", "open", "jump", "select", "switch", "check", "uncheck", "cycle",
    "expand or contract", "showmenu", "clickancestor", "dodefault",
)  # fmt: skip
"""Names of actions that a click carries out, the best first; others are done in no other way, such as cutting."""


class Place(msgspec.Struct, frozen=True):
    """Where an element is: the name of a connection, and the path of an object of it."""

    bus: str
    path: str

    @property
    def ref(self) -> str:
        """As in arguments and results."""
        short = f"/{self.path.removeprefix(_PREFIX)}" if self.path.startswith(_PREFIX) else f"/{self.path}"
        return f"{self.bus.removeprefix(':')}{short}"

    @classmethod
    def of(cls, ref: str) -> Place:
        """:raises DesktopError: it is no reference that ``tree`` returns."""
        if (found := _REF.fullmatch(ref)) is None:
            raise DesktopError("ref must be one that tree returned")
        path = found[2]
        return cls(f":{found[1]}", path[1:] if path.startswith("//") else f"{_PREFIX}{path[1:]}")


class Element(msgspec.Struct):
    """
    An element as its application describes it.

    :param value: its text or number; ``None`` if it has none or it is secret.
    :param bounds: on the screen; of one that is ``adrift`` in its window, whose place nobody tells.
    :param children: those that were read; ``more`` says how many were not.
    """

    place: Place
    role: str
    name: str
    value: str | None
    bounds: Bounds | None
    states: frozenset[str]
    actions: tuple[str, ...]
    interfaces: frozenset[str]
    count: int
    children: list[Element] = msgspec.field(default_factory=list)
    more: int = 0
    adrift: bool = False

    @property
    def is_bare(self) -> bool:
        """Whether it only holds others."""
        return not (self.name or self.value or self.actions or self.interfaces & _TELLING)

    @property
    def pressing(self) -> int | None:
        """Number of the action that a click carries out; ``None`` if there is none."""
        lower = [action.casefold() for action in self.actions]
        return next((lower.index(name) for name in _PRESSING if name in lower), None)

    def walk(self) -> Iterator[Element]:
        """:returns: this element and all that were read below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()


@asynccontextmanager
async def accessibility(environ: Mapping[str, str]) -> AsyncIterator[Accessibility]:
    """:raises DesktopError: there is no accessibility bus."""
    async with Bus(session_address(environ)) as session:
        if not await session.has_owner(_LAUNCHER) and _LAUNCHER not in await session.startable():
            raise Unsupported("no program tells of elements (Debian: apt install at-spi2-core)")
        (address,) = await session.call((_LAUNCHER, "/org/a11y/bus", _LAUNCHER), "GetAddress", "s", seconds=5.0)
    async with Bus(str(address)) as bus:
        yield Accessibility(bus)


class Accessibility:
    """:param bus: the accessibility bus."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def applications(self) -> dict[str, int]:
        """:returns: the connections of applications, and the ids of their processes."""
        registry = Place("org.a11y.atspi.Registry", ROOT)
        (children,) = await self._call(registry, "Accessible", "GetChildren", "a(so)")
        names = list(dict.fromkeys(str(bus) for bus, _ in children))
        pids = await asyncio.gather(*map(self._bus.process, names), return_exceptions=True)
        return {name: pid for name, pid in zip(names, pids, strict=True) if isinstance(pid, int)}

    async def process(self, place: Place) -> int:
        """
        :returns: id of the process that an element belongs to.
        :raises DesktopError: it has ended.
        """
        try:
            return await self._bus.process(place.bus)
        except DesktopError:
            raise DesktopError("the application of this element has ended; call tree again") from None

    async def read(self, place: Place) -> Element:
        """:raises DesktopError: the element is gone, or its application does not answer."""
        about, interfaces, states, (named,), (number,) = await asyncio.gather(
            self._call(place, "", "GetAll", "a{sv}", "s", [f"{_SPI}Accessible"], interface=_PROPERTIES),
            self._call(place, "Accessible", "GetInterfaces", "as"),
            self._call(place, "Accessible", "GetState", "au"),
            self._call(place, "Accessible", "GetRoleName", "s"),
            self._call(place, "Accessible", "GetRole", "u"),
        )
        role = PASSWORD if number == _PASSWORD_NUMBER else str(named)  # GTK 4 calls it a text box
        has = frozenset(str(each).removeprefix(_SPI) for each in interfaces[0])
        name = str(_plain(about[0].get("Name"), "s"))
        bounds, actions, value = await asyncio.gather(
            self._bounds(place) if "Component" in has else _nothing(),
            self._actions(place) if "Action" in has else _nothing(),
            _nothing() if role == PASSWORD else self._value(place, has),
        )
        bits = sum(int(word) << (32 * index) for index, word in enumerate(states[0][:2]))
        has_states = frozenset(name for number, name in _STATES.items() if bits >> number & 1)
        count = int(_plain(about[0].get("ChildCount"), "i"))
        return Element(place, role, name, value, bounds, has_states, tuple(actions or ()), has, count)

    async def tree(
        self, place: Place, depth: int, limit: int, belongs: Callable[[int], bool] = lambda pid: True
    ) -> Element:
        """
        Read an element and what is below it, level by level, but not what is in menus below it.

        :param limit: most elements in all.
        :param belongs: whether a process may have elements in it; an application can name those of others as its own.
        """
        top = await self.read(place)
        level, left, levels = [top], limit - 1, 0
        for _ in range(depth):
            following: list[Element] = []
            while level and levels < _DEEPEST:  # what says nothing is no level of its own
                levels += 1
                below: list[Element] = []
                for parent in level:
                    if parent is not top and parent.role == MENU:
                        parent.more = parent.count
                        continue
                    listed = await self._children(parent, min(left, CHILD_LIMIT))
                    found = [each for each in listed if await self._is_of(parent.place, each, belongs)]
                    read = await asyncio.gather(*map(self.read, found), return_exceptions=True)
                    parent.children = [each for each in read if isinstance(each, Element)]
                    parent.more = max(parent.count - len(parent.children), 0)
                    left -= len(parent.children)
                    below += [each for each in parent.children if each.is_bare]
                    following += [each for each in parent.children if not each.is_bare]
                level = below
            for parent in level:
                parent.more = parent.count
            level = following
        for parent in level:
            parent.more = parent.count
        return top

    async def frames(self, bus: str) -> dict[Place, Frame]:
        """
        :returns: the windows that an application tells of, by their elements.
        :raises DesktopError: it does not answer.
        """
        places = await self._children(await self.read(Place(bus, ROOT)), FRAME_LIMIT)
        read = await asyncio.gather(*map(self.read, places), return_exceptions=True)
        return frames_of(each for each in read if isinstance(each, Element))

    async def frame_of(self, place: Place) -> Place:
        """
        :returns: the element of the window that an element is in.
        :raises DesktopError: its application does not answer, or it is in none.
        """
        for _ in range(_DEEPEST):
            parent = await self._parent(place)
            if parent.path == ROOT:
                return place
            place = parent
        raise DesktopError("this element is in no window")

    async def passwords(self, bus: str) -> dict[Place, Bounds]:
        """
        :returns: the fields for passwords that an application shows, and where it says that they are.
        :raises DesktopError: it does not answer, or has too many elements to look through.
        """
        root = Place(bus, ROOT)
        try:
            (found,) = await self._call(
                root, "Collection", "GetMatches", "a(so)", "(aiia{ss}iaiiasib)uib", _PASSWORD_FIELDS
            )
        except NoAnswer:
            raise
        except DesktopError:  # it has no collections
            top = await self.tree(root, _SEARCHED_DEPTH, _SEARCHED)
            if any(each.more for each in top.walk()):
                raise DesktopError("it has too many elements") from None
            fields = (each for each in top.walk() if each.role == PASSWORD)
            return {each.place: each.bounds for each in fields if each.bounds is not None}
        places = [Place(str(its), str(path)) for its, path in found]
        told = await asyncio.gather(*map(self._bounds, places))
        return {place: bounds for place, bounds in zip(places, told, strict=True) if bounds is not None}

    async def _children(self, parent: Element, limit: int) -> list[Place]:
        if limit <= 0 or parent.count <= 0:
            return []
        if parent.count <= CHILD_LIMIT:
            (children,) = await self._call(parent.place, "Accessible", "GetChildren", "a(so)")
            return [Place(str(bus), str(path)) for bus, path in children[:limit]]
        calls = (
            self._call(parent.place, "Accessible", "GetChildAtIndex", "(so)", "i", [index]) for index in range(limit)
        )
        return [Place(str(child[0][0]), str(child[0][1])) for child in await asyncio.gather(*calls)]

    async def _is_of(self, parent: Place, child: Place, belongs: Callable[[int], bool]) -> bool:
        try:
            return child.bus == parent.bus or belongs(await self._bus.process(child.bus))
        except DesktopError:
            return False

    async def press(self, element: Element) -> None:
        """:raises DesktopError: it has no action, or refuses it."""
        if element.pressing is None:
            raise DesktopError("this element cannot be pressed; use click, or an element with an action for that")
        (done,) = await self._call(element.place, "Action", "DoAction", "b", "i", [element.pressing])
        if not done:
            raise DesktopError("the application did not carry out the action")

    async def set_value(self, element: Element, value: str) -> None:
        """:raises DesktopError: it has no text or number that can be set."""
        from dbus_fast import Variant

        if "EditableText" in element.interfaces:
            (done,) = await self._call(element.place, "EditableText", "SetTextContents", "b", "s", [value])
            if not done:
                raise DesktopError("the application did not take the text")
        elif "Value" in element.interfaces and re.fullmatch(r"-?[0-9]{1,15}(?:\.[0-9]{1,9})?", value):
            body = [f"{_SPI}Value", "CurrentValue", Variant("d", float(value))]
            await self._call(element.place, "", "Set", "", "ssv", body, interface=_PROPERTIES)
        else:
            raise DesktopError("this element has no text or number that can be set")

    async def select(self, element: Element) -> None:
        """:raises DesktopError: it is not in a list of what can be selected."""
        (index,) = await self._call(element.place, "Accessible", "GetIndexInParent", "i")
        parent = await self._parent(element.place)
        if parent.bus != element.place.bus:
            raise DesktopError("this element says that it is in a list of another application; nothing was done")
        (done,) = await self._call(parent, "Selection", "SelectChild", "b", "i", [index])
        if not done:
            raise DesktopError("the application did not select it")

    async def _parent(self, place: Place) -> Place:
        body = [f"{_SPI}Accessible", "Parent"]
        (parent,) = await self._call(place, "", "Get", "v", "ss", body, interface=_PROPERTIES)
        bus, path = map(str, _plain(parent, "(so)"))
        return Place(bus, path)

    async def _value(self, place: Place, has: frozenset[str]) -> str | None:
        if "Text" in has:
            (text,) = await self._call(place, "Text", "GetText", "s", "ii", [0, VALUE_LIMIT])
            return str(text)
        if "Value" in has:
            body = [f"{_SPI}Value", "CurrentValue"]
            (number,) = await self._call(place, "", "Get", "v", "ss", body, interface=_PROPERTIES)
            return f"{_plain(number, 'd'):g}"
        return None

    async def _bounds(self, place: Place) -> Bounds | None:
        ((x, y, width, height),) = await self._call(place, "Component", "GetExtents", "(iiii)", "u", [0])
        return Bounds(x, y, width, height) if width > 0 and height > 0 and x > _NOWHERE else None

    async def _actions(self, place: Place) -> tuple[str, ...]:
        (actions,) = await self._call(place, "Action", "GetActions", "a(sss)")
        return tuple(shown(str(action[0]), 40) for action in actions[:20])

    async def _call(
        self,
        place: Place,
        name: str,
        member: str,
        returned: str,
        signature: str = "",
        body: Any = (),
        interface: str = "",
    ) -> list[Any]:
        target = (place.bus, place.path, interface or f"{_SPI}{name}")
        return await self._bus.call(target, member, returned, signature, body)


def frames_of(found: Iterable[Element]) -> dict[Place, Frame]:
    """:returns: what an application tells of its windows, by their elements."""
    return {each.place: Frame(each.bounds, each.name) for each in found if each.bounds is not None}


async def _nothing() -> None:
    return None


def _plain(value: Any, signature: str) -> Any:
    """
    :returns: what is in a variant.
    :raises DesktopError: that is missing, or is of another type.
    """
    if getattr(value, "signature", None) != signature:
        raise DesktopError("the application describes this element in a way that is not understood")
    return value.value
