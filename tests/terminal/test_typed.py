"""What a person typed, and what a terminal said by itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.terminal.keys import InputKind, InputPiece, TypedReader, by_a_person

REPORTS = (
    b"\x1b[?62;4c",
    b"\x1b[>1;10;0c",
    b"\x1b[24;80R",
    b"\x1b[0n",
    b"\x1b[?2026;2$y",
    b"\x1b[?1u",
    b"\x1b[I",
    b"\x1b[O",
    b"\x1b[8;24;80t",
    b"\x1b]11;rgb:0000/0000/0000\x1b\\",
    b"\x1b]52;c;aGVsbG8=\x07",
    b"\x1bP>|xterm(390)\x1b\\",
    b"\x1b_Gi=1;OK\x1b\\",
)
MOUSE = (b"\x1b[<0;10;20M", b"\x1b[<0;10;20m", b"\x1b[M !!", b"\x1b[32;10;20M")
TYPED = (
    b"hello",
    b"\r",
    b"\x1b",
    b"\x1b[A",
    b"\x1bOP",
    b"\x1b[1;5C",
    b"\x1bx",
    b"\x1b[15~",
    b"\x1b[97;5u",
    "é".encode(),
)


def kinds(*reads: bytes) -> list[tuple[InputKind, bytes]]:
    reader = TypedReader()
    return [(piece.kind, piece.data) for read in reads for piece in reader.feed(read)]


class KindTests(SynchronousTestCase):
    """Each sequence by itself, and behind another."""

    def test_reports(self) -> None:
        for data in REPORTS:
            self.assertEqual({kind for kind, _ in kinds(data)}, {InputKind.REPORT}, data)
            self.assertEqual({kind for kind, _ in kinds(data + REPORTS[0])}, {InputKind.REPORT}, data)

    def test_mouse(self) -> None:
        for data in MOUSE:
            self.assertEqual(kinds(data), [(InputKind.MOUSE, data)])

    def test_keys(self) -> None:
        for data in TYPED:
            self.assertEqual(kinds(data), [(InputKind.TYPED, data)])

    def test_pastes_are_told_from_typing(self) -> None:
        self.assertEqual(
            kinds(b"a\x1b[200~b\x1b[Ac\x1b[201~d"),
            [
                (InputKind.TYPED, b"a"),
                (InputKind.PASTED, b"\x1b[200~"),
                (InputKind.PASTED, b"b\x1b[Ac"),
                (InputKind.PASTED, b"\x1b[201~"),
                (InputKind.TYPED, b"d"),
            ],
        )

    def test_text_between_reports(self) -> None:
        self.assertEqual(
            [k for k, _ in kinds(b"a\x1b[Ib\x1b[?1;2cc")], [InputKind.TYPED, InputKind.REPORT] * 2 + [InputKind.TYPED]
        )

    def test_alt_and_a_key_is_no_endless_answer(self) -> None:
        """It looks like the beginning of one."""
        for key in (b"\x1b]", b"\x1bP", b"\x1b_"):
            self.assertEqual(kinds(key, b"rm -rf x\r")[-1][0], InputKind.TYPED)
            self.assertEqual(kinds(key + b"x", b"\r", b"more")[-1], (InputKind.TYPED, b"more"))

    def test_an_answer_may_be_cut(self) -> None:
        """Though not right behind its first byte, which is also the key Esc."""
        for data in REPORTS:
            for cut in range(2, len(data)):
                self.assertEqual({kind for kind, _ in kinds(data[:cut], data[cut:])}, {InputKind.REPORT}, (data, cut))


class PieceTests(SynchronousTestCase):
    """Nothing is lost."""

    def test_what_cannot_become_a_sequence_begins_with_escape(self) -> None:
        """Else the keys that follow would be held back."""
        for rest in (b"[\rls", b"[\x03", b"[12\x1b", b"O\x03", b"\xff", b"[M\r"):
            self.assertEqual(kinds(b"\x1b" + rest)[0], (InputKind.TYPED, b"\x1b"), rest)
            self.assertEqual(b"".join(data for _, data in kinds(b"\x1b" + rest)), b"\x1b" + rest)

    def test_escape_and_a_character_of_several_bytes(self) -> None:
        for character in ("é", "日", "😀"):
            data = b"\x1b" + character.encode()
            self.assertEqual(kinds(data), [(InputKind.TYPED, data)])

    @given(
        st.lists(
            st.one_of(
                st.sampled_from([*REPORTS, *MOUSE, *TYPED, b"\x1b[200~", b"\x1b[201~", b"\x1b[201", b"\x1b["]),
                st.binary(),
            )
        )
    )
    def test_pieces_together_are_what_was_read(self, reads: list[bytes]) -> None:
        reader = TypedReader()
        pieces = [piece for read in reads for piece in reader.feed(read)]
        end = reader.feed(b"\x1b[201~\x18" + b"x" * 300)
        joined = b"".join(piece.data for piece in pieces + end)
        self.assertEqual(joined[: len(b"".join(reads))], b"".join(reads))

    def test_what_counts_as_somebody_being_there(self) -> None:
        self.assertFalse(by_a_person([InputPiece(InputKind.REPORT, b"\x1b[I")]))
        self.assertTrue(by_a_person([InputPiece(InputKind.REPORT, b"\x1b[I"), InputPiece(InputKind.TYPED, b"x")]))
        self.assertTrue(by_a_person([InputPiece(InputKind.MOUSE, b"\x1b[<0;1;1M")]))
