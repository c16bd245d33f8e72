"""Triggers of this machine's desktop, which need the extra ``desktop``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThreadPool

from ironcurtain.errors import IronCurtainError
from ironcurtain.senses.client import SensesWorker
from ironcurtain.servers.desktop.devices import check_sound, recorder
from ironcurtain.servers.desktop.looking import Looker
from ironcurtain.servers.desktop.model import SCREEN
from ironcurtain.servers.desktop.screen import screen
from ironcurtain.watchers.audio_trigger import AudioTrigger
from ironcurtain.watchers.model import Kind, Watcher
from ironcurtain.watchers.screen_trigger import ScreenTrigger, Shot


def screen_trigger(
    watcher: Watcher, reactor: Any, environ: Mapping[str, str], warn: Callable[[str], None]
) -> ScreenTrigger:
    """:returns: a trigger for the screen, or for the windows of an application."""
    worker = SensesWorker()
    looker = Looker(environ, worker)

    async def shot() -> Shot:
        png, area, hidden, _ = await looker.taken(watcher.app or SCREEN, ())
        return Shot(png, area, tuple(hidden))

    async def look() -> Shot:
        return await asyncio.to_thread(lambda: asyncio.run(shot()))  # displays are asked with blocking calls

    return ScreenTrigger(watcher, reactor, worker, look, warn)


def audio_trigger(
    watcher: Watcher, reactor: Any, environ: Mapping[str, str], warn: Callable[[str], None]
) -> AudioTrigger:
    """:returns: a trigger for the sound of an application, or for the microphone."""

    def line() -> Deferred[Sequence[str]]:
        return deferToThreadPool(reactor, reactor.getThreadPool(), lambda: _recorder(watcher, environ))

    return AudioTrigger(watcher, reactor, SensesWorker(), line, environ, warn)


def missing(watcher: Watcher, environ: Mapping[str, str]) -> str:
    """:returns: what a watcher of the desktop lacks here; empty: nothing. This may take a second."""
    if watcher.trigger is Kind.SCREEN_CHANGE:
        senses, check = ["pictures"] + ["text"] * bool(watcher.pattern), lambda: _check_screen(environ)
    else:
        senses, check = ["sound"] + ["speech"] * bool(watcher.pattern), lambda: _check_sound(watcher, environ)
    known = SensesWorker().available()
    if lacks := next(filter(None, (known[sense] for sense in senses)), ""):
        return lacks
    try:
        check()
    except (IronCurtainError, OSError) as e:
        return str(e)
    return ""


def _check_screen(environ: Mapping[str, str]) -> None:
    with screen(environ) as found:
        _ = found.size


def _check_sound(watcher: Watcher, environ: Mapping[str, str]) -> None:
    if not watcher.app:  # an application may play later
        _recorder(watcher, environ)
    check_sound(environ)


def _recorder(watcher: Watcher, environ: Mapping[str, str]) -> Sequence[str]:
    check_sound(environ)
    return recorder("app" if watcher.app else "microphone", watcher.app)
