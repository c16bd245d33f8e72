"""Which senses and hands work on this desktop, and what the others lack: for agents, and for ``ironcurtain doctor``."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import msgspec

from ironcurtain.senses.client import SensesWorker
from ironcurtain.servers.desktop.accessibility import accessibility
from ironcurtain.servers.desktop.bus import NOTIFICATIONS, Bus, session_address
from ironcurtain.servers.desktop.devices import check_sound, clipboard_commands, sound_source
from ironcurtain.servers.desktop.model import DesktopError, PermissionMissing, Unsupported
from ironcurtain.servers.desktop.programs import installed
from ironcurtain.servers.desktop.screen import screen

AVAILABLE, PERMISSION_MISSING, UNSUPPORTED = "available", "permission missing", "unsupported"
"""The states of a sense."""


class Sense(msgspec.Struct, frozen=True):
    """
    :param state: one of the three states.
    :param lacks: what to do, or what is missing; empty if it works.
    """

    name: str
    state: str
    lacks: str = ""


def senses(environ: Mapping[str, str], worker: SensesWorker) -> list[Sense]:
    """:returns: all senses and hands; this takes up to some seconds."""
    try:
        known = worker.available()
    except Exception as e:  # what is said of the others must not depend on it
        known = dict.fromkeys(("pictures", "text", "speech", "sound"), str(e))
    problem = account_problem(environ, os.geteuid())

    def owned() -> None:
        if problem:
            raise PermissionMissing(problem)

    def needs(*names: str) -> None:
        if missing := next(filter(None, (known.get(name) for name in names)), ""):
            raise Unsupported(missing)

    def hears(source: str) -> None:
        _sound(environ, source)
        needs("sound", "speech")

    typing, pictures = (["wtype"], ["grim"]) if environ.get("SWAYSOCK") else ([], [])
    shows, clipboard = _once(partial(_screen, environ)), partial(clipboard_commands, environ)
    checks: Mapping[str, Sequence[Callable[[], object]]] = {
        "windows": [shows],
        "screenshot": [shows, partial(_programs, pictures), partial(needs, "pictures")],
        "tree, press, set_value, select": [lambda: asyncio.run(_elements(environ))],
        "read_text": [shows, partial(_programs, pictures), partial(needs, "text")],
        "window, open": [shows],
        "click, drag, scroll": [shows, partial(_pointer, environ)],
        "key, type": [shows, partial(_programs, typing)],
        "clipboard_read, clipboard_write": [lambda: _programs(line[0] for line in clipboard())],
        "notify": [lambda: asyncio.run(_notifications(environ))],
        "listen to the microphone": [partial(hears, "microphone")],
        "listen to the system or an app": [partial(hears, "system")],
        "speak": [partial(_programs, ["espeak-ng"]), partial(_sound, environ, "system")],
    }
    return [_sense(name, owned, *its) for name, its in checks.items()]


def _sense(name: str, *checks: Callable[[], object]) -> Sense:
    try:
        for check in checks:
            check()
    except PermissionMissing as e:
        return Sense(name, PERMISSION_MISSING, str(e))
    except DesktopError as e:
        return Sense(name, UNSUPPORTED, str(e))
    except OSError as e:
        return Sense(name, UNSUPPORTED, e.strerror or "input/output error")
    return Sense(name, AVAILABLE)


def _once(check: Callable[[], object]) -> Callable[[], None]:
    """:returns: a check that is made when it is first called, and then only repeated: it may take long to fail."""
    made: list[Exception | None] = []

    def again() -> None:
        if not made:
            try:
                check()
                made.append(None)
            except (DesktopError, OSError) as e:
                made.append(e)
        if made[0] is not None:
            raise made[0]

    return again


def _screen(environ: Mapping[str, str]) -> None:
    with screen(environ) as found:
        _ = found.size


def _pointer(environ: Mapping[str, str]) -> None:
    with screen(environ) as found:
        found.check_pointer()


async def _elements(environ: Mapping[str, str]) -> None:
    async with accessibility(environ) as access:
        await access.applications()


async def _notifications(environ: Mapping[str, str]) -> None:
    async with Bus(session_address(environ)) as bus:
        display = environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY")
        if not await bus.has_owner(NOTIFICATIONS) and not (display and NOTIFICATIONS in await bus.startable()):
            raise Unsupported("no program shows notifications (Debian: apt install dunst)")


def _sound(environ: Mapping[str, str], source: str) -> None:
    check_sound(environ)
    _programs(["pactl", "parec"])
    sound_source(source, "")


def _programs(names: Iterable[str]) -> None:
    for name in names:
        installed(name)


def account_problem(environ: Mapping[str, str], uid: int) -> str:
    """:returns: why this account cannot use the desktop; empty if it may."""
    directory = environ.get("XDG_RUNTIME_DIR", "")
    try:
        owner = os.stat(directory).st_uid if directory else uid
    except OSError:
        return ""
    if owner == uid:
        return ""
    return f"the desktop belongs to the account {owner}: run IronCurtain as that, or set run_as in config.toml"
