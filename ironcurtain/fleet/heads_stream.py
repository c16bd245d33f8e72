"""The stream of heads of audit logs at a server of NATS."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, StreamConfig
from nats.js.errors import NotFoundError
from twisted.logger import Logger

from ironcurtain.audit.unsent import UnsentHeads
from ironcurtain.errors import ProtocolViolation, Unavailable
from ironcurtain.fleet.heads import LINE_LIMIT
from ironcurtain.fleet.server_files import HEADS_STREAM, HEADS_SUBJECTS

POLL_SECONDS, LOOK_SECONDS, PAUSE_SECONDS = 3.0, 0.5, 10.0
"""
Seconds for which the server is asked for new heads of others, between two looks for those of this host, which read a
directory, and after a failure.
"""

MESSAGES, HEADS_OF_A_HOST, AGE_SECONDS = 100, 20_000, 30 * 86_400.0
"""Number of heads taken at once, and how many of one host, and how old, the server keeps for members that are away."""


class HeadsStream:
    """
    :param name: of this host.
    :param outgoing: its heads that the others lack.
    :param take: keeps a head of another host, or raises :class:`~ironcurtain.errors.ProtocolViolation` to leave it out.
    """

    log = Logger()

    def __init__(self, name: str, replicas: int, outgoing: UnsentHeads, take: Callable[[str, bytes], None]) -> None:
        self._name, self._replicas, self._outgoing, self._take = name, replicas, outgoing, take

    async def receive(self, client: Client) -> None:
        """Take heads of others until this is cancelled. For asyncio."""
        await self._repeat(client.jetstream(), self._receive_all)

    async def send(self, client: Client) -> None:
        """Send those of this host until this is cancelled. For asyncio."""
        await self._repeat(client.jetstream(), self._send_all)

    async def _repeat(
        self, stream: JetStreamContext, work: Callable[[JetStreamContext], Coroutine[Any, Any, None]]
    ) -> None:
        while True:
            try:
                await self._require(stream)
                await work(stream)
            except (TimeoutError, Error, Unavailable, OSError) as e:
                self.log.info("heads of audit logs wait: {error}", error=str(e) or type(e).__name__)
                await asyncio.sleep(PAUSE_SECONDS)

    async def _require(self, stream: JetStreamContext) -> None:
        try:
            await stream.stream_info(HEADS_STREAM)
        except NotFoundError:
            await stream.add_stream(
                StreamConfig(
                    name=HEADS_STREAM,
                    subjects=[f"{HEADS_SUBJECTS}.*"],
                    max_msgs_per_subject=HEADS_OF_A_HOST,
                    max_age=AGE_SECONDS,
                    max_msg_size=LINE_LIMIT,
                    num_replicas=self._replicas,
                )
            )

    async def _send_all(self, stream: JetStreamContext) -> None:
        while True:
            for session, line in self._outgoing.lines():
                await stream.publish(f"{HEADS_SUBJECTS}.{self._name}", line)
                self._outgoing.sent(session, line)
            await asyncio.sleep(LOOK_SECONDS)

    async def _receive_all(self, stream: JetStreamContext) -> None:
        config = ConsumerConfig(ack_policy=AckPolicy.EXPLICIT, deliver_policy=DeliverPolicy.ALL)
        incoming = await stream.pull_subscribe(f"{HEADS_SUBJECTS}.*", self._name, HEADS_STREAM, config)
        try:
            while True:
                await self._receive(incoming)
        finally:
            await incoming.unsubscribe()

    async def _receive(self, incoming: JetStreamContext.PullSubscription) -> None:
        try:
            messages: list[Msg] = await incoming.fetch(MESSAGES, POLL_SECONDS)
        except TimeoutError:
            return
        for message in messages:
            host = message.subject.rpartition(".")[2]
            if host != self._name:
                try:
                    self._take(host, message.data)
                except ProtocolViolation as e:
                    self.log.debug("left out a head: {error}", error=e)
            await message.ack()
