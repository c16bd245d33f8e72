"""Real programs that install packages, through the MITM proxy, from a registry on this machine that lies."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.utils import getProcessOutputAndValue

from ironcurtain.home.registry_sections import Registries, RegistrySettings
from ironcurtain.network.dialling import Dialer
from ironcurtain.registries.opening import OpenRegistries, RegistrySurroundings
from tests.http.direct import DIRECT
from tests.mitm_proxy.support import Base, Bench
from tests.mitm_proxy.waiting import the_reactor
from tests.network.names import Names
from tests.registries.stub import LyingRegistry

NOW = datetime.now(UTC)
OLD, YOUNG = NOW - timedelta(days=30), NOW - timedelta(days=2)


class ClientCase(Base):
    """
    :cvar registry: its name in the settings.
    :cvar path: of the index, below the registry's address.
    """

    registry: str
    path = ""

    async def start(self) -> Bench:
        """:returns: a bench whose proxy, with a port, answers for the registry."""
        bench, self.index = Bench(), LyingRegistry()
        self.addCleanup(bench.stopped)
        self.addCleanup(lambda: Deferred.fromCoroutine(self.index.stop()))
        settings: Any = {self.registry: RegistrySettings(url=f"{self.index.url}{self.path}")}
        dialer = Dialer(the_reactor, Names("10.0.0.1"), DIRECT)
        around = RegistrySurroundings(
            the_reactor, dialer, bench.audit, bench.redactor, _no_key, lambda: datetime.now(UTC), lambda _: None
        )
        opened = OpenRegistries(Registries(**settings), around)
        self.addCleanup(lambda: Deferred.fromCoroutine(opened.stop()))
        bench.responders = dict(opened.responders)
        await bench.start()
        listening = socket.socket()
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        self.proxy = f"http://127.0.0.1:{listening.getsockname()[1]}"
        await bench.proxy.accept(listening)
        return bench

    async def execute(self, bench: Bench, program: str, *arguments: str, environ: Mapping[str, str]) -> tuple[str, int]:
        """
        :param environ: besides the variables that name the proxy.
        :returns: what a program printed, and its status.
        """
        usual = {"PATH": os.defpath, "HOME": str(bench.top), "HTTPS_PROXY": self.proxy, "http_proxy": self.proxy}
        output, errors, status = await getProcessOutputAndValue(program, arguments, env={**usual, **environ})
        return (output + errors).decode(), status


async def _no_key(*_: Any) -> Any:
    raise AssertionError("no key is configured")
