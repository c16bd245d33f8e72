"""
The program of a sidecar: accepts on UNIX sockets, and passes each connection on to a port of the host. Before any byte
of it passes, both sides prove that they know the session's secret.

It runs in a container, by its text, without the rest of the package:
``python3 -I -S -c TEXT DIRECTORY HOST NAME:PORT ...``. The first line of its input is the secret. Once it has reached
each port, it accepts, and prints :data:`READY`.

The proof of a connection, each part :data:`PART` bytes: the host sends a random number; the sidecar sends another one,
and :func:`proof` as ``sidecar``; the host sends :func:`proof` as ``host``. Both numbers and the connection's name are
part of each proof, so that none is of use a second time, for another socket, or in the other direction.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import sys

PART = 32
"""Size in bytes of a random number and of a proof (SHA-256)."""

READY = "ready"
"""The line that says that agents can connect."""

CONNECTIONS = 256
"""Maximum number of connections; further ones are closed at once."""

PAUSES = (0.05, 0.2, 0.8)
"""Seconds before each further attempt: the host may be busy with others who cannot prove anything."""

SECONDS = 10.0
"""Time limit in seconds for one attempt to connect and to prove."""

READ_SIZE = 64 * 1024
"""Maximum bytes of one read, and about the most that wait in one direction."""


class WrongHostError(Exception):
    """What listens at the host's port does not know the secret."""


def proof(secret: bytes, side: bytes, name: bytes, numbers: bytes) -> bytes:
    """
    :param side: who proves: ``sidecar`` or ``host``.
    :param name: name of the socket.
    :param numbers: the host's random number, and the sidecar's.
    :returns: what only those can calculate who know the secret.
    """
    return hmac.digest(secret, b"\0".join((b"ironcurtain", side, name, numbers)), "sha256")


class Passage:
    """The way from one socket to one port of the host."""

    def __init__(self, host: str, port: int, name: str, secret: bytes) -> None:
        self._host, self._port, self._name, self._secret = host, port, name.encode(), secret

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """
        Connect to the port; see the module about the proof.

        :raises WrongHostError: the other side cannot prove anything.
        :raises OSError: there is no connection, or it ended during the proof.
        """
        for pause in PAUSES:
            try:
                return await self._attempt()
            except OSError:
                await asyncio.sleep(pause)
        return await self._attempt()

    async def accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """An agent's program has connected."""
        try:
            far_reader, far_writer = await self.connect()
        except (OSError, WrongHostError) as e:
            print(f"{self._name.decode()}: {e}", file=sys.stderr, flush=True)
            writer.transport.abort()
            return
        await asyncio.gather(_pass_on(reader, far_writer, writer), _pass_on(far_reader, writer, far_writer))
        for each in (writer, far_writer):
            each.close()

    async def _attempt(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        try:
            async with asyncio.timeout(SECONDS):
                reader, writer = await asyncio.open_connection(self._host, self._port, limit=READ_SIZE)
                try:
                    await self._prove(reader, writer)
                except BaseException:
                    writer.transport.abort()
                    raise
        except asyncio.IncompleteReadError:
            raise OSError("the host closed the connection") from None
        except TimeoutError:
            raise OSError("the host does not answer") from None
        return reader, writer

    async def _prove(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        own = os.urandom(PART)
        numbers = await reader.readexactly(PART) + own
        writer.write(own + proof(self._secret, b"sidecar", self._name, numbers))
        if not hmac.compare_digest(await reader.readexactly(PART), proof(self._secret, b"host", self._name, numbers)):
            raise WrongHostError("another program listens at the host's port")


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, other: asyncio.StreamWriter) -> None:
    """Pass on what one side sends until it ends; if it fails, end both."""
    try:
        while data := await reader.read(READ_SIZE):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
    except OSError:
        for each in (writer, other):
            each.transport.abort()


class Connections:
    """
    The connections of all sockets together: bounds their number, and refers to their tasks, as nothing else does while
    a proof is waited for.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None] | None] = set()

    async def enter(self, passage: Passage, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass a connection on, unless there are too many."""
        if len(self._tasks) >= CONNECTIONS:
            writer.transport.abort()
            return
        self._tasks.add(task := asyncio.current_task())
        try:
            await passage.accepted(reader, writer)
        finally:
            self._tasks.discard(task)


async def serve(host: str, ports: dict[str, int], secret: bytes, directory: str) -> None:
    """
    Reach each port once, then accept at sockets of the same names, without end.

    :raises WrongHostError: another program listens at a port.
    :raises OSError: a port cannot be reached.
    """
    connections = Connections()
    os.umask(0o177)
    servers = []
    for name, port in ports.items():
        passage = Passage(host, port, name, secret)
        _, writer = await passage.connect()
        writer.close()

        async def enter(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, passage: Passage = passage) -> None:
            await connections.enter(passage, reader, writer)

        servers.append(await asyncio.start_unix_server(enter, f"{directory}/{name}", limit=READ_SIZE))
    print(READY, flush=True)
    await asyncio.gather(*(server.serve_forever() for server in servers))


def main(directory: str, host: str, *named_ports: str) -> None:
    """Run until the container is stopped."""
    secret = bytes.fromhex(sys.stdin.readline().strip())
    ports = {name: int(port) for name, _, port in (named.partition(":") for named in named_ports)}
    try:
        asyncio.run(serve(host, ports, secret, directory))
    except (OSError, WrongHostError) as e:
        sys.exit(f"the host cannot be reached at {host}: {e}")


if __name__ == "__main__":
    main(*sys.argv[1:])
