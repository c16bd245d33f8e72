"""The queue of tasks at a server of NATS, from which each host takes what it has room for."""

from __future__ import annotations

import asyncio
import random
from typing import Protocol

from nats.aio.client import Client
from nats.errors import Error
from nats.js.api import AckPolicy, ConsumerConfig, DiscardPolicy, RetentionPolicy, StreamConfig
from nats.js.client import JetStreamContext
from nats.js.errors import NotFoundError
from twisted.internet.defer import Deferred
from twisted.logger import Logger

from ironcurtain.fleet.nats import PAUSE_SECONDS
from ironcurtain.fleet.server_files import QUEUE, TAKERS, TASK_SUBJECTS
from ironcurtain.fleet.signed import LIMIT
from ironcurtain.services.asyncio_bridge import to_asyncio

ACKNOWLEDGED_SECONDS = 90.0
"""After these, a task that a host took and neither started nor gave back is offered again."""

FETCH_SECONDS, LATER_SECONDS = 10.0, 3.0
"""How long one request for a task waits; and after how long one is offered again that a host does not take."""

_random = random.SystemRandom()


class Taking(Protocol):
    """Takes tasks for this host."""

    def room(self) -> bool:
        """:returns: whether it can take one now."""

    def offered(self, message: bytes) -> Deferred[bool]:
        """
        A task is offered.

        :returns: fires with whether the message is done with; else it is offered again, here or elsewhere.
        """


class TaskQueue:
    """
    :param replicas: number of servers that keep it.
    :param taking: takes tasks.
    """

    log = Logger()

    def __init__(self, replicas: int, taking: Taking) -> None:
        self._replicas, self._taking = replicas, taking
        self._client: Client | None = None

    async def run(self, client: Client) -> None:
        """Take tasks until this is cancelled. For asyncio."""
        self._client = client
        await self._take(client.jetstream())

    async def offer(self, host: str, task: str, offer: bytes) -> bool:
        """
        Offer a task of this host, instead of an earlier offer of it. For asyncio.

        :returns: whether the server has it.
        """
        if self._client is None or not self._client.is_connected:
            return False
        try:
            await self._client.jetstream().publish(f"{TASK_SUBJECTS}.{host}.{task}", offer, stream=QUEUE)
        except (TimeoutError, Error) as e:
            self.log.warn("task {task} was not offered yet: {error}", task=task, error=e)
            return False
        return True

    async def _take(self, stream: JetStreamContext) -> None:
        why = ""
        while True:
            try:
                tasks = await self._queue(stream)
                why = ""
                try:
                    await self._take_from(tasks)
                finally:
                    await tasks.unsubscribe()
            except (TimeoutError, Error) as e:
                if str(e) != why:
                    self.log.warn("the server gives no tasks: {error}", error=e)
                why = str(e)
                await asyncio.sleep(FETCH_SECONDS)

    async def _take_from(self, tasks: JetStreamContext.PullSubscription) -> None:
        """Take tasks, until the server has no queue any more."""
        clock = asyncio.get_running_loop()
        while True:
            if not self._taking.room():
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            asked = clock.time()
            try:
                (message,) = await tasks.fetch(1, timeout=FETCH_SECONDS)
            except TimeoutError:
                if clock.time() - asked < FETCH_SECONDS / 2:  # it refused, for instance since too many wait
                    raise
                continue
            if await to_asyncio(self._taking.offered(message.data)):
                await message.ack()
            else:
                await message.nak(delay=LATER_SECONDS)
                # The server alternates between hosts: without chance, a task could meet the same one each time.
                await asyncio.sleep(_random.uniform(0, 2 * LATER_SECONDS))

    async def _queue(self, stream: JetStreamContext) -> JetStreamContext.PullSubscription:
        kept = StreamConfig(
            name=QUEUE,
            subjects=[f"{TASK_SUBJECTS}.*.*"],
            retention=RetentionPolicy.WORK_QUEUE,
            discard=DiscardPolicy.OLD,
            max_msgs_per_subject=1,
            max_msg_size=LIMIT,
            num_replicas=self._replicas,
        )
        takers = ConsumerConfig(
            durable_name=TAKERS, ack_policy=AckPolicy.EXPLICIT, ack_wait=ACKNOWLEDGED_SECONDS, max_deliver=-1
        )
        try:
            await stream.stream_info(QUEUE)
        except NotFoundError:
            await stream.add_stream(kept)
        await stream.add_consumer(QUEUE, takers)
        return await stream.pull_subscribe_bind(TAKERS, QUEUE)
