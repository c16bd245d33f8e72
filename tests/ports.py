"""Ports for servers of tests, where the server itself cannot be left to choose one."""

from __future__ import annotations

import secrets
import socket
from contextlib import suppress
from unittest import TestCase

_taken: list[socket.socket] = []


def free_port() -> int:
    """
    Choose a port below those that the kernel gives to whoever asks for any. Other processes that run tests do not get
    the same one, also after whoever serves there has ended: each holds a name for it as long as it lives.

    :returns: a port that nobody uses.
    """
    while True:
        port = 20000 + secrets.randbelow(10000)
        name, tried = socket.socket(socket.AF_UNIX), socket.socket()
        with tried, suppress(OSError):
            name.bind(f"\0ironcurtain-test-port-{port}")
            tried.bind(("0.0.0.0", port))
            _taken.append(name)
            return port
        name.close()


def closed_port(case: TestCase) -> int:
    """:returns: a port of 127.0.0.1 where nobody listens to the end of a test, as it is kept."""
    kept = case.enterContext(socket.socket())
    kept.bind(("127.0.0.1", 0))
    return int(kept.getsockname()[1])
