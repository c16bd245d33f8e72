from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from twisted.internet.defer import Deferred, gatherResults
from twisted.trial.unittest import TestCase

from ironcurtain.accounts.kept import KeptLogins
from ironcurtain.accounts.login_files import read_login
from ironcurtain.accounts.renewing import renewal_request
from ironcurtain.errors import Unavailable
from ironcurtain.home.account_sections import AccountName
from tests.accounts.samples import CANARY, CLAUDE_ACCESS, CLAUDE_REFRESH, claude_file, codex_file, google_file
from tests.accounts.stub import Child, TokenStub, stub_endpoint
from tests.mitm_proxy.waiting import the_reactor, until


class StubTestCase(TestCase):
    async def setUp(self) -> None:  # type: ignore[override]
        self.directory = Path(tempfile.mkdtemp(prefix="ic-accounts-"))
        self.addCleanup(shutil.rmtree, self.directory)
        self.stub = TokenStub(CLAUDE_REFRESH)
        self.port = await self.stub.start()
        self.addCleanup(lambda: Deferred.fromCoroutine(self.stub.stop()))
        self.ca_file = self.directory / "ca.pem"
        self.ca_file.write_bytes(self.stub.authority.pem)


class EndpointTests(StubTestCase):
    async def asked(self, kind: AccountName, data: bytes) -> tuple[int, bytes]:
        request = renewal_request(read_login(kind, "/f.json", data))
        assert request is not None
        answer: tuple[int, bytes] = await stub_endpoint(the_reactor, self.port, str(self.ca_file)).post(request)
        return answer

    async def test_each_provider_gets_its_host_path_and_form(self) -> None:
        for kind, data, host in (
            ("claude", claude_file(), "platform.claude.com"),
            ("chatgpt", codex_file(), "auth.openai.com"),
            ("google", google_file(), "oauth2.googleapis.com"),
        ):
            status, _ = await self.asked(kind, data)  # type: ignore[arg-type]
            self.assertNotEqual(status, 404)
            self.assertEqual(self.stub.requests[-1][0], host)

    async def test_answer_is_given_with_its_status(self) -> None:
        status, body = await self.asked("claude", claude_file())
        self.assertEqual((status, f"{CANARY}-a1" in body.decode()), (200, True))
        status, body = await self.asked("claude", claude_file())
        self.assertEqual((status, "invalid_grant" in body.decode()), (400, True))

    async def test_server_without_a_trusted_certificate_gets_nothing(self) -> None:
        self.ca_file.write_bytes(type(self.stub.authority).make("another").pem)
        with self.assertRaises(Unavailable) as caught:
            await self.asked("claude", claude_file())
        self.assertIn("certificate of platform.claude.com is not valid", str(caught.exception))
        self.assertEqual(self.stub.requests, [])

    async def test_server_that_is_away_is_reported_without_the_token(self) -> None:
        self.port = 1
        with self.assertRaises(Unavailable) as caught:
            await self.asked("claude", claude_file())
        self.assertIn("platform.claude.com cannot be reached", str(caught.exception))
        self.assertNotIn(CANARY, str(caught.exception))


class ProcessTests(StubTestCase):
    async def setUp(self) -> None:  # type: ignore[override]
        await super().setUp()
        self.file = KeptLogins(self.directory / "accounts").of("claude")
        self.file.lock()
        self.file.write(read_login("claude", str(self.file.path), claude_file()))

    def child(self, then: str = "") -> Child:
        child = Child(self.file.path.parent, self.port, self.ca_file, then)
        self.addCleanup(lambda: child.ended)
        return child

    async def test_two_processes_renew_once_and_have_the_same_token(self) -> None:
        self.stub.holding = True
        children = [self.child(), self.child()]
        await until(lambda: self.stub.held and all("ready" in child.said for child in children))
        self.stub.release()
        await gatherResults([child.ended for child in children])
        self.assertEqual([child.said.split() for child in children], [["ready", "renewed", f"{CANARY}-a1"]] * 2)
        self.assertEqual((len(self.stub.requests), self.stub.reused), (1, 0))

    async def test_process_killed_during_the_request_leaves_the_login_and_frees_the_lock(self) -> None:
        self.stub.holding = True
        child = self.child()
        await until(lambda: self.stub.held)
        child.process.signalProcess("KILL")
        await child.ended
        self.assertEqual(self.file.read().access.reveal(), CLAUDE_ACCESS)
        # What the provider has given to nobody is lost; that is said by the next renewal.
        self.stub.holding = False
        again = self.child()
        await again.ended
        self.assertIn("run ironcurtain login claude", again.said)
        self.assertNotIn(CANARY, again.said)

    async def test_process_killed_after_the_answer_has_the_next_refresh_token_on_disk(self) -> None:
        child = self.child("die")
        await child.ended
        self.assertNotIn("renewed", child.said)
        stored = self.file.read()
        assert stored.refresh is not None
        self.assertEqual(stored.refresh.reveal(), self.stub.valid)
        self.assertEqual(sorted(path.name for path in self.file.path.parent.iterdir()), ["claude.json", "claude.lock"])

    async def test_process_that_is_ended_during_the_request_keeps_the_answer(self) -> None:
        self.stub.holding = True
        child = self.child()
        await until(lambda: self.stub.held)
        child.process.signalProcess("TERM")
        self.stub.release()
        await child.ended
        stored = self.file.read()
        assert stored.refresh is not None
        self.assertEqual(stored.refresh.reveal(), self.stub.valid)
