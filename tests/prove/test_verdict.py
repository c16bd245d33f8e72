"""The sentence at the end, and its status."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.prove.outside import FILLING
from ironcurtain.prove.report import Attempt, Report
from ironcurtain.prove.verdict import Untested, Verdict

HELD = Report("a sandbox", (Attempt("files", "read", "failed"),), complete=True)
MASKS = Untested("masks", "no session is started")


class VerdictTests(SynchronousTestCase):
    def test_sentence_names_what_was_not_tested_and_what_is_not_limited(self) -> None:
        tried = (Attempt("limits", "start", "not limited"),)
        unlimited = Report(
            "another", tried, complete=True, unlimited={"start": "here it does not"}, lacks=["the memory"]
        )
        verdict = Verdict((HELD, unlimited), (MASKS, Untested("MCP server tickets", "it is reached by HTTP")))
        self.assertEqual(
            verdict.sentence,
            "2 places were tested; all held. Not tested: masks (no session is started), MCP server tickets "
            "(it is reached by HTTP); not limited here: the memory.",
        )
        self.assertEqual(verdict.status, 0)

    def test_nothing_tested_is_unknown(self) -> None:
        verdict = Verdict((), (MASKS,))
        self.assertEqual(verdict.status, 69)
        self.assertIn("Nothing was tested, so nothing is known. Not tested: masks", verdict.sentence)

    def test_report_without_attempts_does_not_hold(self) -> None:
        verdict = Verdict((Report("a sandbox", (), complete=True),), (MASKS,))
        self.assertEqual(verdict.status, 1)
        self.assertIn("1 did not hold", verdict.sentence)
        self.assertIn("no attempt was made", str(list(verdict.reports[0].lines())))

    def test_test_that_could_not_run_gives_69_unless_something_got_out(self) -> None:
        failed = Untested("MCP server git", "there is no program 'git'", could_not=True)
        out = Report("another", (Attempt("files", "read", "succeeded"),), complete=True)
        self.assertEqual(Verdict((HELD,), (failed,)).status, 69)
        self.assertEqual(Verdict((HELD, out), (failed,)).status, 1)

    def test_attempt_that_was_not_made_is_named(self) -> None:
        report = Report("a sandbox", (Attempt("limits", FILLING, "not tried"), *HELD.attempts), complete=True)
        verdict = Verdict((report,), ())
        self.assertIn(f"the attempt to {FILLING} (this machine has too little free memory)", verdict.sentence)
        self.assertEqual(verdict.status, 0)

    def test_json_names_the_same(self) -> None:
        found = Verdict((HELD,), (MASKS,)).as_json()
        self.assertEqual(found[0]["not_tested"], [{"name": "masks", "reason": "no session is started"}])
        self.assertEqual((found[0]["held"], found[0]["not_limited"], found[0]["subject"]), (True, (), "a sandbox"))
