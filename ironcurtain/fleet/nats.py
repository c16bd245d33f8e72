"""The fleet's messages and its list of members at a server of NATS, by the client nats-py."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error
from nats.js.errors import NotFoundError
from nats.js.kv import KeyValue
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from ironcurtain.errors import Unavailable
from ironcurtain.fleet.members import LEASE
from ironcurtain.fleet.signed import LIMIT
from ironcurtain.services.asyncio_bridge import from_asyncio

OLDEST = (2, 11)
"""The oldest version of the server: in replicated buckets of 2.9, several of 50 updates of one revision won."""

PAUSE_SECONDS = 2.0
"""Between two attempts to reach a server."""

PING_SECONDS = 20
"""Between two questions whether a server is still there; when two were not answered, another connection is made."""

PERMANENT = 2
"""Number of tasks that go on whatever becomes of the connection: to connect, and to send."""

MESSAGES_WAITING = 8192
"""Maximum number of messages that wait to be sent; a stream whose message is dropped ends."""

BYTES_HEARD = 16 * 1024 * 1024
"""Maximum size in bytes of what was heard and waits: who floods a host does not fill its memory."""

BUCKET = "ironcurtain_members"
"""The bucket with the newest statement of each member, which the server forgets when its lease is over."""


class TooOld(Unavailable):
    """The server cannot be used, whichever way it is reached."""


def require_version(client: Client) -> None:
    """:raises TooOld: the server that is connected cannot be used."""
    found = client.connected_server_version
    if (found.major, found.minor) < OLDEST:
        oldest, version = ".".join(map(str, OLDEST)), f"{found.major}.{found.minor}"
        raise TooOld(f"nats-server {version} is too old, since its updates are not safe: at least {oldest}")


class NatsCarrier:
    """
    One connection, which is made again whenever it is lost.

    :param options: of ``nats.connect``: servers, TLS, name and password.
    :param replicas: number of servers that keep the list of members.
    :param heard: called with the subject and content of each message.
    :param told: called with the name of a member and its statement; with ``None`` when its lease is over.
    :param changed: called with why the server is not reached; empty: it is.
    :param also: what else goes on with the connection.
    """

    log = Logger()

    def __init__(
        self,
        options: dict[str, Any],
        replicas: int,
        heard: Callable[[str, bytes], None],
        told: Callable[[str, bytes | None], None],
        changed: Callable[[str], None],
        also: Sequence[Callable[[Client], Coroutine[Any, Any, None]]],
    ) -> None:
        self._options, self._replicas = options, replicas
        self._heard, self._told, self._changed = heard, told, changed
        self._also = also
        self._client: Client | None = None
        self._bucket: KeyValue | None = None
        self._waiting: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue(MESSAGES_WAITING)
        self._tasks: list[Deferred[None]] = []
        self._watching: Deferred[None] | None = None
        self._writing = asyncio.Lock()

    def start(self, subject: str) -> None:
        """
        Begin to connect, and go on without waiting for it.

        :param subject: to hear.
        """
        self._tasks = [self._begun(work) for work in (self._connect(subject), self._send())]

    async def stop(self) -> None:
        """Leave the server. For asyncio."""
        for task in (*self._tasks, self._watching):
            if task is not None:
                task.cancel()
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def publish(self, subject: str, data: bytes) -> None:
        """See :class:`~ironcurtain.fleet.carried.Carrier`."""
        if self._client is None or not self._client.is_connected:
            return
        try:
            self._waiting.put_nowait((subject, data))
        except asyncio.QueueFull:
            self.log.warn("a message of the fleet was dropped, since too many wait")

    async def state(self, host: str, statement: bytes) -> bool:
        """
        Publish what this host says of itself. For asyncio; failures are told as a lost connection.

        :returns: whether the server has it.
        """
        client = self._client
        if client is None or not client.is_connected or (self._bucket is None and self._writing.locked()):
            return False
        async with self._writing:
            try:
                if self._bucket is None:  # the server has lost it
                    await self._open_bucket(client)
                await self._bucket.put(host, statement)  # type: ignore[union-attr]
            except (TimeoutError, Error) as e:
                self._bucket = None
                self._changed(f"the list of members cannot be written: {str(e) or type(e).__name__}")
                return False
        self._changed("")
        return True

    async def withdraw(self, host: str) -> None:
        """Say that this host ends. For asyncio."""
        if self._bucket is not None:
            try:
                await self._bucket.purge(host)
            except (TimeoutError, Error):
                self.log.info("the others learn that this host has left when its lease is over")

    def _begun(self, work: Coroutine[Any, Any, None]) -> Deferred[None]:
        return from_asyncio(work).addErrback(self._ended)

    def _ended(self, failure: Failure) -> None:
        if failure.check(CancelledError) is None:
            self.log.failure("the connection to the fleet failed", failure)
            self._changed(failure.getErrorMessage())

    async def _connect(self, subject: str) -> None:
        while True:
            client = Client()

            async def disconnected(client: Client = client) -> None:
                if client is self._client:  # else it was closed here, and why was said
                    self._changed("the connection was lost")

            async def reconnected(client: Client = client) -> None:
                await self._reconnected(client, subject)

            try:
                await client.connect(
                    **self._options,
                    max_reconnect_attempts=-1,
                    reconnect_time_wait=int(PAUSE_SECONDS),
                    ping_interval=PING_SECONDS,
                    disconnected_cb=disconnected,
                    reconnected_cb=reconnected,
                    error_cb=self._failed,
                )
                await self._begin(client, subject)
            except (TimeoutError, Error, OSError, TooOld) as e:
                self._changed(str(e) or type(e).__name__)
                await client.close()
                await asyncio.sleep(PAUSE_SECONDS)
            else:
                return

    async def _begin(self, client: Client, subject: str) -> None:
        require_version(client)
        await self._open_bucket(client)
        await client.subscribe(subject, cb=self._message, pending_bytes_limit=BYTES_HEARD)
        self._client = client
        self._tasks += [self._begun(work(client)) for work in self._also]
        self._changed("")

    async def _open_bucket(self, client: Client) -> None:
        stream = client.jetstream()
        try:
            bucket = await stream.key_value(BUCKET)
        except NotFoundError:
            bucket = await stream.create_key_value(
                bucket=BUCKET, max_value_size=LIMIT, ttl=LEASE, limit_marker_ttl=LEASE, replicas=self._replicas
            )
        if self._watching is not None:
            self._watching.cancel()
        self._bucket, self._watching = bucket, self._begun(self._watch(bucket))

    async def _watch(self, bucket: KeyValue) -> None:
        watcher = await bucket.watchall()
        async for entry in watcher:
            if entry is not None:
                self._told(entry.key, entry.value if entry.operation is None else None)

    async def _send(self) -> None:
        while True:
            subject, data = await self._waiting.get()
            if self._client is not None:
                try:
                    await self._client.publish(subject, data)
                except Error as e:  # the stream that it belongs to ends by what is missing
                    self.log.warn("a message of the fleet was not sent: {error}", error=e)

    async def _message(self, message: Msg) -> None:
        self._heard(message.subject, message.data)

    async def _reconnected(self, client: Client, subject: str) -> None:
        try:
            require_version(client)
        except TooOld as e:
            self._changed(str(e))
            self._client = self._bucket = None
            for task in (*self._tasks[PERMANENT:], self._watching):
                if task is not None:
                    task.cancel()
            self._tasks[PERMANENT:] = [self._begun(self._begin_again(client, subject))]
        else:
            self._changed("")

    async def _begin_again(self, client: Client, subject: str) -> None:
        """Leave a server that cannot be used, and try until there is another."""
        await client.close()
        await asyncio.sleep(PAUSE_SECONDS)
        await self._connect(subject)

    async def _failed(self, error: Exception) -> None:
        self.log.info("NATS: {error}", error=error)
