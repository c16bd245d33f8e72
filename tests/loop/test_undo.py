"""Iterations are undone: the installed product."""

from __future__ import annotations

from ironcurtain.project.snapshot import Snapshots
from tests.loop.test_product import NTH, LoopCase

WORK = f"echo {NTH} >> made.txt; echo {NTH} > only-{NTH}.txt"


class IterationUndoTests(LoopCase):
    def names(self) -> list[str]:
        return sorted(path.name for path in self.product.project.iterdir() if path != self.prompt)

    def test_each_iteration_has_a_snapshot_and_can_be_taken_back(self) -> None:
        self.loop("-n", "3", script=WORK, status=3)
        heads = Snapshots(self.session() / "snapshots").heads()
        self.assertEqual(
            [(head.turn, str(head.kind)) for head in heads], [*((n, "turn") for n in (1, 2, 3)), (3, "end")]
        )
        self.assertEqual([record["turn"] for record in self.records("snapshot")], [1, 2, 3])
        shown = self.product.run("undo", "--dry-run")
        self.assertIn("as before iteration 3.", shown.stderr)
        done = self.product.run("undo", "2", "--yes")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("as before iteration 2.", done.stderr)
        self.assertEqual(self.names(), ["made.txt", "only-1.txt"])
        self.assertEqual((self.product.project / "made.txt").read_text(), "1\n")
        missing = self.product.run("undo", "9", "--yes")
        self.assertIn("no snapshot from before iteration 9; there are snapshots before iterations", missing.stderr)

    def test_a_resumed_loop_goes_on_counting(self) -> None:
        self.loop("-n", "1", script=WORK, status=3)
        self.loop("--resume", "-n", "2", status=3)
        done = self.product.run("undo", "2", "--yes")
        self.assertEqual((done.returncode, self.names()), (0, ["made.txt", "only-1.txt"]), done.stderr)
        self.assertEqual(self.product.run("undo", "1", "--yes").returncode, 0)
        self.assertEqual(self.names(), [])
