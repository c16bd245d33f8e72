"""The processes of other hosts beside those of this one: which are asked for what."""

from __future__ import annotations

import os
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import NotFound, ProtocolViolation, Unavailable
from ironcurtain.escalation import Outcome
from ironcurtain.home.host_numbers import NUMBERS, HostNumber
from ironcurtain.home.registry import SessionEntry
from ironcurtain.process.identity import identify
from ironcurtain.terminal.model import Mode
from tests.operations.test_home_source import Home, Owner


class Elsewhere(Owner):
    """A process of another host, which has what it is asked for, whatever that is."""

    def __init__(self) -> None:
        super().__init__(1)
        self.reached: list[int] = []

    async def reach(self, number: int) -> None:
        self.reached.append(number)

    async def decide(self, number: int, *more: Any) -> Any:
        await self.reach(number)

    async def stop(self, name: int | str) -> Any:
        await self.reach(int(name))

    async def deny_all(self, name: int | str | None = None) -> Any:
        await self.reach(int(name or 0))

    async def ticket(self, name: int | str, mode: Mode) -> Any:
        await self.reach(int(name))


class OtherHostsTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.here, self.there, self.third = Owner(1), Elsewhere(), Elsewhere()
        self.home = Home(Clock(), self.here)
        self.addCleanup(self.home.remove)
        us = identify()
        for host, owner in (("build-3", self.there), ("an-other", self.third)):
            path = f"/run/{host}.sock"
            self.home.owners[path] = owner
            self.home.registry.add(
                SessionEntry(
                    session_id="0001", escalation_dir="", label="", started_at="", pid=os.getpid(), number=1,
                    pid_start_time=us.start_time, boot_id=us.boot_id, control_socket=path, host=host,
                )
            )  # fmt: skip

    def ask(self, coroutine: Any) -> Any:
        return self.successResultOf(Deferred.fromCoroutine(coroutine))

    def test_bare_number_reaches_only_processes_here(self) -> None:
        self.assertEqual(self.ask(self.home.source.stop(1)).number, 1)
        self.ask(self.home.source.decide(10, Outcome.APPROVED, "d" * 64))
        self.ask(self.home.source.revoke(10))
        self.failureResultOf(Deferred.fromCoroutine(self.home.source.deny_all(2)), NotFound)
        self.assertEqual(self.there.reached + self.third.reached, [])

    def test_number_of_a_host_reaches_only_that_host(self) -> None:
        self.ask(self.home.source.decide(HostNumber("build-3", 10), Outcome.APPROVED, "d" * 64))
        self.ask(self.home.source.stop(HostNumber("build-3", 1)))
        self.assertEqual((len(self.there.reached), self.third.reached, self.here.decided), (2, [], []))
        self.failureResultOf(Deferred.fromCoroutine(self.home.source.stop(HostNumber("gone", 1))), Unavailable)

    def test_number_that_is_a_text_is_that_number(self) -> None:
        source = self.home.source
        for ask in (source.stop, source.deny_all, lambda name: source.ticket(name, Mode.OBSERVE)):
            self.ask(ask("1"))
            self.failureResultOf(Deferred.fromCoroutine(ask("2")), NotFound)
        self.assertEqual(self.there.reached + self.third.reached, [])
        for ask in (source.stop, source.deny_all, lambda name: source.ticket(name, Mode.OBSERVE)):
            self.ask(ask("build-3/7"))
        self.assertEqual((self.there.reached, self.third.reached), ([HostNumber("build-3", 7)] * 3, []))

    def test_id_of_a_session_here_is_not_taken_for_one_of_another_host(self) -> None:
        self.assertEqual(self.ask(self.home.source.stop("0001")).number, 1)
        self.assertEqual(self.there.reached + self.third.reached, [])

    def test_host_cannot_count_into_the_numbers_of_another(self) -> None:
        for wrong in (-1, NUMBERS, NUMBERS + 1, int(HostNumber("an-other", 1))):
            self.assertRaises(ProtocolViolation, HostNumber, "build-3", wrong)
