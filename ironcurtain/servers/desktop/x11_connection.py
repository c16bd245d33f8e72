"""Connections to displays with X11, on which nothing waits for long: the server can hang, or end in the middle."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Any

from ironcurtain.servers.desktop.model import DesktopError, PermissionMissing, Unsupported, extra, shown

ANSWER_SECONDS = 5.0
"""How long a display may take to accept a connection; for an answer, up to twice as long."""


@contextmanager
def opened(display: str, patience: float = ANSWER_SECONDS) -> Iterator[Any]:
    """
    :param patience: seconds for which an answer may be missing.
    :raises DesktopError: the display cannot be reached, was lost, does not answer, or answers with an error.
    """
    connection = _connect(display, patience)
    from Xlib.error import ConnectionClosedError, XError

    connection.set_error_handler(lambda *_: None)  # it would print errors of requests that nobody waits for
    ended = Event()
    watch = Thread(target=_watch, args=(connection.display, patience, ended), daemon=True)
    watch.start()
    try:
        yield connection
    except ConnectionClosedError:
        raise DesktopError(
            f"the display {display} was lost, or does not answer; whether it was done is not known"
        ) from None
    except XError as e:
        raise DesktopError(f"the display refuses, maybe since a window has gone: {shown(str(e), 200)}") from None
    finally:
        ended.set()
        with suppress(ConnectionClosedError, OSError):
            connection.close()
        watch.join()


def _connect(display: str, patience: float) -> Any:
    displays, found, given_up = extra("Xlib.display"), list[Any](), Event()
    from Xlib.error import ConnectionClosedError

    def connect() -> None:
        try:
            made = displays.Display(display)
        except Exception as e:  # it raises many kinds
            found.append(str(e))
            return
        found.append(made)
        if given_up.is_set():
            with suppress(ConnectionClosedError, OSError):
                made.close()

    trial = Thread(target=connect, daemon=True)  # nothing else can end it
    trial.start()
    trial.join(patience)
    if not found:
        given_up.set()
        raise Unsupported(f"the display {display} does not answer within {patience:g} seconds")
    if not isinstance(found[0], str):
        return found[0]
    why = shown(found[0], 200)
    if "uthori" in why:
        raise PermissionMissing(f"the display {display} refuses: XAUTHORITY must name its file: {why}")
    raise Unsupported(f"the display {display} cannot be reached: {why}")


def _watch(display: Any, patience: float, ended: Event) -> None:
    """Close a connection whose oldest request gets no answer."""
    before = None
    while not ended.wait(patience):
        oldest = next(iter(display.sent_requests), None)
        if oldest is not None and oldest is before:
            with suppress(OSError):
                display.socket.shutdown(socket.SHUT_RDWR)
            return
        before = oldest
