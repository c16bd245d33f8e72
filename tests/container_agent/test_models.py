"""Which models an agent in a container can reach: those that its adapter names, and none if it names none."""

from __future__ import annotations

import base64
import socket
from typing import Any

from twisted.internet.threads import deferToThread

from ironcurtain.errors import ConfigurationError
from ironcurtain.session import events
from ironcurtain.session.session import Session
from tests.container_agent.worlds import ContainerTestCase


class WithoutModelsTests(ContainerTestCase):
    """An agent that needs no model, such as a shell."""

    def setUp(self) -> None:
        super().setUp()
        self.environ.pop("ANTHROPIC_API_KEY")
        self.world = self.another()
        self.world.adapter.providers = ()
        self.world.adapter.environment = lambda facts: {"KEYS": str(dict(facts.fake_keys))}  # type: ignore[method-assign]

    async def test_it_works_and_is_told_that_nothing_is_reached(self) -> None:
        session = await self.start()
        self.assertEqual(await self.say(session, "echo $KEYS"), "{}\n")
        told = await self.say(session, "cat /etc/ironcurtain/told.md")
        self.assertIn("There is no network. Downloads", told)
        self.assertNotIn("model", told)

    async def test_every_request_is_refused(self) -> None:
        session = await self.start()
        for host in ("api.anthropic.com", "api.openai.com", "example.com"):
            answer = await deferToThread(self._connect, session, host)
            self.assertTrue(answer.startswith(b"HTTP/1.1 403 "), answer)
        refused = self.seen(session, events.RequestRefused)
        self.assertEqual([event.host for event in refused], ["api.anthropic.com", "api.openai.com", "example.com"])

    def _connect(self, session: Session, host: str) -> bytes:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(self.home.session_run(session.id).mitm_socket))
            client.sendall(f"CONNECT {host}:443 HTTP/1.1\r\nHost: {host}:443\r\n\r\n".encode())
            return client.recv(4096)


class KeyTests(ContainerTestCase):
    async def test_the_fake_key_is_written_nowhere(self) -> None:
        session = await self.start()
        said = await self.say(
            session, "echo key: $AGENT_KEY", "echo $AGENT_KEY >&2", "printf %s x$AGENT_KEY | base64 -w 0 >&2"
        )
        self.assertEqual(said, "key: [redacted]\n")
        [key] = self.key_of(session)
        encoded = base64.b64encode(b"x" + key.encode()).decode()[12:-4]
        await self.world.manager.close(session, "enough")
        files = [path for path in session.paths.directory.iterdir() if path.is_file()]
        self.assertIn(session.paths.log, files)
        for path in files:
            for form in (key, encoded):
                self.assertNotIn(form, path.read_text(), path)
        self.assertEqual(self.world.services.redactor.live(key), key, "it ends with the session")

    def key_of(self, session: Session) -> list[str]:
        """:returns: the fake keys of a session."""
        agent: Any = session._agent
        return list(agent._facts.fake_keys.values())

    async def test_a_provider_of_which_nothing_is_known(self) -> None:
        self.world.adapter.providers = ("nosuch",)
        error = await self.fails(self.start())
        self.assertIsInstance(error, ConfigurationError)
        self.assertIn("has no key for its model: set its source here", str(error))
