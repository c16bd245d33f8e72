"""``ironcurtain mcp``, as a person uses it."""

from __future__ import annotations

import json
from urllib.parse import parse_qs, urlsplit

from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from tests.mcp_proxy.oauth_server import CANARY, OAuthServer
from tests.product import LIMIT, Product, until


class LoginTests(TestCase):
    """A server that wants a login."""

    timeout = 300

    def setUp(self) -> None:
        self.far, self.product = OAuthServer(), Product()
        self.addCleanup(self.far.port.stopListening)
        self.addCleanup(lambda: self.assertEqual(self.product.close(), []))
        self.product.home.mkdir(mode=0o700)
        servers = {"far": {"url": self.far.url}, "near": {"command": "true"}}
        (self.product.home / "mcp-servers.json").write_text(json.dumps({"mcpServers": servers}))

    async def test_the_pasted_address_logs_in(self) -> None:
        process = self.product.start("mcp", "login", "far")
        begun = await deferToThread(until, process.stdout, "state=")
        address = next(line for line in begun.splitlines() if "state=" in line)
        pasted = self.far.browse(parse_qs(urlsplit(address).query))
        out, err = await deferToThread(process.communicate, f"{pasted}\n", LIMIT)
        self.assertEqual((process.returncode, err), (0, ""))
        self.assertIn("Logged in at far.", out)
        self.assertNotIn(CANARY, begun + out)
        kept = self.product.home / "oauth" / "far.json"
        self.assertIn(f"{CANARY}-access-1", kept.read_text())
        said = await deferToThread(self.product.run, "doctor", "--json")  # whether all is well is no matter here
        doctor = {finding["what"]: finding["detail"] for finding in json.loads(said.stdout)}
        self.assertIn("with a login", doctor["MCP server far"])
        self.assertIn("Logged out of far.", (await deferToThread(self.product.run, "mcp", "logout", "far")).stdout)
        self.assertFalse(kept.exists())

    def test_servers_without_a_login(self) -> None:
        for name, status, words in (("gone", 69, "there is no MCP server 'gone'"), ("near", 64, "runs as a command")):
            done = self.product.run("mcp", "login", name)
            self.assertEqual((done.returncode, done.stdout), (status, ""))
            self.assertIn(words, done.stderr)
