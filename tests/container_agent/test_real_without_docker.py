"""Real agents without Docker, as a person runs them: the installed commands, and only the model played by a server."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from ironcurtain.process.accounts import Account
from ironcurtain.providers.registry import family
from ironcurtain.sandbox import bubblewrap
from tests.container_agent.test_real_agents import CLAUDE, CODEX, PATIENCE, Agent, call, text
from tests.container_agent.worlds import UID
from tests.model_stub.process import StubProcess
from tests.product import Product

PROGRAMS = Path(os.environ.get("IRONCURTAIN_TEST_NODE", "."), "node_modules", ".bin")


class TurnTests(SynchronousTestCase):
    """A conversation with a tool of the MCP proxy, and with a project that asks for a sandbox of the agent's own."""

    def test_claude_code(self) -> None:
        self.converse(CLAUDE, "claude")

    def test_codex(self) -> None:
        self.converse(CODEX, "codex")

    def converse(self, agent: Agent, program: str) -> None:
        if (reason := bubblewrap.available(Account(UID, UID).switched)) is not None:
            raise SkipTest(reason)
        if shutil.which(program, path=str(PROGRAMS)) is None:
            raise SkipTest(f"{program} is not installed (IRONCURTAIN_TEST_NODE names no such directory)")
        product = Product()
        self.addCleanup(lambda: self.assertEqual(product.close(), []))
        product.person.chmod(0o755)
        product.environ |= {
            agent.variable: agent.canary,
            "PATH": f"{PROGRAMS.resolve()}:{product.environ['PATH']}",
            "DOCKER_HOST": f"unix://{product.person}/nothing.sock",
        }
        replies = (
            call("filesystem__write_file", path="/workspace/hello.txt", content="hello\n"),
            text("All ", "done."),
            text("Two."),
        )
        stub = StubProcess(*replies, keys={family(agent.provider): agent.canary})
        self.addCleanup(stub.close)
        product.home.mkdir(mode=0o700)
        (product.home / "config.toml").write_text(
            f'[providers.{agent.provider}]\nbase_url = "{stub.url}"\nca_file = "{stub.ca}"\n'
        )
        settings = product.project / ".claude" / "settings.json"
        settings.parent.mkdir()
        settings.write_text('{"sandbox": {"enabled": true}}')
        product.project.chmod(0o777)
        process = product.start("start", "--agent", agent.id, "--workspace", ".")
        out, err = process.communicate("Do it.\nAnd then?\n/quit\n", timeout=PATIENCE)
        self.assertEqual((process.returncode, out), (0, "All done.\nTwo.\n"), err)
        self.assertIn("the agent runs in a sandbox of bubblewrap", err)
        self.assertEqual((product.project / "hello.txt").read_text(), "hello\n")
        allowed = [record for record in product.audit() if record.get("decision") == "allow"]
        self.assertEqual(len([record for record in allowed if record["kind"] == "model-request"]), 3)
