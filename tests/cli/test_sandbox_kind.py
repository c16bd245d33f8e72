"""What implements a session's sandboxes, as people are told."""

from __future__ import annotations

import json

from ironcurtain.sandbox import promises
from ironcurtain.sandbox.spec import Kind, Sandbox
from tests.cli.cases import ProductCase
from tests.machine import demand_sandbox
from tests.product import until

DONE = {"text": "All done."}


class SandboxKindTests(ProductCase):
    def test_the_kind_of_sandbox_is_named_where_sessions_are_shown(self) -> None:
        demand_sandbox()
        process = self.product.start("start", "--backend", self.product.script(DONE))
        assert process.stdin is not None
        process.stdin.write("do it\n")
        process.stdin.flush()
        until(process.stdout, "All done.")
        (kind,) = {record["sandbox"] for record in self.product.audit() if record["kind"] == "policy"}
        (listed,) = self.product.json("sessions")
        self.assertEqual(listed["sandbox"], kind)
        heading, row, *_ = self.product.run("sessions").stdout.splitlines()
        self.assertEqual(row[heading.index("SANDBOX") :].split()[0], kind)
        _, said = process.communicate("/quit\n")
        self.assertIn(f"sandboxes are made with {promises.NAMES[Kind(kind)]}", said)

    def test_what_landlock_does_not_have_is_told_before_a_server_needs_it(self) -> None:
        demand_sandbox(Sandbox(kind=Kind.LANDLOCK))
        self.product.environ["IRONCURTAIN_SANDBOX_KIND"] = "landlock"
        self.product.home.mkdir(mode=0o700)
        servers = {"pages": {"command": "sleep", "args": ["600", "# @playwright/mcp"]}, "plain": {"command": "true"}}
        (self.product.home / "mcp-servers.json").write_text(json.dumps({"mcpServers": servers}))
        said = self.product.run("start", "--backend", self.product.script(DONE), "do it").stderr
        self.assertIn("they do not have /dev/shm, /proc or inotify", said)
        self.assertIn("MCP server pages: it seems to start a browser, which needs /dev/shm and /proc", said)
        self.assertEqual(said.count("it seems"), 1, said)
        found = {each["what"]: each for each in self.product.json("doctor")}
        self.assertEqual(found["MCP server plain"]["state"], "ok")
        self.assertEqual(found["MCP server pages"]["state"], "hint")
        self.assertIn("needs /dev/shm and /proc", found["MCP server pages"]["detail"])
