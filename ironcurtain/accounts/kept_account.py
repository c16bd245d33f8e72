"""An account whose login IronCurtain keeps and renews, together with every other process of the home."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec
from msgspec.structs import replace
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure

from ironcurtain.accounts.kept import KeptLogin
from ironcurtain.accounts.login import Login
from ironcurtain.accounts.renewing import RenewalRequest, lapsed, renewal_request, renewed
from ironcurtain.accounts.source import Kind, Token
from ironcurtain.errors import ConfigurationError, IronCurtainError, Unavailable
from ironcurtain.files.locks import Held
from ironcurtain.files.private import file_stamp
from ironcurtain.secrets.redaction import Redactor

LOCK_SECONDS: Final = 0.05
"""Seconds between two attempts to take the lock that another process has."""

PATIENCE_SECONDS: Final = 45.0
"""How many seconds another process may have it: longer than a renewal takes."""

RETRY_SECONDS: Final = 30.0
"""For so many seconds after a failed renewal, the same token is not tried again, however many requests want it."""

Post = Callable[[RenewalRequest], Awaitable[tuple[int, bytes]]]
"""Sends a request: see :meth:`ironcurtain.accounts.token_endpoint.TokenEndpoint.post`."""


class KeptAccount:
    """
    See :class:`~ironcurtain.accounts.source.TokenSource`.

    :param reactor: for delays; it does not end during a renewal.
    :param now: seconds since the epoch.
    :param redactor: learns the tokens.
    :raises NotFound: there is no such login.
    :raises ConfigurationError: its file cannot be used.
    """

    log = Logger()

    def __init__(self, file: KeptLogin, post: Post, reactor: Any, now: Callable[[], float], redactor: Redactor) -> None:
        self._file, self._post, self._reactor, self._now, self._redactor = file, post, reactor, now, redactor
        self._stamp = file_stamp(file.path)
        self._login = file.read()
        self._token = self._learn(self._login)
        self._waiting: list[Deferred[None]] = []
        self._failed: _Failed | None = None

    @property
    def kind(self) -> Kind:
        """What the account is."""
        return self._login.kind

    @property
    def description(self) -> str:
        """Which account pays."""
        return f"your {self._login.title}, from ironcurtain login {self._file.name}"

    def current(self) -> Token:
        """
        :returns: the token in the file, which other processes may have renewed; the same object while it is unchanged.
        :raises NotFound: the login was removed.
        :raises ConfigurationError: the file cannot be used.
        """
        if self._stamp != (stamp := file_stamp(self._file.path)):
            login = self._file.read()
            if login != self._login:
                self._login, self._token = login, self._learn(login)
            self._stamp = stamp
        return self._token

    async def refreshed(self, stale: Token) -> Token:
        """
        Renew the login, unless another caller or process did. Cancelling this only ends the wait: the answer on its way
        may be the only one with the next refresh token.
        """
        current = self.current()
        if current.secret != stale.secret:
            return current
        if self._failed is not None and self._failed.holds(current, self._reactor.seconds()):
            raise self._failed.error.with_traceback(None)
        waiting: Deferred[None] = Deferred()
        self._waiting.append(waiting)
        if len(self._waiting) == 1:
            Deferred.fromCoroutine(self._renew(current)).addBoth(self._ended, current)
        await waiting
        return self.current()

    def _ended(self, result: Failure | None, token: Token) -> None:
        waiting, self._waiting = self._waiting, []
        if result is not None:
            if isinstance(result.value, IronCurtainError):
                self._failed = _Failed(token, self._reactor.seconds(), result.value)
            else:
                self.log.failure("the login {name} was not renewed", result, name=self._file.name)
        for waiter in waiting:
            if not waiter.called:  # it was cancelled
                waiter.callback(result)  # a Deferred that gets a Failure fails

    async def _renew(self, current: Token) -> None:
        async with self._held():
            login = self._file.read()
            if login.access != current.secret:
                return
            request = renewal_request(login)
            if request is None or login.refused:
                raise lapsed(login, self._renewal)
            try:
                self._file.write(login)  # a full disk must be noticed before the refresh token is spent
            except OSError as e:
                raise Unavailable(
                    f"the login was not renewed: {self._file.path} cannot be written: {e.strerror}"
                ) from None
            exchange = Deferred.fromCoroutine(self._exchange(login, request))
            self._reactor_waits(exchange)
            await exchange

    async def _exchange(self, login: Login, request: RenewalRequest) -> None:
        status, body = await self._post(request)
        try:
            fresh = renewed(login, status, body, self._now(), self._renewal)
        except ConfigurationError:
            self._file.write(replace(login, refused=True))
            raise
        self._file.write(fresh)  # before anybody uses it: providers accept the old refresh token no more
        self.log.info("renewed the login {name}", name=self._file.name)

    def _reactor_waits(self, exchange: Deferred[None]) -> None:
        """Let the process end only after the exchange, which takes its time limit at most."""
        ending: list[Deferred[None]] = []

        def wait() -> Deferred[None]:
            ending.append(Deferred())
            return ending[0]

        trigger = self._reactor.addSystemEventTrigger("before", "shutdown", wait)

        def ended(result: Any) -> Any:
            if ending:
                ending[0].callback(None)
            else:
                self._reactor.removeSystemEventTrigger(trigger)
            return result

        exchange.addBoth(ended)

    @asynccontextmanager
    async def _held(self) -> AsyncIterator[None]:
        lock, since = self._file.lock(), self._reactor.seconds()
        while not lock.held:
            try:
                lock.acquire()
            except Held as e:
                if self._reactor.seconds() - since >= PATIENCE_SECONDS:
                    raise Unavailable(f"the login {self._file.name} was not renewed: {e}") from None
                await deferLater(self._reactor, LOCK_SECONDS)
        try:
            yield
        finally:
            lock.release()

    def _learn(self, login: Login) -> Token:
        for secret in login.secrets():
            self._redactor.add(secret)
        return login.token

    @property
    def _renewal(self) -> str:
        return f"ironcurtain login {self._file.name}"


class _Failed(msgspec.Struct, frozen=True):
    token: Token
    since: float
    error: IronCurtainError

    def holds(self, token: Token, now: float) -> bool:
        """Whether trying again is useless: for ever if the login was refused, for a while if it was not renewed."""
        lasting = isinstance(self.error, ConfigurationError)
        return token.secret == self.token.secret and (lasting or now - self.since < RETRY_SECONDS)
