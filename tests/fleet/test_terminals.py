"""The terminal of another host's session: all that a terminal of another process here does, through the fleet."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.interfaces import IProtocol

from ironcurtain.audit.signing import SigningKey
from ironcurtain.fleet.carried import Streams
from ironcurtain.fleet.mirror import Mirrors
from ironcurtain.fleet.sealed import Sealing
from ironcurtain.fleet.serving import DAEMON, Serving
from ironcurtain.fleet.trust import Host, Trust
from ironcurtain.home.layout import Home, private_directory
from ironcurtain.services.unix_socket import listen
from tests.fleet.doubles import Post
from tests.mitm_proxy.waiting import until
from tests.terminal import test_remote

SESSION = "7"
"""The one that the viewer names."""


class FleetTerminalTests(test_remote.RemoteTests):
    """The person is at laptop, and the program runs at build."""

    async def setUp(self) -> None:  # type: ignore[override]
        await super().setUp()
        await self.listener.stop()
        homes = {name: Home(self.directory / name, self.directory / name / "run") for name in ("laptop", "build")}
        keys = {name: SigningKey.load_or_make(private_directory(home.path)) for name, home in homes.items()}
        self.trust = Trust({name: Host(name, key.public.raw, {}) for name, key in keys.items()})
        sealing = {name: Sealing(name, key, lambda: self.trust) for name, key in keys.items()}
        serving, self.post = Serving(self.reactor, homes["build"], lambda: self.trust), Post()

        def accept(host: str, proved: Callable[[], None]) -> IProtocol | None:
            return sealing["build"].accepting(host, serving.accept(proved))

        def open_(host: str, service: str, protocol: IProtocol) -> None:
            sealed = sealing["laptop"].towards(self.trust.hosts[host], protocol)
            self.post.members["laptop"].open(host, sealed)
            protocol.transport.write(f"{service}\n".encode())  # type: ignore[attr-defined]

        self.post.members["laptop"] = Streams(self.post, "laptop", lambda host, proved: None, self.reactor)
        self.post.members["build"] = Streams(self.post, "build", accept, self.reactor)
        socket = homes["build"].session_run(SESSION).stream_socket
        private_directory(homes["build"].run)
        private_directory(homes["laptop"].run)
        private_directory(homes["laptop"].fleet)
        self.listener = await listen(socket, self.factory)
        self.mirrors = Mirrors(self.reactor, homes["laptop"], open_)
        self.mirrors.look("build")
        self.socket = homes["laptop"].fleet_socket("build", DAEMON)
        await until(self.socket.exists)

    async def tearDown(self) -> None:  # type: ignore[override]
        await super().tearDown()
        await self.mirrors.keep(())
        for streams in self.post.members.values():
            streams.lose()

    async def test_nobody_there(self) -> None:
        await self.listener.stop()
        self.view()
        self.assertIn("[UNAVAILABLE: the connection to the session was lost", await self.is_as_before())

    async def test_host_that_is_no_longer_trusted_loses_the_terminal(self) -> None:
        self.program("echo shown; read x")
        self.view()
        await self.watcher.shows(b"shown")
        self.post.members["build"].lose("laptop", "the trust was changed")
        self.assertIn("the connection to the session was lost", await self.is_as_before())
        self.assertIsNone(self.hub.over)
