"""Notice at once that the daemon of another host has died, where something waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

from nats.aio.client import Client
from nats.errors import Error, NoRespondersError

from ironcurtain.fleet.carried import SUBJECTS

PROBE_SECONDS = 3.0
"""Seconds between two looks."""


class Presence:
    """
    Asks the server whether anybody listens for hosts. It says so at once if nobody does, and nothing else counts: what
    listens need not be that host, which its lease tells.

    :param hosts: returns those that something waits for.
    :param gone: called with the name of one for which nobody listens.
    """

    def __init__(self, hosts: Callable[[], Collection[str]], gone: Callable[[str], None]) -> None:
        self._hosts, self._gone = hosts, gone

    async def run(self, client: Client) -> None:
        """Look until this is cancelled. For asyncio."""
        while True:
            await asyncio.sleep(PROBE_SECONDS)
            await asyncio.gather(*(self._look(client, host) for host in self._hosts()))

    async def _look(self, client: Client, host: str) -> None:
        try:
            await client.request(f"{SUBJECTS}.{host}.presence", timeout=PROBE_SECONDS)
        except NoRespondersError:
            self._gone(host)
        except (TimeoutError, Error):
            pass  # nobody answers who listens, either
