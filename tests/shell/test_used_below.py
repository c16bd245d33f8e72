"""What agents below one have used, as a file has it."""

from __future__ import annotations

import os
from threading import Thread

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import SessionError
from ironcurtain.shell.used_below import CHUNK, MOST_USED, USED_LIMIT, Used, UsedBelow
from tests.audit.doubles import scratch

COUNTS = st.integers(0, MOST_USED)
USES = st.builds(Used, COUNTS, COUNTS, st.just(0.0), st.none() | st.integers(0, 9).map(float))


def tokens(sums: tuple[Used, Used]) -> float:
    """:returns: those of both sums."""
    return sums[0].counted + sums[1].counted


class UsedBelowTests(SynchronousTestCase):
    """A file that agents below append to."""

    def setUp(self) -> None:
        self.path = scratch(self) / "used"
        self.below = UsedBelow(self.path)

    @given(st.lists(USES), st.lists(USES))
    def test_sums_are_those_of_the_lines_behind(self, before: list[Used], behind: list[Used]) -> None:
        self.path.unlink(missing_ok=True)
        writer, reader = UsedBelow(self.path), UsedBelow(self.path)
        for used in before:
            writer.append(used)
        reader.since(0)
        begin = reader.end
        for used in behind:
            writer.append(used)
            reader.since(begin)
        again = UsedBelow(self.path)
        priced, unpriced = reader.since(begin)
        self.assertEqual((priced, unpriced), again.since(begin))
        self.assertEqual(priced.counted + unpriced.counted, sum(used.tokens_in + used.tokens_out for used in behind))
        self.assertEqual(priced.cost or 0.0, sum(used.cost or 0.0 for used in behind))
        self.assertEqual(unpriced.tokens_in, sum(used.tokens_in for used in behind if used.cost is None))
        self.assertEqual(reader.end, os.path.getsize(self.path) if behind or before else 0)

    def test_a_long_day_is_read_on_and_not_again(self) -> None:
        line = msgspec.json.encode(Used(1000, 10, 1010.0, 0.01)) + b"\n"
        many = 5 * CHUNK // len(line)
        for number in range(1, 4):
            with self.path.open("ab") as file:
                file.write(line * many)
            priced, _ = self.below.since(0)
            self.assertEqual(priced.counted, number * many * 1010)
        self.path.write_bytes(b"x" * (self.below.end - 1) + b"\n" + line)
        self.assertEqual(tokens(self.below.since(0)), (3 * many + 1) * 1010)  # what is known is not read again

    def test_many_writers_lose_nothing(self) -> None:
        def write() -> None:
            for _ in range(200):
                UsedBelow(self.path).append(Used(1, 1))

        writers = [Thread(target=write) for _ in range(4)]
        for writer in writers:
            writer.start()
        while any(writer.is_alive() for writer in writers):
            self.below.since(0)
        for writer in writers:
            writer.join()
        self.assertEqual(tokens(self.below.since(0)), 1600)

    def test_a_line_that_is_not_whole_is_read_once_it_is(self) -> None:
        self.path.write_bytes(b'{"counted":2}\n{"count')
        self.assertEqual(tokens(self.below.since(0)), 2)
        with self.path.open("ab") as file:
            file.write(b'ed":3}\n')
        self.assertEqual(tokens(self.below.since(0)), 5)

    def refused(self, data: bytes, why: str) -> None:
        """What stands there now is refused, each time."""
        self.path.write_bytes(data)
        for _ in range(2):
            with self.assertRaisesRegex(SessionError, why):
                self.below.since(0)

    def test_what_agents_do_not_write_is_refused(self) -> None:
        self.path.write_bytes(b'{"counted":2}\n' * 2)
        self.below.since(0)
        self.refused(b'{"counted":2}\n', "changed by others")
        self.below = UsedBelow(self.path)
        self.refused(b'{"counted":"x"}\n', "cannot be read")
        self.refused(b"\xff\n", "cannot be read")
        self.refused(b"x" * CHUNK, "a line is too long")
        self.path.unlink()
        os.mkfifo(self.path)
        with self.assertRaisesRegex(SessionError, "cannot be read"):
            self.below.since(0)

    def test_a_file_that_is_gone_is_refused(self) -> None:
        self.below.append(Used(1))
        self.below.since(0)
        self.path.unlink()
        with self.assertRaisesRegex(SessionError, "cannot be read"):
            self.below.since(0)

    def test_more_than_can_be_looked_at_is_refused(self) -> None:
        line = b'{"counted":1}' + b" " * (CHUNK // 2) + b"\n"
        with self.path.open("wb") as file:
            for _ in range(USED_LIMIT // len(line) + 1):
                file.write(line)
        with self.assertRaisesRegex(SessionError, "more than"):
            self.below.since(0)
        last = self.below.end - len(line)
        self.assertLessEqual(tokens(UsedBelow(self.path).since(last)), 2)
