"""
AES in Galois/counter mode for SSH: RFC 5647, in the form that OpenSSH gave it (its PROTOCOL, section 1.6).

conch has no such mode. It is one pass over a packet, where counter mode and HMAC-SHA-2 are two, of which the second
takes ten times as long as the first on processors without instructions for it.
"""

from __future__ import annotations

import os

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from twisted.conch.ssh.transport import SSHCiphers

GCM_CIPHERS = (b"aes256-gcm@openssh.com", b"aes128-gcm@openssh.com")
"""The better one first; which one is taken is for the client to say."""

PACKET_LIMIT = 256 * 1024
"""Most bytes of a packet that are waited for; OpenSSH's limit."""

BLOCK, TAG, SHORTEST_PADDING = 16, 16, 4
"""Bytes of a block, of the proof that a packet is as it was sent, and of what fills the last block up."""

_KEY_SIZES = {GCM_CIPHERS[0]: 32, GCM_CIPHERS[1]: 16}


class GcmCiphers(SSHCiphers):
    """Both directions of a connection. Names of MACs are negotiated as ever and mean nothing: the mode has its own."""

    def setKeys(self, outIV: bytes, outKey: bytes, inIV: bytes, inKey: bytes, outInteg: bytes, inInteg: bytes) -> None:
        """Begin with new keys."""
        self._out = AESGCM(outKey[: _KEY_SIZES[self.outCipType]])
        self._in = AESGCM(inKey[: _KEY_SIZES[self.inCipType]])
        self._out_nonce, self._in_nonce = _Nonce(outIV), _Nonce(inIV)

    def seal(self, kind: int, payload: bytes) -> bytes:
        """:returns: the packet with a message of this kind, as it is sent."""
        padding = BLOCK - (2 + len(payload)) % BLOCK
        if padding < SHORTEST_PADDING:
            padding += BLOCK
        head = (2 + len(payload) + padding).to_bytes(4, "big")
        content = b"".join((bytes((padding, kind)), payload, os.urandom(padding)))
        return head + self._out.encrypt(self._out_nonce.next(), content, head)

    def size(self, received: bytes) -> int:
        """
        :param received: begins with a packet, or with the first bytes of one.
        :returns: the size of that packet; at least one more than there is while its length has not come.
        :raises ValueError: there is no such packet.
        """
        if len(received) < 4:
            return 4
        length = int.from_bytes(received[:4], "big")
        if length > PACKET_LIMIT or length < BLOCK or length % BLOCK:
            raise ValueError(f"a packet of {length} bytes")
        return 4 + length + TAG

    def open(self, packet: bytes) -> bytes:
        """
        :param packet: a whole one.
        :returns: the message: its kind, then its payload.
        :raises cryptography.exceptions.InvalidTag: it is not as the peer sent it, or not the next one.
        :raises ValueError: there is nothing in it.
        """
        content = self._in.decrypt(self._in_nonce.next(), packet[4:], packet[:4])
        padding = content[0]
        if padding < SHORTEST_PADDING or 1 + padding >= len(content):
            raise ValueError("a packet with nothing in it")
        return content[1:-padding]


class _Nonce:
    """Four bytes that stay and a number that counts packets (RFC 5647, section 7.1)."""

    def __init__(self, first: bytes) -> None:
        self._fixed, self._count = first[:4], int.from_bytes(first[4:12], "big")

    def next(self) -> bytes:
        """:returns: what no other packet under these keys has."""
        nonce = self._fixed + self._count.to_bytes(8, "big")
        self._count = (self._count + 1) % 2**64
        return nonce
