from __future__ import annotations

import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.ssh.gcm import GCM_CIPHERS, PACKET_LIMIT, GcmCiphers

KEYS = (bytes(range(64)), bytes(range(100, 164)))
COUNTERS = (b"fix1" + b"\xff" * 8 + b"rest", b"fix2" + bytes(8) + b"rest")


def ends(ours: bytes = GCM_CIPHERS[0], theirs: bytes = GCM_CIPHERS[1]) -> tuple[GcmCiphers, GcmCiphers]:
    """:returns: the two sides of a connection, with another cipher in each direction."""
    one, other = GcmCiphers(ours, theirs, b"", b""), GcmCiphers(theirs, ours, b"", b"")
    one.setKeys(COUNTERS[0], KEYS[0], COUNTERS[1], KEYS[1], b"", b"")
    other.setKeys(COUNTERS[1], KEYS[1], COUNTERS[0], KEYS[0], b"", b"")
    return one, other


class GcmTests(SynchronousTestCase):
    @given(st.lists(st.binary(max_size=100), min_size=1))
    def test_what_is_sealed_is_opened(self, payloads: list[bytes]) -> None:
        one, other = ends()
        for sender, receiver in ((one, other), (other, one)):
            for payload in payloads:
                packet = sender.seal(94, payload)
                self.assertEqual(receiver.size(packet + b"more"), len(packet))
                self.assertEqual(receiver.open(packet), b"^" + payload)

    def test_the_form_of_a_packet(self) -> None:
        one, _ = ends()
        for nonce in (b"fix1" + b"\xff" * 8, b"fix1" + bytes(8)):
            packet = one.seal(94, b"payload")
            self.assertEqual(packet[:4], b"\0\0\0\x10")
            content = AESGCM(KEYS[0][:32]).decrypt(nonce, packet[4:], packet[:4])
            self.assertEqual(content[:9], b"\x07^payload")
            self.assertEqual(len(content), 16)

    def test_what_was_changed_or_left_out_is_refused(self) -> None:
        for place in (0, 4, -1):
            one, other = ends()
            packet = bytearray(one.seal(94, os.urandom(40)))
            packet[place] ^= 1
            self.assertRaises(InvalidTag, other.open, bytes(packet))
        one, other = ends()
        one.seal(94, b"first")
        self.assertRaises(InvalidTag, other.open, one.seal(94, b"second"))

    def test_sizes_that_cannot_be(self) -> None:
        one, _ = ends()
        self.assertGreater(one.size(b"\0\0\0"), 3)
        for length in (0, 15, 17, PACKET_LIMIT + 16):
            self.assertRaises(ValueError, one.size, length.to_bytes(4, "big"))

    def test_a_packet_with_nothing_in_it(self) -> None:
        head, nonce = (16).to_bytes(4, "big"), COUNTERS[0][:12]
        for padding in (0, 3, 15, 255):
            _, other = ends()
            sealed = AESGCM(KEYS[0][:32]).encrypt(nonce, bytes((padding,)) + b"\x5e" * 15, head)
            self.assertRaises(ValueError, other.open, head + sealed)
