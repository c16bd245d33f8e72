"""What implements a session's sandboxes, as people are told."""

from __future__ import annotations

from ironcurtain.sandbox import promises
from ironcurtain.sandbox.spec import Kind
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
