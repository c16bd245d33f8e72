from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.numbers import Counter

TOP = Path(__file__).parent.parent

TAKE = """
import sys
from pathlib import Path
from ironcurtain.home.numbers import Counter
counter = Counter(Path(sys.argv[1]))
print(*(counter.next() for _ in range(25)))
"""


class CounterTests(SynchronousTestCase):
    def setUp(self) -> None:
        directory = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, directory)
        self.path = directory / "escalations.number"

    def test_it_goes_on_where_it_was(self) -> None:
        self.assertEqual([Counter(self.path).next() for _ in range(3)], [1, 2, 3])
        self.assertEqual(self.path.read_text(), "3\n")

    def test_processes_never_get_the_same_number(self) -> None:
        command = [sys.executable, "-c", TAKE, str(self.path)]
        processes = [subprocess.Popen(command, cwd=TOP, stdout=subprocess.PIPE, text=True) for _ in range(4)]
        numbers = [int(n) for process in processes for n in process.communicate(timeout=60)[0].split()]
        self.assertEqual(sorted(numbers), list(range(1, 101)))

    def test_a_damaged_file_is_never_taken_for_a_fresh_one(self) -> None:
        for content in (b"", b"x", b"-1", b"1 2", b"\xff", b"9" * 5000):
            self.path.write_bytes(content)
            self.assertRaises(ConfigurationError, Counter(self.path).next)
            self.assertEqual(self.path.read_bytes(), content)
