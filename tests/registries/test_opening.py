from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.trial.unittest import TestCase

from ironcurtain.audit.log import AuditLog
from ironcurtain.errors import ConfigurationError
from ironcurtain.home.registry_sections import REGISTRIES, Registries
from ironcurtain.home.sections import KeySettings
from ironcurtain.http.head import RequestHead
from ironcurtain.network.dialling import Dialer
from ironcurtain.network.judge import AccountUse, NetworkJudge
from ironcurtain.network.responder import LocalResponse
from ironcurtain.providers.provider import RequestRefusal
from ironcurtain.registries.npm import HOSTS
from ironcurtain.registries.offering import JudgedResponder
from ironcurtain.registries.opening import OpenRegistries, RegistrySurroundings
from ironcurtain.registries.recording import PackageTraffic
from ironcurtain.secrets.redaction import Redactor, Secret
from tests.audit.doubles import at_once, scratch
from tests.http.direct import DIRECT
from tests.network.names import Names
from tests.registries.packuments import encoded, packument, tarball
from tests.registries.stub import LyingRegistry, response
from tests.registries.upstream import OLD

PUBLIC = (HOSTS[0], 443)
NO = RequestRefusal(403, "denied-by-person", "a person refused it")


class Judge:
    """Answers as a test says. See :class:`~ironcurtain.network.judge.NetworkJudge`."""

    def __init__(self) -> None:
        self.answer: RequestRefusal | None = NO
        self.asked: list[tuple[str, int]] = []
        self.requests: dict[tuple[str, str], RequestRefusal] = {}
        self.offers: Mapping[tuple[str, int], str] = {}

    def judging(self, offers: Mapping[tuple[str, int], str]) -> NetworkJudge:
        self.offers = offers
        return self

    async def connect(self, host: str, port: int) -> RequestRefusal | None:
        self.asked.append((host, port))
        return self.answer

    async def request(self, method: str, url: str, account: AccountUse | None = None) -> RequestRefusal | None:
        return self.requests.get((method, url), self.answer)

    def may_be_private(self, host: str, port: int) -> bool:
        return False

    def hold(self, host: str, port: int, end: Callable[[], None]) -> Callable[[], None]:
        raise AssertionError(host)


class OpeningTests(TestCase):
    def open(self, **settings: Any) -> OpenRegistries:
        """:returns: the registries of settings; names resolve to a private address."""
        self.judge, self.traffic, self.redactor = Judge(), list[PackageTraffic](), Redactor()
        clock: Any = reactor
        audit = AuditLog(scratch(self) / "audit.jsonl", "s1", self.redactor, clock, clock.seconds, at_once)
        self.addCleanup(lambda: Deferred.fromCoroutine(audit.close()))

        async def key(where: str, source: KeySettings) -> Secret:
            if not source.env:
                raise ConfigurationError("config.toml", "no key", field=where)
            return Secret("tok-12345", where)

        self.names = Names("10.0.0.1")
        around = RegistrySurroundings(
            reactor,
            Dialer(clock, self.names, DIRECT),
            audit,
            self.redactor,
            key,
            lambda: datetime.now(UTC),
            self.traffic.append,
        )
        opened = OpenRegistries(msgspec.convert(settings, Registries), around, self.judge.judging)
        self.addCleanup(lambda: Deferred.fromCoroutine(opened.stop()))
        return opened

    async def get(self, opened: OpenRegistries, path: str) -> bytes | RequestRefusal:
        answer = await opened.responders[PUBLIC].respond(RequestHead("GET", path, path, "", ()))
        if isinstance(answer, LocalResponse):
            return b"".join([piece async for piece in answer.body])
        return answer

    async def test_a_mirror_is_asked_with_its_key_for_the_public_host(self) -> None:
        mirror = LyingRegistry()
        self.addCleanup(lambda: Deferred.fromCoroutine(mirror.stop()))
        document = packument("x", {"1.0.0": OLD})
        document["versions"]["1.0.0"]["dist"]["tarball"] = f"{mirror.url}/x/-/x-1.0.0.tgz"
        mirror.answers |= {"/x": response(encoded(document)), "/x/-/x-1.0.0.tgz": response(tarball("x", "1.0.0"))}
        opened = self.open(npm={"url": mirror.url, "key": {"env": "TOKEN"}})
        await opened.start()
        self.assertEqual(await self.get(opened, "/x/-/x-1.0.0.tgz"), tarball("x", "1.0.0"))
        self.assertEqual(sum("Authorization: Bearer tok-12345" in head for head in mirror.heads), 2)
        self.assertNotIn("tok-12345", self.redactor.text("tok-12345"))
        self.assertEqual((len(self.traffic), self.judge.asked), (1, []))

    async def test_a_missing_key_ends_the_start(self) -> None:
        opened = self.open(pypi={"url": "https://pip.example", "key": {"file": "/nowhere"}})
        with self.assertRaises(ConfigurationError) as caught:
            await opened.start()
        self.assertEqual(caught.exception.field, "registries.pypi.key")

    async def test_an_open_registry_is_not_asked_about(self) -> None:
        opened = self.open(npm=True)
        refusal = await self.get(opened, "/x")
        assert isinstance(refusal, RequestRefusal)
        self.assertIn("is not on the public internet: nothing was sent", refusal.reason)
        self.assertIn("as url or private in [registries.npm]", refusal.reason)
        self.assertEqual(self.judge.asked, [])

    async def test_public_registry_may_have_a_private_address_if_it_is_named(self) -> None:
        opened = self.open(npm={"private": ["Registry.npmjs.org."]})
        self.names.addresses = ("127.0.0.1",)  # where nothing listens at its port
        refusal = await self.get(opened, "/x")
        assert isinstance(refusal, RequestRefusal)
        self.assertEqual(refusal.code, "registry-failed")
        self.assertNotIn("not on the public internet", refusal.reason)

    async def test_a_closed_registry_opens_by_an_approved_connection(self) -> None:
        opened = self.open(min_age="3d")
        self.assertEqual(await self.get(opened, "/x"), NO)
        self.assertEqual(self.names.asked, [])
        self.judge.answer = None
        refusal = await self.get(opened, "/-/whoami")
        assert isinstance(refusal, RequestRefusal)
        self.assertEqual(refusal.code, "not-for-installing")
        self.assertEqual(self.judge.asked, [PUBLIC, PUBLIC])
        words = "the npm registry, read-only, for versions that are at least 3d old"
        self.assertEqual(self.judge.offers[PUBLIC], words)

    async def test_all_registries_are_offered_or_open(self) -> None:
        opened = self.open(npm=True, go=True)
        offered = {place for place, each in opened.responders.items() if isinstance(each, JudgedResponder)}
        self.assertEqual({place for place in offered if place in self.judge.offers}, set(self.judge.offers))
        self.assertNotIn(PUBLIC, offered)
        self.assertIn(PUBLIC[0], opened.hosts)
        self.assertEqual(offered & {place for place in opened.responders if place[0] in opened.hosts}, set())
        named = {words.split()[1] for words in self.judge.offers.values()}
        self.assertEqual(named, set(REGISTRIES) - {"npm", "go"})

    async def test_a_registry_answers_for_its_hosts_without_tls_too(self) -> None:
        for settings in ({}, {"npm": True, "pypi": True, "crates": True, "debian": True, "go": True}):
            opened = self.open(**settings)
            hosts = {host for host, _ in opened.responders}
            self.assertEqual(hosts - {host for host, port in opened.responders if port == 80}, set())
            self.judge.answer = None
            refusal = await opened.responders[PUBLIC[0], 80].respond(RequestHead("PUT", "/x", "/x", "", ()))
            assert isinstance(refusal, RequestRefusal)
            self.assertEqual(refusal.code, "registry-read-only")

    async def test_requests_to_a_closed_registry_are_judged(self) -> None:
        opened = self.open()
        self.judge.answer = None
        self.judge.requests["GET", f"https://{PUBLIC[0]}:443/denied"] = NO
        self.assertEqual(await self.get(opened, "/denied"), NO)
        self.assertEqual(self.names.asked, [])
