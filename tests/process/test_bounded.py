"""Real programs that print too much, too long, or leave somebody behind; and what is kept of a stream."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.process.bounded import Bounds, Kept, Unfinished, run
from tests.audit.doubles import open_files

PATIENCE = 100.0
"""Seconds that a program may take in which it ends by itself, on a machine that has much else to do."""

QUICK = Bounds(PATIENCE, limit=1000)


class KeptTests(SynchronousTestCase):
    @given(st.lists(st.binary(max_size=30)), st.integers(0, 40))
    def test_end_of_stream_is_kept_in_any_slicing(self, slices: list[bytes], limit: int) -> None:
        kept, whole = Kept(limit), b"".join(slices)
        for piece in slices:
            kept.feed(piece)
            self.assertLessEqual(len(kept.content), limit)
        self.assertEqual(kept.content, whole[max(len(whole) - limit, 0) :])
        self.assertEqual(kept.dropped, max(len(whole) - limit, 0))


class RunTests(SynchronousTestCase):
    def shell(self, script: str, bounds: Bounds = QUICK, **more: object) -> tuple[int, bytes, bytes]:
        done = run(["/bin/sh", "-c", script], bounds, **more)  # type: ignore[arg-type]
        return done.status, done.output, done.errors

    def test_status_and_both_streams_are_returned(self) -> None:
        self.assertEqual(self.shell("echo out; echo err >&2; exit 3"), (3, b"out\n", b"err\n"))
        self.assertEqual(self.shell("kill -TERM $$")[0], -15)
        self.assertEqual(self.shell("cat", stdin=b"question")[1], b"question")
        self.assertEqual(self.shell('echo "$A"; pwd', environment={"A": "b"}, cwd="/usr")[1], b"b\n/usr\n")

    def test_flood_of_either_stream_keeps_its_end_only(self) -> None:
        for to in ("", " >&2"):
            flood = f"{{ head -c 30000000 /dev/zero; echo end; }}{to}"
            status, *streams = self.shell(f"{flood}; echo other{' >&2' if not to else ''}")
            self.assertEqual(status, 0)
            self.assertEqual(sorted(map(len, streams)), [6, 1000])
            self.assertTrue(all(stream.endswith((b"end\n", b"other\n")) for stream in streams))

    def test_output_that_has_to_be_whole_ends_the_program(self) -> None:
        with self.assertRaises(Unfinished) as caught:
            self.shell("yes", Bounds(PATIENCE, whole=True))
        self.assertEqual(caught.exception.why, "printed more than 64 KiB")
        self.assertEqual(self.shell("yes | head -c 1000", Bounds(PATIENCE, 1000, whole=True))[0], 0)

    def test_errors_without_end_do_not_count_as_output(self) -> None:
        flood = "head -c 3000000 /dev/zero >&2; echo whole"
        self.assertEqual(self.shell(flood, Bounds(PATIENCE, 1000, whole=True))[1], b"whole\n")

    def test_program_over_its_time_is_ended(self) -> None:
        for script in ("echo said; exec sleep 600", "echo said; exec sleep 600 >&- 2>&-", "echo said; exec yes >&2"):
            output = b""
            for seconds in (0.3, 3.0, 30.0):  # until it has begun in that time
                if not output:
                    with self.assertRaises(Unfinished) as caught:
                        self.shell(script, Bounds(seconds))
                    self.assertEqual(caught.exception.why, f"took longer than {seconds:.0f} s")
                    output = caught.exception.output
            self.assertEqual(output, b"said\n")

    def test_what_the_program_runs_ends_with_it(self) -> None:
        for script in (
            "sleep 600; true",
            "sleep 600 & wait",
            "(sleep 600; true) | cat",
            "trap '' TERM; sleep 600; true",
        ):
            read, write = os.pipe()
            with self.assertRaises(Unfinished):
                self.shell(script, Bounds(0.3), descriptors=(write,))
            os.close(write)
            self.assertEqual(
                select.select([read], [], [], PATIENCE)[0], [read], script
            )  # nobody else has the other end
            os.close(read)

    def test_process_left_behind_is_not_waited_for(self) -> None:
        status, output, _ = self.shell("sleep 600 & echo $!; exit 4")
        os.kill(int(output), signal.SIGKILL)
        self.assertEqual(status, 4)

    def test_last_words_are_read_however_late_somebody_looks_for_its_end(self) -> None:
        self.patch(subprocess.Popen, "poll", subprocess.Popen.wait)  # as where much else runs
        self.assertEqual(self.shell("sleep 0.3; echo last"), (0, b"last\n", b""))

    def test_output_can_go_to_a_file(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            out = Path(name, "out")
            self.assertEqual(self.shell("head -c 5000 /dev/zero; echo e >&2", out=out), (0, b"", b"e\n"))
            self.assertEqual(out.stat().st_size, 5000)

    def test_question_of_any_size_is_read(self) -> None:
        self.assertEqual(self.shell("wc -c", stdin=bytes(1_000_000))[1].split(), [b"1000000"])
        self.assertEqual(self.shell("cat")[1], b"")

    def test_nothing_stays_open(self) -> None:
        before = open_files(alone=True)
        self.shell("true")
        with self.assertRaises(OSError):
            run(["/nonexistent"], QUICK)
        with self.assertRaises(Unfinished):
            self.shell("sleep 600", Bounds(0.1))
        self.assertEqual(open_files(), before)
