from __future__ import annotations

import stat

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import Unavailable
from ironcurtain.watchers.record import FAILURES, HOUR, MOST_RUNS, RECORD_LIMIT, Record, Records
from tests.audit.doubles import scratch
from tests.watchers.doubles import NOW


class RecordTests(SynchronousTestCase):
    def test_failures_in_a_row_pause_it(self) -> None:
        record = Record()
        for _ in range(FAILURES - 1):
            record.begin(NOW, 1)
            record.end(NOW, "no model")
        record.begin(NOW, 1)
        record.end(NOW, "")
        self.assertEqual((record.failures, record.paused), (0, ""))
        for _ in range(FAILURES):
            record.begin(NOW, 2)
            record.end(NOW, "no model")
        self.assertEqual(record.paused, "3 runs in a row failed")
        record.resume()
        self.assertEqual((record.paused, record.failures), ("", 0))

    def test_run_elsewhere_ends_with_its_hour_also_where_the_clock_was_set_back(self) -> None:
        record = Record()
        record.begin(NOW, 1)
        for now, elsewhere in ((NOW + 1, True), (NOW - 1, True), (NOW + 2 * HOUR, False), (NOW - 2 * HOUR, False)):
            self.assertIs(record.is_run_elsewhere(now, 0.0), elsewhere)

    def test_it_stays_small(self) -> None:
        record = Record()
        for number in range(10_000):
            record.begin(NOW + number / 100, number)
            record.end(NOW + number / 100, "x" * 10_000)
        self.assertEqual(len(record.runs), MOST_RUNS)
        assert record.last is not None
        self.assertEqual(len(record.last.error), 500)

    def test_end_of_the_process_is_no_failure(self) -> None:
        record = Record()
        record.begin(NOW, 1)
        record.abandon()
        self.assertEqual((record.failures, record.running), (0, None))


class RecordsTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.directory = scratch(self) / "watchers"
        self.records = Records(self.directory)

    def test_it_is_kept_privately(self) -> None:
        with self.records.change("tests") as record:
            record.begin(NOW, 7)
        self.assertEqual(self.records.read("tests").runs, [NOW])
        mode = stat.S_IMODE((self.directory / "tests.json").stat().st_mode)
        self.assertEqual((mode, stat.S_IMODE(self.directory.stat().st_mode)), (0o600, 0o700))

    def test_damaged_record_is_paused(self) -> None:
        with self.records.change("tests"):
            pass
        for data in (b"", b"{", b'{"runs": ["x"]}', b"x" * (RECORD_LIMIT + 1), b'{"runs": [1e999]}'):
            (self.directory / "tests.json").write_bytes(data)
            self.assertTrue(self.records.read("tests").paused, data[:20])

    def test_record_that_cannot_be_written_is_an_error(self) -> None:
        with self.records.change("tests"):
            pass
        (self.directory / "tests.json").unlink()
        (self.directory / "tests.json").mkdir()

        def change() -> None:
            with self.records.change("tests"):
                pass

        self.assertRaises(Unavailable, change)
