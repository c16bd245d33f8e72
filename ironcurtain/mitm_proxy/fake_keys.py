"""The keys that agents get: they look like a provider's own, and are worth nothing anywhere else."""

from __future__ import annotations

import base64
from collections.abc import Callable

from ironcurtain.mitm_proxy.providers import ProviderRule
from ironcurtain.secrets.redaction import Secret

FAKE_BYTES = 24
"""Random bytes of a fake key: 192 bits, of which none can be guessed."""


def fake_key(rule: ProviderRule, random_bytes: Callable[[int], bytes]) -> Secret:
    """
    Make a key for one session.

    :param random_bytes: gives so many bytes that nobody can foretell, as ``secrets.token_bytes`` does.
    :returns: the prefix of the provider's keys and characters of the kind that they are made of.
    """
    text = base64.urlsafe_b64encode(random_bytes(FAKE_BYTES)).decode("ascii")
    return Secret(rule.key_prefix + text, f"made for provider {rule.name}")
