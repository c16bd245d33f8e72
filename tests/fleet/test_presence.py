"""Tests for noticing that nobody listens for a host any more."""

from __future__ import annotations

import asyncio
from typing import Any

from nats.errors import NoRespondersError
from twisted.trial.unittest import TestCase

from ironcurtain.fleet import presence
from ironcurtain.fleet.presence import Presence
from ironcurtain.services.asyncio_bridge import from_asyncio


class Server:
    """Answers as the server does: at once for a host that nobody listens for, and else not at all."""

    def __init__(self, *dead: str) -> None:
        self.dead, self.asked = dead, list[str]()

    async def request(self, subject: str, timeout: float) -> None:
        host = subject.split(".")[2]
        self.asked.append(host)
        if host in self.dead:
            raise NoRespondersError
        raise TimeoutError


class PresenceTests(TestCase):
    async def look(self, server: Any, *hosts: str) -> list[str]:
        """:returns: the hosts that were found to be gone within two looks."""
        self.patch(presence, "PROBE_SECONDS", 0.0)
        gone: list[str] = []
        found = Presence(lambda: hosts, gone.append)

        async def run() -> None:
            looking = asyncio.ensure_future(found.run(server))
            while len(server.asked) < 2 * len(hosts):
                await asyncio.sleep(0)
            looking.cancel()

        await from_asyncio(run())
        return gone

    async def test_host_for_which_nobody_listens_is_gone(self) -> None:
        self.assertEqual(set(await self.look(Server("tower"), "build", "tower")), {"tower"})

    async def test_host_that_does_not_answer_is_not_gone(self) -> None:
        self.assertEqual(await self.look(Server(), "build", "tower"), [])
