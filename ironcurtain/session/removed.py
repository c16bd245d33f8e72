"""
Sessions that were removed together with their audit logs, on purpose.

Each has a signed line in the home, so that a session that has gone otherwise is noticed.
"""

from __future__ import annotations

from ironcurtain.audit.chain import timestamp
from ironcurtain.audit.signing import SigningKey, VerifyingKey
from ironcurtain.audit.witness_lines import head_line, read_heads
from ironcurtain.files.appending import LineFile
from ironcurtain.home.layout import Home

_REMOVED = "removed"
"""In place of the digest of a last record."""


def record_removal(home: Home, session: str, now: float) -> None:
    """
    Record that a session is going to be removed, before it is.

    :param now: seconds since the epoch.
    :raises ConfigurationError: the home's key cannot be used.
    :raises OSError: it cannot be recorded.
    """
    if (key := SigningKey.load(home.records)) is not None:
        head = key.sign(session, 0, _REMOVED, timestamp(now))
        LineFile(home.removed_sessions).append(head_line(head).removesuffix(b"\n"))


def removed_sessions(home: Home, key: VerifyingKey | None) -> set[str]:
    """:returns: the ids of the sessions that were removed, as far as the key signed that."""
    heads = read_heads(LineFile(home.removed_sessions).lines())
    return {head.session for head in heads if head.head == _REMOVED and key is not None and key.verifies(head)}
