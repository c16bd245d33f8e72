"""Which models an agent in a container can reach: those that its adapter names, and none if it names none."""

from __future__ import annotations

import base64
from typing import Any

from ironcurtain.errors import ConfigurationError
from ironcurtain.escalation import Outcome
from ironcurtain.session import events
from ironcurtain.session.model import SessionRequest
from ironcurtain.session.session import Session
from tests.container_agent.worlds import ContainerTestCase
from tests.mitm_proxy.client import Client


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
        self.assertIn("only through the proxy that HTTP_PROXY", told)
        self.assertNotIn("model", told)

    async def test_hosts_are_asked_about_and_refusals_say_what_to_do(self) -> None:
        session = await self.start()
        client = await self._request(session, "api.anthropic.com")
        asked = await self.until(session, events.EscalationRaised)
        self.assertIn("the agent wants to connect to api.anthropic.com:443", asked.reason)
        self.assertEqual(session.escalations.pending()[0].request.arguments["party"], "the agent")
        session.escalations.decide(asked.number, Outcome.DENIED, "ada")
        status, _, body = await client.response()
        self.assertEqual(status, 403)
        self.assertTrue(body.startswith(b"IronCurtain: the connection to api.anthropic.com:443 is refused"), body)
        self.assertIn(b"a person refused it", body)
        again = await self._request(session, "api.anthropic.com")
        self.assertEqual((await again.response())[0], 403)
        refused = self.seen(session, events.RequestRefused)
        self.assertEqual([event.host for event in refused], ["api.anthropic.com"])
        self.assertEqual([each["tool"] for each in self.audit(session, "call")], ["connect"])
        self.assertEqual(self.audit(session, "model-request"), [])

    async def test_hosts_are_refused_at_once_where_nobody_can_be_asked(self) -> None:
        session = await self.world.manager.create(SessionRequest("script"), attended=lambda: False)
        for host, why in (("example.com", b"nobody is there to ask"), ("statsig.anthropic.com", b"usage statistics")):
            status, _, body = await (await self._request(session, host)).response()
            self.assertEqual(status, 404 if host.startswith("statsig") else 403)
            self.assertIn(why, body)
        self.assertEqual([event.host for event in self.seen(session, events.RequestRefused)], ["example.com"])

    async def _request(self, session: Session, host: str) -> Client:
        authority = (self.home.authority / "ca.pem").read_bytes()
        client = await Client(self.home.session_run(session.id).mitm_socket, authority).connect()
        self.addCleanup(client.close)
        await client.tunnel(f"{host}:443", host)
        client.send(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        return client


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
        agent: Any = session.agent
        return list(agent._conversation.facts.fake_keys.values())

    async def test_who_pays_is_told_and_part_of_the_description(self) -> None:
        session = await self.start()
        words = "the API key for anthropic from the environment variable ANTHROPIC_API_KEY"
        self.assertEqual(session.info.payers, (words,))
        self.assertIn(f"paid by {words}", [event.text for event in self.seen(session, events.Notice)])
        await self.world.manager.close(session, "enough")

    async def test_a_provider_of_which_nothing_is_known(self) -> None:
        self.world.adapter.providers = ("nosuch",)
        error = await self.fails(self.start())
        self.assertIsInstance(error, ConfigurationError)
        self.assertIn("has no account that pays for its model: for an API key of nosuch, set its source", str(error))
