"""A session whose container reaches both proxies by TCP, through a sidecar."""

from __future__ import annotations

import json
from collections.abc import Callable

from ironcurtain.container.image_plans import Basis
from ironcurtain.home.sections import Agents, Resources
from ironcurtain.home.settings import Settings
from ironcurtain.session import events
from ironcurtain.session.session import Session
from tests import engine
from tests.container_agent.worlds import ContainerTestCase, SmallImages, World

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


class SidecarImages(SmallImages):
    """One image that has what a sidecar needs."""

    async def ensure(self, agent: str, progress: Callable[[str], None], basis: Basis) -> str:
        """:returns: the image."""
        return engine.image("python3", "socat")


class SidecarWorld(World):
    images_class = SidecarImages


class SidecarTests(ContainerTestCase):
    settings = Settings(resources=Resources(memory_mb=256, pids=64), agents=Agents(sockets="tcp"))
    world_class = SidecarWorld

    async def test_both_proxies_answer_and_a_lost_sidecar_is_replaced(self) -> None:
        session = await self.start()
        self.assertIn("through a sidecar", " ".join(notice.text for notice in self.seen(session, events.Notice)))
        self.assertEqual(len(self.containers()), 2)
        await self.ask_both(session)
        [sidecar] = [each for each in self.containers() if "ironcurtain.role" in each["Labels"]]
        engine.call("POST", f"/containers/{sidecar['Id']}/kill")
        self.assertIn("sidecar", (await self.until(session, events.ContainerEnded)).reason)
        await self.ask_both(session)
        await session.close()
        self.assertEqual(self.containers(), [])

    async def ask_both(self, session: Session) -> None:
        """Ask both proxies from inside, where there is no network."""
        said = await self.say(
            session,
            "grep -v lo: /proc/net/dev | grep : ; cat /proc/net/route /proc/net/ipv6_route | grep -v 'Iface\\|lo$'",
            "ask() { printf '%s\\r\\n\\r\\n' \"$2\" | socat -t9 - UNIX:/run/ironcurtain/$1.sock; }",
            "ask mitm-proxy 'CONNECT 1.1.1.1:443 HTTP/1.1' | head -n 1",
            f"ask proxy '{json.dumps(INITIALIZE)}' | head -c 60",
        )
        self.assertEqual(said.splitlines()[0].split()[:2], ["HTTP/1.1", "200"])
        self.assertIn('"jsonrpc"', said)
