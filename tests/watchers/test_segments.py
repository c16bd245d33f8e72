from __future__ import annotations

import array

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.watchers.matching import part_matcher
from ironcurtain.watchers.segments import BLOCK, LONGEST, LOUD, Segments

QUIET = array.array("h", [LOUD, -LOUD] * (BLOCK // 4)).tobytes()
SOUND = array.array("h", [0, -LOUD - 1] * (BLOCK // 4)).tobytes()


class SegmentsTests(SynchronousTestCase):
    def test_piece_is_the_sound_with_the_quiet_around_it(self) -> None:
        self.assertEqual(Segments().feed(QUIET * 3 + SOUND * 2 + QUIET * 3), [QUIET + SOUND * 2 + QUIET * 2])

    def test_short_pause_does_not_end_a_piece(self) -> None:
        sound = SOUND + QUIET + SOUND
        self.assertEqual(Segments().feed(sound + QUIET * 2), [sound + QUIET * 2])

    def test_silence_is_no_piece(self) -> None:
        self.assertEqual(Segments().feed(bytes(BLOCK * 20) + QUIET * 20), [])

    def test_endless_sound_comes_in_pieces(self) -> None:
        pieces = Segments().feed(SOUND * (3 * LONGEST // BLOCK))
        self.assertEqual([len(piece) for piece in pieces], [LONGEST] * 3)

    def test_what_is_forgotten_is_in_no_piece(self) -> None:
        segments = Segments()
        segments.feed(SOUND * 2 + b"x")
        segments.forget()
        self.assertEqual(segments.feed(QUIET * 3), [])

    @given(st.lists(st.sampled_from([QUIET, SOUND]), max_size=30), st.integers(1, 3 * BLOCK))
    def test_any_slicing_gives_the_same_pieces(self, blocks: list[bytes], size: int) -> None:
        sound, segments = b"".join(blocks), Segments()
        pieces = [piece for at in range(0, len(sound), size) for piece in segments.feed(sound[at : at + size])]
        self.assertEqual(pieces, Segments().feed(sound))


class MatcherTests(SynchronousTestCase):
    def test_pattern_matches_a_part_whatever_its_case(self) -> None:
        for pattern, text, found in (
            ("", "", True),
            ("oom", "Kernel: OOM killer", True),
            ("error*disk", "Error on Disk 1", True),
            ("error*disk", "disk error", False),
            ("[x]", "a x", True),
            ("a.b", "axb", False),
        ):
            self.assertEqual(part_matcher(pattern)(text), found, f"{pattern} {text}")
