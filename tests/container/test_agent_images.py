"""The images that are shipped, built for real and used as a session uses them."""

from __future__ import annotations

import os
import re
from functools import partial
from typing import Any

from msgspec.structs import replace
from twisted.internet import reactor
from twisted.internet.endpoints import UNIXServerEndpoint
from twisted.internet.interfaces import IHalfCloseableProtocol
from twisted.internet.protocol import Factory, Protocol
from zope.interface import implementer

from ironcurtain.container.spec import HOME, SOCKETS, ContainerSpec
from tests import engine as test_engine
from tests.agent_images import agent_image, recipes
from tests.container.support import EngineCase
from tests.machine import UID

PROGRAMS = {"claude-code": "claude", "codex": "codex"}
"""What is run in the image of which agent."""

BUILD_SECONDS = 1800
"""How long images may take that are in no cache (it took six minutes on two processors that had other work)."""


@implementer(IHalfCloseableProtocol)
class Echo(Protocol):
    """Says back what it hears, after its own name, until nothing more comes."""

    def __init__(self, name: str) -> None:
        self._name = name.encode()

    def dataReceived(self, data: bytes) -> None:
        assert self.transport is not None
        self.transport.write(self._name + b" heard " + data)

    def readConnectionLost(self) -> None:
        assert self.transport is not None
        self.transport.loseConnection()

    def writeConnectionLost(self) -> None:
        """Nothing more can be said."""


class AgentImageTests(EngineCase):
    timeout = BUILD_SECONDS

    def spec(self, **changes: Any) -> ContainerSpec:
        """:returns: a container of an image, with a home."""
        image = changes.pop("image")
        home = self.mount("home", HOME, read_only=False)
        changes = {"mounts": (home,), "pids": 256, "memory_mb": 1024, "command": ("sleep", "infinity"), **changes}
        return replace(super().spec(**changes), image=image)

    async def test_agents_run_without_network_root_or_rights(self) -> None:
        for agent, program in PROGRAMS.items():
            with self.subTest(agent):
                container = await self.running(image=await agent_image(agent))
                said = await self.sh(container, f"{program} --version && id -u && ! command -v node npm")
                self.assertEqual(said.status, 0, said)
                self.assertIn(recipes().programs[agent].version, said.out)
                self.assertIn(f"\n{UID}\n", said.out)
                await self.engine.remove(container)
                (self.directory / "home").rename(self.directory / agent)

    async def test_an_agent_finds_the_usual_tools(self) -> None:
        container = await self.running(image=await agent_image("codex"))
        said = await self.sh(
            container, "for t in git rg ps socat; do command -v $t || exit; done; ls /etc/ssl/certs | wc -l"
        )
        self.assertEqual((said.status, said.err), (0, ""))
        self.assertGreater(int(said.out.split()[-1]), 100)
        self.assertEqual((await self.sh(container, "pwd; echo $HOME")).out, f"/workspace\n{HOME}\n")

    async def test_both_sockets_can_be_reached_at_once(self) -> None:
        sockets = self.mount("run", SOCKETS)
        for name in ("proxy", "mitm-proxy"):
            endpoint = UNIXServerEndpoint(reactor, str(self.directory / "run" / f"{name}.sock"), mode=0o666)
            port = await endpoint.listen(Factory.forProtocol(partial(Echo, name)))
            self.addCleanup(port.stopListening)
        home = self.mount("home2", HOME, read_only=False)
        early = self.directory / "home2" / "early"
        os.mkfifo(early)  # whoever reads it waits until all is written
        early.chmod(0o666)
        ask = "echo early | socat -t 5 - TCP:127.0.0.1:18080 | cat >$HOME/early"
        container = await self.running(
            image=await agent_image("codex"),
            mounts=(sockets, home),
            command=("sh", "-c", f"{ask}; exec sleep infinity"),
        )
        said = await self.sh(container, "echo tools | socat -t 5 STDIO UNIX-CONNECT:/run/ironcurtain/proxy.sock")
        self.assertEqual(said.out, "proxy heard tools\n")
        said = await self.sh(container, "echo model | socat -t 5 - TCP:127.0.0.1:18080; cat $HOME/early")
        self.assertEqual(said.out, "mitm-proxy heard model\nmitm-proxy heard early\n")

    async def test_nothing_bridges_inside_if_the_address_is_made_from_outside(self) -> None:
        container = await self.running(image=await agent_image("codex"), bridge=False)
        self.assertEqual((await self.sh(container, "ps -eo comm=")).out, "docker-init\nsleep\nsh\nps\n")

    async def test_an_image_tells_nothing_about_the_machine_that_built_it(self) -> None:
        for agent in PROGRAMS:
            image = await agent_image(agent)
            history = str(test_engine.call("GET", f"/images/{image}/history")[0])
            described = str(await self.engine.inspect_image(image))
            for text in (history, described):
                self.assertNotRegex(text, re.compile(r"npm|https?://|registry|downloader|\.pem|_proxy", re.IGNORECASE))
            container = await self.running(image=image)
            said = await self.sh(
                container, "ls -A /root /tmp /var/cache/apt /var/lib/apt/lists /etc/ssl/downloader.pem 2>&1"
            )
            self.assertNotRegex(said.out, r"\.npm|_logs|\.deb|pkgcache|Packages|downloader.pem\n")
            await self.engine.remove(container)
            (self.directory / "home").rename(self.directory / agent)

    async def test_an_image_that_is_there_is_not_built_again(self) -> None:
        said: list[str] = []
        for agent in PROGRAMS:
            first = await agent_image(agent)
            self.assertEqual(await agent_image(agent, said.append), first)
        self.assertEqual(said, [])
