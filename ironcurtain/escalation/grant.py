"""
What an approval permits: one call, once, exactly as it was shown. Time is an argument.

A grant is bound to the session, the server, the tool, the digest of the exact arguments, the policy's version and a
time; whoever is about to let the call through spends it first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from ironcurtain.errors import NotAllowed

GRANT_SECONDS = 60.0
"""How long after the approval a grant may be spent (the call that waits for it spends it at once)."""

_encoder = msgspec.json.Encoder(order="deterministic")


def arguments_digest(server: str, tool: str, arguments: Mapping[str, Any]) -> str:
    """:returns: SHA-256, in hex, of a call's server, tool and arguments in one canonical form."""
    return hashlib.sha256(_encoder.encode([server, tool, arguments])).hexdigest()


@dataclass(frozen=True, slots=True)
class Binding:
    """The one call that a grant is for."""

    session_id: str
    digest: str
    policy_version: str


@dataclass(slots=True)
class Grant:
    """
    A single-use permission.

    :param expires: on the clock of whoever made it, in seconds.
    """

    binding: Binding
    expires: float
    spent: bool = False

    def spend(self, binding: Binding, now: float) -> None:
        """
        Use it up.

        :raises NotAllowed: it was spent before, is too old, or is for another call.
        """
        if self.spent:
            raise NotAllowed("this approval was used already: ask again")
        if now > self.expires:
            raise NotAllowed("this approval is too old: ask again")
        if binding != self.binding:
            raise NotAllowed("this approval is for another call: ask again")
        self.spent = True
