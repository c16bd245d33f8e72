"""
Grants: an approval permits one call, once, exactly as it was shown.

A grant is bound to the session, the server, the tool, the digest of the exact arguments, the policy's version and an
expiry time. The grant must be spent before the call is forwarded.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from ironcurtain.errors import NotAllowed

GRANT_SECONDS = 60.0
"""Lifetime of a grant in seconds. The waiting call spends it at once."""

_encoder = msgspec.json.Encoder(order="deterministic")


def arguments_digest(server: str, tool: str, arguments: Mapping[str, Any]) -> str:
    """:returns: SHA-256, in hex, of a call's server, tool and arguments in canonical JSON."""
    return hashlib.sha256(_encoder.encode([server, tool, arguments])).hexdigest()


class Binding(msgspec.Struct, frozen=True):
    """Identifies the call that a grant permits."""

    session_id: str
    digest: str
    policy_version: str


class Grant(msgspec.Struct):
    """
    A single-use permission.

    :param expires: seconds on the clock whose time :meth:`spend` receives.
    """

    binding: Binding
    expires: float
    spent: bool = False

    def spend(self, binding: Binding, now: float) -> None:
        """
        Use the grant.

        :param now: the time in seconds.
        :raises NotAllowed: the grant was already spent, has expired, or is for another call.
        """
        if self.spent:
            raise NotAllowed("this approval has already been used: ask again")
        if now > self.expires:
            raise NotAllowed("this approval has expired: ask again")
        if binding != self.binding:
            raise NotAllowed("this approval is for another call: ask again")
        self.spent = True
