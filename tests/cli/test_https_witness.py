"""A witness on another machine, as a person uses it: a log that is written anew as a whole shows."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from ironcurtain.audit.log import AuditLog
from ironcurtain.audit.signing import SigningKey
from ironcurtain.secrets.redaction import Redactor
from tests.audit.doubles import at_once, scratch
from tests.product import LIMIT, Product
from tests.session.head_server import HeadServer


class HttpsWitnessProductTests(TestCase):
    timeout = 4 * LIMIT

    def setUp(self) -> None:
        self.product = Product()
        self.addCleanup(lambda: self.assertEqual(self.product.close(), []))
        self.server = HeadServer(scratch(self))
        self.addCleanup(self.server.stop)
        self.key = self.product.person / "key"
        self.key.write_text("a-bearer-token\n")
        self.key.chmod(0o600)
        self.product.home.mkdir(mode=0o700)
        (self.product.home / "config.toml").write_text(
            f'[audit]\nwitness = ["{self.server.url}"]\nwitness_key_file = "{self.key}"\n'
            f'witness_ca_file = "{self.server.ca_file}"\n'
        )

    def run_product(self, *words: str) -> Deferred[subprocess.CompletedProcess[str]]:
        """Run a command while the server serves."""
        return deferToThread(self.product.run, *words)

    async def work(self) -> subprocess.CompletedProcess[str]:
        """Let a session run."""
        done = await self.run_product("start", "--backend", self.product.script({"text": "Four."}), "2 + 2?")
        self.assertEqual((done.returncode, done.stdout), (0, "Four.\n"), done.stderr)
        return done

    def downloaded(self) -> Path:
        """:returns: a file with the heads that the server has."""
        path = self.product.person / "downloaded"
        path.write_bytes(b"".join(body + b"\n" for body in self.server.bodies))
        return path

    async def test_a_log_that_was_written_anew_shows_against_the_heads(self) -> None:
        await self.work()
        self.assertEqual({given for _, _, given in self.server.requests}, {"Bearer a-bearer-token"})
        heads = str(self.downloaded())
        verified = await self.run_product("audit", "verify", "--witness", heads)
        self.assertEqual((verified.returncode, verified.stdout.splitlines()[-1]), (0, "Intact."), verified.stderr)
        self.assertIn("The witness has the same head", verified.stdout)
        (log,) = self.product.home.glob("sessions/*/audit.jsonl")
        forged = AuditLog(
            self.product.person / "forged", log.parent.name, Redactor(), Clock(), lambda: 1.8e9, at_once,
            SigningKey.load(self.product.home / "audit"),
        )  # fmt: skip
        for number in range(len(log.read_bytes().splitlines())):
            forged.append("note", number=number)
        forged.append("end", reason="done")
        await forged.close()
        os.replace(forged.path, log)
        self.assertIn("session.json has another digest", (await self.run_product("audit", "verify")).stdout)
        found = await self.run_product("audit", "verify", "--witness", heads)
        self.assertEqual((found.returncode, found.stdout.splitlines()[-1]), (1, "NOT intact."))
        self.assertIn("of which the witness has another digest", found.stdout)

    async def test_heads_that_it_lacks_come_with_the_next_session(self) -> None:
        self.server.status = 503
        told = (await self.work()).stderr
        self.assertEqual(told.count("cannot be reached (127.0.0.1 answered 503)"), 1, told)
        last = (await self.run_product("audit", "heads")).stdout.splitlines()[-1].encode()
        self.assertEqual(self.server.bodies, [])
        self.assertEqual(await self.state(), ("hint", "cannot be reached: 127.0.0.1 answered 503"))
        self.server.status = 200
        self.assertIn("sends it those of 1 session", (await self.state())[1])
        self.server.bodies.clear()
        await self.work()
        self.assertIn(last, self.server.bodies)
        self.assertEqual(await self.state(), ("ok", "gets the heads of audit logs"))

    async def state(self) -> tuple[str, str]:
        """:returns: what ``doctor`` says of the witness."""
        findings = json.loads((await self.run_product("doctor", "--json")).stdout)
        (found,) = [each for each in findings if each["what"] == f"witness {self.server.url}"]
        return found["state"], found["detail"]

    async def test_settings_are_checked(self) -> None:
        self.key.chmod(0o644)
        checked = await self.run_product("config", "check")
        self.assertEqual(checked.returncode, 78)
        self.assertIn("others can use the key in", checked.stdout)
        self.key.chmod(0o600)
        self.server.ca_file.write_text("nothing")
        checked = await self.run_product("config", "check")
        self.assertEqual((checked.returncode, "witness_ca_file" in checked.stdout), (78, True), checked.stdout)
