from __future__ import annotations

import os
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.audit.signing import KEY_FILE, SignedHead, SigningKey, VerifyingKey
from ironcurtain.errors import ConfigurationError
from tests.audit.doubles import scratch

HEADS = st.builds(
    SignedHead, st.text(), st.integers(), st.text("0123456789abcdef", max_size=64), st.text(), st.text(), st.text()
)


class KeyTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.directory = scratch(self) / "audit"
        self.key = SigningKey.load_or_make(self.directory)

    def test_the_key_is_made_once_for_its_owner_alone(self) -> None:
        path = self.directory / KEY_FILE
        written = path.read_bytes()
        self.assertEqual(SigningKey.load_or_make(self.directory).public.id, self.key.public.id)
        loaded = SigningKey.load(self.directory)
        assert loaded is not None
        self.assertEqual((loaded.public.id, path.read_bytes()), (self.key.public.id, written))
        self.assertEqual((path.stat().st_mode & 0o777, self.directory.stat().st_mode & 0o777), (0o600, 0o700))

    def test_without_a_key_there_is_none(self) -> None:
        self.assertIsNone(SigningKey.load(self.directory / "other"))

    def test_a_key_that_others_can_read_is_refused(self) -> None:
        os.chmod(self.directory / KEY_FILE, 0o640)
        with self.assertRaisesRegex(ConfigurationError, "chmod 600"):
            SigningKey.load_or_make(self.directory)

    def test_a_damaged_key_is_refused_and_kept(self) -> None:
        path = self.directory / KEY_FILE
        path.write_bytes(b"damaged")
        with self.assertRaisesRegex(ConfigurationError, "damaged"):
            SigningKey.load_or_make(self.directory)
        self.assertEqual(path.read_bytes(), b"damaged")

    def test_the_private_half_is_not_shown(self) -> None:
        private = (self.directory / KEY_FILE).read_text().splitlines()[1]
        self.assertNotIn(private, repr(self.key) + str(self.key))
        self.assertNotIn(private, self.key.public.pem)

    def test_the_printed_key_verifies_elsewhere(self) -> None:
        path = Path(scratch(self)) / "public.pem"
        path.write_text(self.key.public.pem)
        head = self.key.sign("s", 7, "ab", "now")
        self.assertTrue(VerifyingKey.load(path).verifies(head))
        self.assertFalse(SigningKey.load_or_make(path.parent / "other").public.verifies(head))

    def test_what_is_no_public_key_is_refused(self) -> None:
        for text in ("", "x", (self.directory / KEY_FILE).read_text()):
            path = self.directory / "wrong.pem"
            path.write_text(text)
            self.assertRaises(ConfigurationError, VerifyingKey.load, path)
        self.assertRaises(ConfigurationError, VerifyingKey.load, self.directory / "missing")


class HeadTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.key = SigningKey.load_or_make(scratch(self) / "audit")
        self.head = self.key.sign("session-1", 7, "ab" * 32, "2017-07-14T02:40:00.000Z")

    def test_each_part_is_signed(self) -> None:
        verifies = self.key.public.verifies
        self.assertTrue(verifies(self.head))
        self.assertFalse(verifies(replace(self.head, session="session-2")))
        self.assertFalse(verifies(replace(self.head, sequence=8)))
        self.assertFalse(verifies(replace(self.head, head="cd" * 32)))
        self.assertFalse(verifies(replace(self.head, time="2017-07-14T02:40:00.001Z")))
        self.assertFalse(verifies(replace(self.head, key="0" * 32)))
        for signature in ("", "?", "AAAA", self.head.signature[:-4], "A" + self.head.signature[1:], "é"):
            if signature != self.head.signature:
                self.assertFalse(verifies(replace(self.head, signature=signature)), signature)

    @settings(deadline=None)
    @given(HEADS, HEADS)
    def test_different_heads_have_different_statements(self, one: SignedHead, other: SignedHead) -> None:
        """A line end in a part makes no head look like another that can be signed: those have six lines."""
        if one.statement.count(b"\n") == 6 == other.statement.count(b"\n"):
            same = replace(one, signature="") == replace(other, signature="")
            self.assertEqual(one.statement == other.statement, same)

    @settings(deadline=None)
    @given(st.dictionaries(st.sampled_from(("session", "head", "time", "key", "signature", "sequence")), st.text()))
    def test_members_of_the_wrong_kind_are_no_head(self, members: dict[str, str]) -> None:
        self.assertIsNone(SignedHead.read(members))
