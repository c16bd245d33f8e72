"""Nothing is approved unseen: a call that is too long for a list, from the commands as a person uses them."""

from __future__ import annotations

from tests.cli.cases import ProductCase
from tests.product import until

DONE = {"text": "All done."}
WRITE = {
    "code": "filesystem.write_file('~/notes.txt', '\\n'.join(f'row {n} of it' for n in range(2000)) + '\\nthe end')"
}


class LongCallTests(ProductCase):
    """A file of 2000 lines that an agent wants to write outside its workspace."""

    def setUp(self) -> None:
        super().setUp()
        self.process = self.product.start("start", "--backend", self.product.script(WRITE, DONE))
        assert self.process.stdin is not None
        self.process.stdin.write("write it\n")
        self.process.stdin.flush()
        until(self.process.stderr, "Type /show 1, then /approve 1")

    def refused(self, *words: str) -> str:
        """:returns: why an approval does nothing."""
        done = self.product.run("approve", "1", *words)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual([session["pending"] for session in self.product.json("sessions")], [1])
        return done.stderr

    def approved(self, *words: str) -> None:
        """An approval counts."""
        done = self.product.run("approve", "1", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        until(self.process.stdout, "All done.")
        decisions = [record["outcome"] for record in self.product.audit() if record["kind"] == "decision"]
        self.assertEqual(decisions, ["approved"])

    def test_it_is_approved_once_all_of_it_was_shown(self) -> None:
        unseen = "escalation 1 was not shown to you completely: 'ironcurtain escalations show 1' shows it"
        self.assertIn(unseen, self.refused())
        listed = self.product.run("escalations").stdout
        self.assertNotIn("row 1000", listed)
        self.assertIn("characters: see 'ironcurtain escalations show 1'", listed)
        self.assertIn(unseen, self.refused())
        (waiting,) = self.product.json("escalations")
        self.assertTrue(waiting["arguments"]["content"].endswith("the end"))
        self.assertEqual(self.product.json("escalations", "show", "1")["digest"], waiting["digest"])
        self.assertIn(unseen, self.refused("--keep"))
        shown = self.product.run("escalations", "show", "1").stdout
        for row in ("     row 0 of it", "     row 1000 of it", "     the end"):
            self.assertIn(row, shown.splitlines())
        self.approved()

    def test_its_last_line_says_how_to_approve_exactly_this(self) -> None:
        shown = self.product.on_a_terminal("escalations", "show", "1")
        self.assertIn("row 1000 of it", shown)
        self.assertIn("was not shown to you completely", self.refused())  # who knows how far it was read in the pager
        self.assertIn("other arguments", self.refused("--digest", "0" * 64))
        command = shown.rstrip().splitlines()[-1].removeprefix("to approve exactly this: ironcurtain approve 1 ")
        self.approved(*command.split())

    def test_all_are_denied_in_one_session(self) -> None:
        self.assertEqual(self.product.run("deny", "all", "--session", "99").returncode, 69)
        self.assertEqual(self.product.run("deny", "1", "--session", "1").returncode, 64)
        done = self.product.run("deny", "all", "--session", "1")
        self.assertEqual((done.returncode, done.stdout), (0, "Denied: 1.\n"), done.stderr)
        self.assertEqual(self.product.run("deny", "all").stdout, "No call waits for a decision.\n")
        until(self.process.stdout, "All done.")
