"""Heads reach a server by HTTPS, and nobody else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.testing import MemoryReactorClock
from twisted.trial.unittest import SynchronousTestCase, TestCase

from ironcurtain.audit.signing import SignedHead
from ironcurtain.audit.witness_lines import head_line
from ironcurtain.errors import ConfigurationError, Unavailable
from ironcurtain.home.sections import Audit
from ironcurtain.session.https_witness import REQUEST_SECONDS, HttpsWitness, https_witnesses
from tests.audit.doubles import scratch
from tests.http.direct import DIRECT
from tests.session.head_server import HeadServer, reactor

LINE = head_line(SignedHead("session-1", 7, "ab", "now", "key", "sig"))


class HttpsWitnessTests(TestCase):
    def setUp(self) -> None:
        self.directory = scratch(self)
        self.server = HeadServer(self.directory)
        self.addCleanup(self.server.stop)
        self.key = self.directory / "key"
        self.key.write_text("a-bearer-token\n")
        self.key.chmod(0o600)

    def witness(self, key: Path | None = None, ca_file: str = "") -> HttpsWitness:
        ca_file = ca_file or str(self.server.ca_file)
        return HttpsWitness(reactor, self.server.url, str(key or ""), ca_file, DIRECT)

    async def refused(self, witness: HttpsWitness) -> str:
        """:returns: why a head was not taken."""
        written: Deferred[Any] = Deferred.fromCoroutine(witness.write(LINE))
        error = await self.assertFailure(written, Unavailable)
        self.assertNotIn("a-bearer-token", str(error))
        return str(error)

    async def test_a_head_is_posted_with_the_key(self) -> None:
        await self.witness(self.key).write(LINE)
        self.assertEqual(self.server.requests, [("POST", "/heads", "Bearer a-bearer-token")])
        self.assertEqual(self.server.bodies, [LINE.rstrip(b"\n")])

    async def test_without_a_key_there_is_no_header(self) -> None:
        await self.witness().write(LINE)
        self.assertEqual(self.server.requests, [("POST", "/heads", "")])

    async def test_redirects_are_not_followed(self) -> None:
        for status in (301, 302, 307, 308):
            self.server.status, self.server.requests = status, []
            self.assertIn(f"answered {status}, a redirect, which is not followed", await self.refused(self.witness()))
            self.assertEqual([path for _, path, _ in self.server.requests], ["/heads"])

    async def test_a_refusal_is_said(self) -> None:
        self.server.status = 503
        self.assertEqual(await self.refused(self.witness()), "127.0.0.1 answered 503")

    async def test_an_unknown_authority_gets_nothing(self) -> None:
        other = HeadServer(scratch(self))
        self.addCleanup(other.stop)
        why = await self.refused(self.witness(self.key, str(other.ca_file)))
        self.assertIn("name the file of its certificate authority as audit.witness_ca_file", why)
        self.assertEqual(self.server.requests, [])

    async def test_a_key_that_others_can_read_is_not_sent(self) -> None:
        self.key.chmod(0o644)
        self.assertIn("is open to others: chmod 600 it", await self.refused(self.witness(self.key)))
        self.key.chmod(0o600)
        self.key.write_text("two words")
        self.assertIn("has no key", await self.refused(self.witness(self.key)))
        self.assertEqual(self.server.requests, [])

    async def test_it_is_checked_without_a_head(self) -> None:
        for status in (200, 405):
            self.server.status = status
            await self.witness(self.key).check()
        for status in (302, 401, 403, 404, 500):
            self.server.status = status
            await self.assertFailure(Deferred.fromCoroutine(self.witness().check()), Unavailable)
        self.assertEqual({method for method, _, _ in self.server.requests}, {"HEAD"})

    def test_certificates_that_cannot_be_used_are_said_at_once(self) -> None:
        with self.assertRaises(ConfigurationError):
            https_witnesses(reactor, Audit(witness=(self.server.url,), witness_ca_file=str(self.key)), DIRECT)


class SilentServerTests(SynchronousTestCase):
    def test_one_that_does_not_answer_is_given_up(self) -> None:
        clock = MemoryReactorClock()
        written = Deferred.fromCoroutine(HttpsWitness(clock, "https://127.0.0.1/heads", "", "", DIRECT).write(LINE))
        self.assertNoResult(written)
        clock.advance(REQUEST_SECONDS)
        self.assertIn("no answer in time", str(self.failureResultOf(written, Unavailable).value))
        self.assertEqual(clock.getDelayedCalls(), [])


class SettingTests(SynchronousTestCase):
    def test_addresses(self) -> None:
        Audit(witness=("https://witness.example/heads", "syslog"))
        for bad in (
            "http://witness.example",
            "https://me:pw@witness.example",
            "https://witness.example/?q=1",
            "https:",
        ):
            with self.assertRaisesRegex(ValueError, "is no witness"):
                Audit(witness=(bad,))
        with self.assertRaisesRegex(ValueError, "one https:// witness at most"):
            Audit(witness=("https://a.example", "https://b.example"))
