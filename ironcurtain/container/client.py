"""
Client of the Docker Engine: simple calls in threads, streams over Twisted connections.

The package ``docker`` makes the calls. It does not make the streams: each would block a thread, and the package's
``attach_socket`` loses the first bytes if they arrive together with the response's head.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode

from twisted.internet.defer import CancelledError
from twisted.internet.defer import TimeoutError as Late
from twisted.internet.endpoints import UNIXClientEndpoint, connectProtocol
from twisted.internet.error import ConnectError, ConnectingCancelledError
from twisted.internet.error import TimeoutError as ConnectTimeout
from twisted.internet.interfaces import IDelayedCall
from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger
from twisted.python.threadpool import ThreadPool

from ironcurtain.container.errors import EngineError, EngineUnavailable
from ironcurtain.container.streams import EngineStream, Receiver

if TYPE_CHECKING:
    from ironcurtain.sandbox.docker_client import DockerClient

T = TypeVar("T")

THREADS = 8
"""Maximum number of concurrent calls; further ones wait. Stopping a container takes longest, up to some seconds."""

CONNECT_SECONDS = 5.0
"""Time limit in seconds for connecting a stream to the Engine (it is on this machine)."""

FIRST_SECONDS = 10.0
"""Time limit in seconds for its first answer, for which people wait; the answer needs no work."""

CALL_SECONDS = 60.0
"""Time limit in seconds for silence during a call (creating a container on a busy disk takes seconds)."""

NOTICE_SECONDS = 3.0
"""Seconds after which a message says that the Engine's first answer is still missing."""


class EngineClient:
    """
    The client of one Engine.

    Every method raises :class:`EngineUnavailable` if the Engine does not answer, and :class:`EngineError` if it
    refuses.

    :param reactor: for connections, time limits and results of threads.
    :param socket: path of the Engine's socket.
    :param seconds: how long the Engine may be silent during a call.
    :ivar address: address of the socket, for people.
    """

    log = Logger()

    def __init__(self, reactor: Any, socket: str, seconds: float) -> None:
        self.clock, self._socket, self._seconds = reactor, socket, seconds
        self._client: DockerClient | None = None
        self._threads: _DaemonThreads | None = None
        self.address = f"unix://{socket}"

    async def negotiate(self) -> DockerClient:
        """
        Check that the Engine answers, and negotiate a version.

        :raises EngineUnavailable: also if it is too old.
        """
        notice = self.clock.callLater(NOTICE_SECONDS, self._tell_that_it_waits)
        try:
            self._client = await self._in_thread(partial(_connect, self.address, self._seconds))
        finally:
            if notice.active():
                notice.cancel()
        return self._client

    async def call(self, make: Callable[[DockerClient], T]) -> T:
        """
        Make one call. Cancelling only stops waiting for it; the call ends on its own.

        :param make: makes the call; runs in a thread.
        :returns: the result of ``make``.
        """
        client = self._client or await self.negotiate()
        return await self._in_thread(partial(_translated, self.address, self._seconds, partial(make, client)))

    async def stream(
        self,
        path: str,
        query: Mapping[str, str | bytes],
        body: bytes,
        receive: Receiver,
        *,
        content_type: str = "application/json",
        upgrade: bool = False,
        seconds: float = CALL_SECONDS,
        headers: Mapping[str, str] | None = None,
    ) -> EngineStream:
        """
        Make a call with a streamed response.

        :param upgrade: whether the connection becomes a raw stream in both directions.
        :param seconds: time limit for the response's head.
        :param headers: further ones of the request.
        :returns: an open connection; the caller has to :meth:`EngineStream.abort` it.
        """
        version = (self._client or await self.negotiate()).api_version
        target = f"/v{version}{path}" + (f"?{urlencode(query)}" if query else "")
        stream = EngineStream(target, body, content_type, upgrade, receive, self.address, headers or {})
        endpoint = UNIXClientEndpoint(self.clock, self._socket, timeout=CONNECT_SECONDS)
        try:
            await connectProtocol(endpoint, stream)
            await stream.opened.addTimeout(seconds, self.clock)
        except ConnectingCancelledError:
            raise CancelledError() from None
        except ConnectTimeout:
            raise _silent(self.address, CONNECT_SECONDS) from None
        except ConnectError as e:
            raise EngineUnavailable(self.address, os.strerror(e.osError) if e.osError else str(e)) from None
        except Late:
            raise _silent(self.address, seconds) from None
        return stream

    async def read(
        self,
        path: str,
        query: Mapping[str, str | bytes],
        body: bytes,
        take: Callable[[bytes], None],
        *,
        content_type: str = "application/json",
        silence: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """
        Make a call with a streamed response, and wait for its end.

        :param take: called with the response's bytes.
        :param silence: time limit in seconds without a byte; ``None``: no limit once the head has arrived.
        :param headers: further ones of the request.
        """
        timer: IDelayedCall | None = None

        def taken(data: bytes) -> None:
            if timer is not None and silence is not None:
                timer.reset(silence)
            take(data)

        seconds = CALL_SECONDS if silence is None else silence
        stream = await self.stream(
            path, query, body, taken, content_type=content_type, seconds=seconds, headers=headers
        )
        timer = None if silence is None else self.clock.callLater(silence, stream.abort)
        try:
            await stream.ended
        finally:
            stream.abort()
            in_time = timer is None or timer.active()
            if timer is not None and in_time:
                timer.cancel()
        if not in_time:
            raise _silent(self.address, seconds)
        if not stream.whole:
            raise EngineUnavailable(self.address, "it closed the connection")

    def close(self) -> None:
        """Let the threads end, without waiting for calls in progress."""
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.adjustPoolsize(0, 0)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        if self._threads is None:
            self._threads = _DaemonThreads(0, THREADS, "engine")
            self._threads.start()
            self.clock.addSystemEventTrigger("after", "shutdown", self.close)
        return await deferToThreadPool(self.clock, self._threads, work)

    def _tell_that_it_waits(self) -> None:
        text = "waiting for the Docker Engine at {address}, up to {seconds:.0f} s"
        self.log.info(text, address=self.address, seconds=FIRST_SECONDS, for_person=True)


class _DaemonThread(Thread):
    """A thread that the process does not wait for at its end: an Engine that hangs must not block a command's exit."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs, daemon=True)


class _DaemonThreads(ThreadPool):
    threadFactory = _DaemonThread


def _connect(address: str, seconds: float) -> DockerClient:
    from ironcurtain.sandbox.docker_client import connect

    return _translated(address, FIRST_SECONDS, partial(connect, address, FIRST_SECONDS, seconds))


def _translated(address: str, seconds: float, work: Callable[[], T]) -> T:
    """
    :param seconds: how long the Engine may be silent, for the message.
    :returns: the result of ``work``.
    """
    from docker.errors import APIError, DockerException

    try:
        return work()
    except APIError as e:
        raise EngineError(e.status_code or 500, str(e.explanation or "")) from None
    except DockerException as e:
        raise EngineUnavailable(address, str(e)) from None
    except (AttributeError, LookupError, TypeError, ValueError):
        raise EngineUnavailable(address, "its answer is not that of a Docker Engine") from None
    except OSError as e:  # exceptions of requests are OSErrors
        causes = list(_causes(e))
        if any(isinstance(cause, TimeoutError) for cause in causes):
            raise _silent(address, seconds) from None
        number = next((cause.errno for cause in causes if isinstance(cause, OSError) and cause.errno), None)
        raise EngineUnavailable(address, os.strerror(number) if number else "it closed the connection") from None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _silent(address: str, seconds: float) -> EngineUnavailable:
    return EngineUnavailable(address, f"silent for {seconds:.0f} seconds")
