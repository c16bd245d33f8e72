"""What a host says and signs, in messages that anybody may carry."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import TypeVar

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from ironcurtain.audit.signing import SigningKey
from ironcurtain.errors import ProtocolViolation

LIMIT = 4096
"""Maximum size in bytes of a signed message."""

T = TypeVar("T", bound=msgspec.Struct)


class _Signed(msgspec.Struct, frozen=True):
    said: str
    signature: str


_encoder = msgspec.json.Encoder()
_signed = msgspec.json.Decoder(_Signed)


def sign(prefix: bytes, said: msgspec.Struct, key: SigningKey) -> bytes:
    """
    :param prefix: what is signed begins with it, so that the signature is valid for nothing else.
    :returns: the message.
    """
    text = _encoder.encode(said)
    signature = key.for_tls().sign(prefix + text)
    return _encoder.encode(_Signed(text.decode(), base64.b64encode(signature).decode()))


def verify(prefix: bytes, data: bytes, decoder: msgspec.json.Decoder[T], key_of: Callable[[T], bytes | None]) -> T:
    """
    :param key_of: returns the public key of the host that is said to say it; ``None``: it is not trusted.
    :returns: what it says.
    :raises ProtocolViolation: it is no message, or not of a host that is trusted and signed it.
    """
    if len(data) > LIMIT:
        raise ProtocolViolation("fleet", f"a statement of {len(data)} bytes")
    try:
        signed = _signed.decode(data)
        said = decoder.decode(signed.said)
        if (key := key_of(said)) is None:
            raise ProtocolViolation("fleet", "a statement of a host that fleet.trust does not name")
        signature = base64.b64decode(signed.signature, validate=True)
        Ed25519PublicKey.from_public_bytes(key).verify(signature, prefix + signed.said.encode())
    except (msgspec.DecodeError, UnicodeError, RecursionError, binascii.Error, ValueError, InvalidSignature):
        raise ProtocolViolation("fleet", "a statement that its host has not signed") from None
    return said
