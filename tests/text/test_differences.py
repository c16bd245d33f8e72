"""Unified diffs of texts."""

from __future__ import annotations

import subprocess
import tempfile
import time
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.text import differences

TEXTS = st.text(alphabet="ab\n", max_size=80)


class DifferenceTests(SynchronousTestCase):
    @given(TEXTS, TEXTS)
    def test_the_blocks_turn_the_one_text_into_the_other(self, old: str, new: str) -> None:
        before, after = differences.lines_of(old), differences.lines_of(new)
        made: list[str] = []
        at = 0
        for a, b, c, d in differences.blocks(before, after):
            made += before[at:a] + after[c:d]
            at = b
        self.assertEqual(made + before[at:], after)

    def test_patch_understands_the_diff(self) -> None:
        old = "".join(f"line {n}\n" for n in range(60)) + "end"
        new = old.replace("line 3\n", "").replace("line 30\n", "line 30\nmore\n").replace("end", "END\n")
        with tempfile.TemporaryDirectory() as directory:
            target = Path(directory, "x.txt")
            target.write_text(old)
            diff = differences.unified(old, new, "/x.txt")
            subprocess.run(["patch", "-p1", "-s"], input=diff.encode(), cwd=directory, check=True)
            self.assertEqual(target.read_text(), new)

    def test_changes_far_apart_in_a_long_text_give_small_hunks(self) -> None:
        old = "".join(f"{n}\n" for n in range(100_000))
        new = old.replace("\n10\n", "\nten\n").replace("\n99000\n", "\n")
        lines = differences.unified(old, new, "x").splitlines()
        self.assertEqual([line for line in lines[2:] if line[0] in "+-"], ["-10", "+ten", "-99000"])

    def test_texts_made_to_be_slow_are_not(self) -> None:
        old = "".join(f"a{n}\nsame\n" for n in range(20_000))
        new = "".join(f"same\nb{n}\n" for n in range(20_000))
        started = time.process_time()
        differences.unified(old, new, "x")
        self.assertLess(time.process_time() - started, 5.0)
