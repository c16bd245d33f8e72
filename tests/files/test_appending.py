from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.files.appending import LineFile
from tests.audit.doubles import file_limit, scratch

LINES = st.lists(st.binary(min_size=1, max_size=20).map(lambda line: line.replace(b"\n", b" ")), min_size=1, max_size=5)


class LineFileTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.path = scratch(self) / "lines"

    @given(LINES, st.integers(0, 200))
    def test_a_crash_anywhere_damages_one_line(self, lines: list[bytes], cut: int) -> None:
        self.path.unlink(missing_ok=True)
        file = LineFile(self.path)
        for line in lines:
            file.append(line)
        self.assertEqual(list(file.lines()), lines)
        self.path.write_bytes(self.path.read_bytes()[:cut])
        left = list(LineFile(self.path).lines())
        LineFile(self.path).append(b"new")
        self.assertEqual(list(file.lines()), [*left, b"new"])
        self.assertEqual(left[:-1], lines[: max(0, len(left) - 1)])

    def test_a_line_after_one_that_did_not_fit_is_whole(self) -> None:
        file = LineFile(self.path)
        file.append(b"x" * 200_000)
        with file_limit(self.path.stat().st_size + 5):
            self.assertRaises(OSError, file.append, b"y" * 100)
        file.append(b"z")
        self.assertEqual(list(file.lines())[-1], b"z")

    def test_only_its_owner_can_read_it_and_a_link_is_not_followed(self) -> None:
        LineFile(self.path).append(b"x")
        self.assertEqual(self.path.stat().st_mode & 0o7777, 0o600)
        link = self.path.with_name("link")
        link.symlink_to(self.path)
        self.assertRaises(OSError, LineFile(link).append, b"y")

    def test_no_file_has_no_lines(self) -> None:
        self.assertEqual(list(LineFile(self.path).lines()), [])
