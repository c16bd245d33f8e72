"""Fake keys and tokens, of the same shape as those of a provider, and valid in one session only."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable
from typing import Any, Final

import msgspec

from ironcurtain.providers.rules import ProviderRule
from ironcurtain.secrets.redaction import Secret

FAKE_BYTES: Final = 24
"""Random bytes of a fake key: 192 bits, which cannot be guessed."""

FAR: Final = 4_102_444_800
"""When fake tokens expire, in seconds since the epoch: the year 2100, so that no agent renews one."""

RandomBytes = Callable[[int], bytes]
"""Returns so many unpredictable bytes, as ``secrets.token_bytes`` does."""


class FakeToken(msgspec.Struct, frozen=True):
    """
    :ivar account: what stands for the account's id; ``None`` if requests name none.
    """

    secret: Secret
    account: Secret | None = None


def fake_token(rule: ProviderRule, random_bytes: RandomBytes) -> FakeToken:
    """
    Create a fake key or token for one session.

    :returns: the prefix of the provider's keys, followed by the characters that such keys consist of; or a JSON Web
        Token if the provider's tokens are such.
    """
    origin = f"made for provider {rule.name}"
    account = str(uuid.UUID(bytes=random_bytes(16), version=4)) if rule.account_header else ""
    if rule.provider.signed_tokens:
        text = _signed(account, random_bytes)
    else:
        text = rule.key_prefix + _base64(random_bytes(FAKE_BYTES))
    return FakeToken(Secret(text, origin), Secret(account, origin) if account else None)


def _signed(account: str, random_bytes: RandomBytes) -> str:
    """:returns: a token with claims that agents read; its signature is random."""
    header = {"alg": "RS256", "typ": "JWT", "kid": _base64(random_bytes(12))}
    claims = {
        "iss": "https://auth.openai.com",
        "aud": ["https://api.openai.com/v1"],
        "exp": FAR,
        "email": "agent@ironcurtain.invalid",
        "https://api.openai.com/auth": {"chatgpt_account_id": account, "chatgpt_plan_type": "plus"},
    }
    return ".".join((_part(header), _part(claims), _base64(random_bytes(256))))


def _part(value: Any) -> str:
    return _base64(msgspec.json.encode(value))


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
