"""Carry out the tools."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ironcurtain.senses.client import SensesWorker
from ironcurtain.servers.desktop import devices, looking
from ironcurtain.servers.desktop.hands import Hands
from ironcurtain.servers.desktop.model import SCREEN, DesktopError
from ironcurtain.servers.desktop.opening import open_application
from ironcurtain.servers.desktop.status import senses
from ironcurtain.servers.desktop.table import SCHEMAS
from ironcurtain.servers.files.arguments import check
from ironcurtain.servers.server import Part

SECONDS = 60.0
"""Longest time of a call that does not say how long it takes."""

NUMBER_LIMIT = 30_000
"""Largest number in a call; coordinates of X11 have 16 bits."""

Given = Mapping[str, Any]


class DesktopTools:
    """
    :param environ: names the display, the buses and the sound server.
    :param worker: takes pictures and sounds apart.
    """

    def __init__(self, environ: Mapping[str, str], worker: SensesWorker) -> None:
        self._environ, self._worker = environ, worker
        look, hands = looking.Looker(environ, worker), Hands(environ)
        self._tools: dict[str, Callable[[Given], Awaitable[list[Part]]]] = {
            "windows": lambda given: looking.windows(environ, given["app"]),
            "screenshot": lambda given: look.screenshot(given["app"], given["region"], given["marks"]),
            "tree": lambda given: look.tree(
                _application(given), given["ref"], min(int(given["depth"]), 30), min(int(given["max_nodes"]), 2000)
            ),
            "read_text": lambda given: look.read_text(given["app"], given["region"]),
            "press": hands.press,
            "set_value": hands.set_value,
            "select": hands.select,
            "click": hands.click,
            "drag": hands.drag,
            "scroll": hands.scroll,
            "key": hands.key,
            "type": hands.type,
            "window": hands.window,
            "open": lambda given: open_application(environ, given["app"]),
            "notify": lambda given: devices.notify(
                environ, given["title"], given["body"], given["actions"], given["seconds"]
            ),
            "listen": lambda given: devices.listen(environ, worker, given["source"], given["app"], given["seconds"]),
        }
        self._plain: dict[str, Callable[[Given], list[Part]]] = {
            "status": lambda given: self._status(),
            "clipboard_read": lambda given: devices.read_clipboard(environ, given["selection"]),
            "clipboard_write": lambda given: devices.write_clipboard(environ, given["text"]),
            "speak": lambda given: devices.speak(environ, given["text"]),
        }

    def call(self, name: str, arguments: dict[str, Any]) -> list[Part]:
        """:raises IronCurtainError: it cannot be carried out; the message is for the agent."""
        given = check(SCHEMAS[name], arguments)
        for number in (each for value in given.values() for each in (value if isinstance(value, list) else [value])):
            if isinstance(number, int | float) and not abs(number) <= NUMBER_LIMIT:
                raise DesktopError(f"{number:g} is no number of pixels, seconds or anything else here")
        if name in self._plain:
            return self._plain[name](given)
        return asyncio.run(_within(self._tools[name](given), SECONDS + float(given.get("seconds", 0))))

    def _status(self) -> list[Part]:
        found = senses(self._environ, self._worker)
        return [looking.text_part({each.name: f"{each.state}: {each.lacks}".removesuffix(": ") for each in found})]


async def _within(work: Awaitable[list[Part]], seconds: float) -> list[Part]:
    try:
        return await asyncio.wait_for(work, seconds)
    except TimeoutError:
        raise DesktopError(f"this took longer than {seconds:g} seconds; whether it was done is not known") from None


def _application(given: Given) -> str:
    if given["app"] == SCREEN:
        raise DesktopError("name an application; 'windows' lists them")
    return str(given["app"])
