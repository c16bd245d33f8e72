"""
The process of the screen models, ``python -I -m ironcurtain.terminal.screen_worker``: all terminal emulators of one
owner, which it talks to over the socket that is its standard input.

The emulators are native code that is fed by programs nobody trusts; that is why they are here, where there is nothing
to steal, and where a crash costs no more than exact redraws. It ends when its owner does.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import socket
from contextlib import suppress
from typing import Any

from ironcurtain.identity import hide_memory
from ironcurtain.terminal.ghostty_screen import GhosttyScreen
from ironcurtain.terminal.screen_wire import (
    MESSAGE_LIMIT,
    Answer,
    Close,
    Feed,
    Open,
    Order,
    Ready,
    Redraw,
    Refusal,
    Reply,
    Request,
    Resize,
    order_reader,
    packed,
)

MEMORY_LIMIT = 1024 * 1024 * 1024
"""Most bytes of address space (our choice: some fifty screens with all of their history, and what Python takes)."""

READ_SIZE = 256 * 1024
"""Most bytes of one read: as much as a socket holds."""

NOBODY = 65534
"""The user and the group that own nothing (Linux's overflow ids); for when our owner is root."""

PR_SET_PDEATHSIG = 1
"""prctl(2): the signal that comes when the parent dies."""


class Screens:
    """Carries out orders."""

    def __init__(self) -> None:
        self._screens: dict[int, GhosttyScreen] = {}
        self._failed: dict[int, str] = {}

    def handle(self, order: Order) -> Reply | None:
        """
        :returns: the answer, if one is asked for.

        Whatever goes wrong in a screen ends that screen only.
        """
        try:
            return self._handle(order)
        except Exception as e:
            reason = self._failed.setdefault(order.screen, f"{type(e).__name__}: {e}")
            self._screens.pop(order.screen, None)
        return Refusal(order.request, reason) if isinstance(order, Request) else None

    def _handle(self, order: Order) -> Reply | None:
        if isinstance(order, Open):
            self._screens[order.screen] = GhosttyScreen(order.columns, order.rows, order.history)
        elif isinstance(order, Close):
            self._screens.pop(order.screen, None)
            self._failed.pop(order.screen, None)
        elif isinstance(order, Request):
            return _answer(self._screens[order.screen], order)
        elif order.screen in self._screens:
            _change(self._screens[order.screen], order)
        return None


def _change(screen: GhosttyScreen, order: Feed | Resize) -> None:
    if isinstance(order, Feed):
        screen.feed(order.data)
    else:
        screen.resize(order.columns, order.rows)


def _answer(screen: GhosttyScreen, request: Request) -> Reply:
    if isinstance(request, Redraw):
        data = screen.redraw(request.columns, request.rows, request.history)
    else:
        data = screen.text().encode("utf-8", "replace")
    if len(data) > MESSAGE_LIMIT - 64:
        return Refusal(request.request, f"{len(data)} bytes are too many")
    return Answer(request.request, data)


def try_it() -> None:
    """Load what the library and Python load only when they need it, since later nothing can be loaded."""
    screen = GhosttyScreen(80, 24, 10)
    screen.feed("\x1b[31mé\x1b[?1049h\x1b]8;;x\x1b\\y".encode())
    screen.redraw(80, 24, True)
    screen.text()


def confine() -> None:
    """Give up all that is not needed any more. Nothing can be opened, written to or started after that."""
    if os.geteuid() == 0:
        with suppress(OSError):  # there may be no such user in a container of our own
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
    hide_memory()
    libc: Any = ctypes.CDLL(None)
    if hasattr(libc, "prctl"):
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_NPROC):
        resource.setrlimit(limit, (0, 0))


def main() -> None:
    """Serve until the owner is gone."""
    with suppress(PermissionError):  # it leads a session already
        os.setsid()
    os.chdir("/")
    try_it()
    confine()
    with socket.socket(fileno=0) as owner:
        serve(owner)


def serve(owner: socket.socket) -> None:
    """Carry out what comes, until nothing more does."""
    screens, reader = Screens(), order_reader()
    owner.sendall(packed(Ready()))
    while data := owner.recv(READ_SIZE):
        for order in reader.feed(data):
            if (reply := screens.handle(order)) is not None:
                owner.sendall(packed(reply))


if __name__ == "__main__":
    main()
