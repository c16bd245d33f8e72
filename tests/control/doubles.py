"""A raw HTTP client that says what it likes, and a process of its own that owns a session."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import UNIXClientEndpoint, connectProtocol
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure

from tests.control import owner


@dataclass(frozen=True)
class Answer:
    """One HTTP response."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """:returns: the body."""
        return json.loads(self.body)


class Collector(Protocol):
    """Keeps what comes, and tells who waits for something in it."""

    def __init__(self) -> None:
        self.data = b""
        self.closed: Deferred[bytes] = Deferred()
        self._wanted: tuple[bytes, Deferred[None]] | None = None

    def dataReceived(self, data: bytes) -> None:
        """Keep it."""
        self.data += data
        if self._wanted is not None and self._wanted[0] in self.data:
            found, self._wanted = self._wanted[1], None
            found.callback(None)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Give all there is to whoever waits for the end."""
        self.closed.callback(self.data)

    def until(self, text: bytes) -> Deferred[None]:
        """:returns: fires when a text has come."""
        found: Deferred[None] = Deferred()
        if text in self.data:
            found.callback(None)
        else:
            self._wanted = text, found
        return found


async def connect(path: Path) -> Collector:
    """:returns: a connection to a socket."""
    connection = Collector()
    await connectProtocol(UNIXClientEndpoint(reactor, str(path)), connection)
    return connection


async def say(path: Path, data: bytes) -> list[Answer]:
    """Send bytes as they are, and read until the server closes."""
    connection = await connect(path)
    connection.transport.write(data)  # type: ignore[union-attr]
    return parse(await connection.closed)


async def ask(path: Path, method: str, target: str, body: bytes = b"", headers: str = "") -> Answer:
    """One request."""
    head = f"{method} {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
    (answer,) = await say(path, head.encode() + body)
    return answer


def parse(data: bytes) -> list[Answer]:
    """:returns: the responses in a stream of those that tell their length."""
    answers = []
    while data:
        head, _, data = data.partition(b"\r\n\r\n")
        status, *lines = head.decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", 0))
        answers.append(Answer(int(status.split()[1]), headers, data[:length]))
        data = data[length:]
    return answers


def start_owner(path: Path) -> subprocess.Popen[bytes]:
    """
    :param path: a directory for it; its control socket is ``control.sock`` there.
    :returns: a process that serves a session numbered 1; its next line of output comes when it listens.
    """
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen([sys.executable, str(owner.__file__), str(path)], stdout=subprocess.PIPE, env=environ)
