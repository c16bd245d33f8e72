"""One run of a server, from start to end: sends requests, and delivers answers, notifications and requests."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Mapping
from typing import Any, Protocol

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from ironcurtain.jsonrpc import codec, lenient
from ironcurtain.jsonrpc.framing import OUTBOUND_LIMIT, TooLong
from ironcurtain.mcp_proxy.backend import (
    BackendFailed,
    Event,
    Garbage,
    OnProgress,
    QuestionWithdrawn,
    RpcError,
    ServerAnswer,
    ServerConversation,
    ServerNotice,
    ServerProgress,
    ServerQuestion,
    UnreadableAnswer,
    UnreadAnswer,
)
from ironcurtain.mcp_proxy.channel import MakeChannel
from ironcurtain.services.rate_limit import Pace

SILENCE_SECONDS = 600.0
"""Usual time limit in seconds for a request without an answer or a progress report."""

SWEEP_SECONDS = 5.0
"""Seconds between checks of that limit."""

LINES_A_SECOND = 100
"""Number of a server's lines logged per second; further lines are counted."""

JUNK_LINES = 100
"""Number of consecutive invalid lines of a server after which it is stopped."""

OPEN_QUESTIONS = 64
"""Maximum number of open requests of a server."""


class LinkOwner(Protocol):
    """Receives the events of a link."""

    def notified(self, method: str, params: bytes | None) -> None:
        """The server sent a notification, other than progress."""

    def asked(self, method: str, params: bytes | None) -> Awaitable[bytes]:
        """The server sent a request. Cancelled if the server cancels it, or ends."""

    def error_line(self, line: str) -> None:
        """There is a line for the log: from the server's standard error, or one that is not a message."""

    def ended(self, why: str) -> None:
        """The run ended, and all requests have failed. Called once, unless :meth:`Link.stop` is called first."""


class _Waiter:
    __slots__ = ("answer", "heard")

    def __init__(self, answer: Deferred[bytes], heard: float) -> None:
        self.answer, self.heard = answer, heard


class Link:
    """
    :param name: the server's name, for messages.
    :ivar silence: time limit in seconds for a request without an answer or a progress report; ``None``: the usual one.
    """

    log = Logger()

    def __init__(self, name: str, clock: IReactorTime, make_channel: MakeChannel, owner: LinkOwner) -> None:
        self.name, self._clock, self._owner = name, clock, owner
        self.silence: float | None = None
        self._conversation: ServerConversation[_Waiter] = ServerConversation()
        self._questions: dict[codec.Id, Deferred[None] | None] = {}
        self._sweeper: IDelayedCall | None = None
        self._pace, self._junk = Pace(LINES_A_SECOND, clock.seconds), 0
        self._over = ""
        self.oddity = ""
        """What the server last sent that is not a message, in words; empty if there was no such thing."""
        self._channel = make_channel(self)
        self.pid, self.opening = self._channel.pid, self._channel.opening

    async def start(self) -> None:
        """Connect to the server. Only then may requests be sent."""
        await self._channel.connect()

    def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        on_progress: OnProgress | None = None,
        *,
        endless: bool = False,
    ) -> Deferred[bytes]:
        """
        Send a request to the server.

        :param endless: whether there is no time limit for the answer.
        :returns: fires with the raw JSON result. Cancelling it sends the server a cancellation.
        :raises BackendFailed: it cannot be sent.
        """
        if self._over or self._channel.choked:
            raise BackendFailed(f"MCP server {self.name} {self._over or 'does not read its input'}")
        answer: Deferred[bytes] = Deferred(lambda _: self._cancel(number, "cancelled"))
        waiter = _Waiter(answer, math.inf if endless else self._clock.seconds())
        heard = self._hearing(waiter, on_progress)
        number, line = self._conversation.request(waiter, method, params, heard, endless=endless)
        self._channel.write(line)
        if self._sweeper is None:
            self._sweeper = self._clock.callLater(SWEEP_SECONDS, self._sweep)
        return answer

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send the server a notification."""
        self._channel.write(codec.notification(method, params))

    def pause(self) -> None:
        """Stop reading from the server for now."""
        self._channel.pause()

    def resume(self) -> None:
        """Resume reading from the server."""
        self._channel.resume()

    async def stop(self) -> None:
        """End the server. Its open requests fail."""
        self._abandon("is stopped")
        await self._channel.stop()

    def line_received(self, line: bytes | TooLong) -> None:
        """For the channel: a message arrived."""
        if isinstance(line, TooLong):
            self.gone(f"sent a message of more than {OUTBOUND_LIMIT} bytes")
        for message in (line,) if isinstance(line, TooLong) else lenient.messages(line):
            if not self._over:
                self._take(self._conversation.receive(message))

    def unread(self, request: codec.Id | None, why: str) -> None:
        """For the channel: the answer to a request cannot be read."""
        if not self._over:
            self._take(self._conversation.unread(() if not isinstance(request, int) else (request,), why))

    def _take(self, event: Event[_Waiter]) -> None:
        self._junk = self._junk + 1 if isinstance(event, Garbage | UnreadAnswer) else 0
        if isinstance(event, ServerAnswer):
            if event.result is not None:
                event.waiter.answer.callback(event.result)
            else:
                event.waiter.answer.errback(Failure(RpcError(event.error or b"{}")))
        elif isinstance(event, UnreadAnswer):
            self.error_line(f"(an answer cannot be read: {event.detail[:200]})")
            for waiter in event.waiters:
                why = f"MCP server {self.name} sent an answer that cannot be read: {event.detail[:200]}"
                waiter.answer.errback(Failure(UnreadableAnswer(why)))
        elif isinstance(event, ServerProgress):
            event.notify(event.params)
        elif isinstance(event, ServerNotice):
            self._owner.notified(event.method, event.params)
        elif isinstance(event, ServerQuestion):
            self._take_question(event)
        elif isinstance(event, QuestionWithdrawn):
            self._withdrawn(event.id)
        else:
            self.oddity = event.detail[:200]
            self.error_line(f"(not understood: {self.oddity})")
            if self._junk > JUNK_LINES:
                self.gone("writes invalid MCP messages to its standard output, and was stopped")

    def error_line(self, line: str) -> None:
        """For the channel: there is a line for the log."""
        if (left_out := self._pace.take()) is None:
            return
        if left_out:
            self._owner.error_line(f"({left_out} more lines were left out)")
        self._owner.error_line(line)

    def gone(self, why: str) -> None:
        """For the channel: the server is gone."""
        if not self._over:
            self._abandon(why)
            self._owner.ended(why)

    def _abandon(self, why: str) -> None:
        self._over = self._over or why
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        for identifier in list(self._questions):
            self._withdrawn(identifier)
        for waiter in self._conversation.abandon():
            waiter.answer.errback(Failure(BackendFailed(f"MCP server {self.name} {why}")))

    def _hearing(self, waiter: _Waiter, on_progress: OnProgress | None) -> OnProgress | None:
        if on_progress is None:
            return None

        def heard(params: dict[str, Any]) -> None:
            waiter.heard = self._clock.seconds()
            on_progress(params)

        return heard

    def _cancel(self, number: int, reason: str) -> None:
        if (line := self._conversation.cancel(number, reason)) is not None:
            self._channel.write(line)

    def _sweep(self) -> None:
        self._sweeper = None
        silence = SILENCE_SECONDS if self.silence is None else self.silence
        if self._questions:  # the server waits for an answer itself
            for _, waiter in self._conversation.waiting():
                waiter.heard = max(waiter.heard, self._clock.seconds())
        limit = self._clock.seconds() - silence
        for number, waiter in self._conversation.waiting():
            if waiter.heard < limit:
                self._cancel(number, "no answer")
                silent = f"MCP server {self.name} has not answered for {silence:g} s"
                waiter.answer.errback(Failure(BackendFailed(silent)))
        if self._conversation.waiting() and not self._over:
            self._sweeper = self._clock.callLater(SWEEP_SECONDS, self._sweep)

    def _take_question(self, question: ServerQuestion) -> None:
        if self._channel.choked:
            self.gone("does not read its input")
            return
        if question.id in self._questions or len(self._questions) >= OPEN_QUESTIONS:
            self._channel.write(codec.error(question.id, codec.INVALID_REQUEST, "too many requests are open"))
            return
        self._questions[question.id] = None
        answering = Deferred.fromCoroutine(self._answer(question))
        if question.id in self._questions:
            self._questions[question.id] = answering

    async def _answer(self, question: ServerQuestion) -> None:
        try:
            line = codec.result(question.id, await self._owner.asked(question.method, question.params))
        except RpcError as e:
            line = codec.raw_error(question.id, e.raw)
        except CancelledError:  # by the server, which gets no answer, or since the call it asked for is over
            line = codec.error(question.id, codec.INTERNAL_ERROR, "nobody waits for this any more")
        except Exception:
            self.log.failure("a request of MCP server {name} could not be answered", name=self.name)
            line = codec.error(question.id, codec.INTERNAL_ERROR, "the request could not be answered")
        if question.id in self._questions:  # it was not withdrawn
            del self._questions[question.id]
            self._channel.write(line)

    def _withdrawn(self, identifier: codec.Id) -> None:
        if (question := self._questions.pop(identifier, None)) is not None:
            question.cancel()
