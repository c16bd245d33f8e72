"""
Heads of audit logs that other members keep: each host is a witness of all others.

Processes of a host put the heads of their sessions on the disk, and its daemon sends them when the fleet's server is
reached. Every other member checks them with the key that ``fleet.trust`` has of that host, and keeps them in a file for
each host, which ``ironcurtain audit verify`` compares with its logs.
"""

from __future__ import annotations

import os
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from twisted.logger import Logger

from ironcurtain.audit.signing import SignedHead, VerifyingKey
from ironcurtain.audit.witness_lines import BEGINS, head_line, read_heads
from ironcurtain.errors import ProtocolViolation
from ironcurtain.files.atomic import write_atomically
from ironcurtain.fleet.trust import Trust
from ironcurtain.home.layout import Home, private_directory
from ironcurtain.services.line_sinks import FileSink

LINE_LIMIT = 512
"""Maximum size in bytes of a head as a line (one has about 330)."""

KEPT_BYTES = 16 * 1024 * 1024
"""
Size in bytes of a host's file from which on it keeps only the newest head of each session. What is then left is far
smaller, also with two heads of each of so many sessions, so that not every head has the file written again.
"""

KEPT_SESSIONS = 10_000
"""Maximum number of sessions of a host that it then has, the newest."""


def heads_file(home: Home, host: str) -> Path:
    """:returns: the file of the heads of another host."""
    return home.records / "fleet" / f"{host}.jsonl"


class KeptHeads:
    """
    The heads of other hosts.

    :param home: of this host.
    """

    log = Logger()

    def __init__(self, home: Home) -> None:
        self._home = home

    def take(self, host: str, line: bytes, trust: Trust) -> None:
        """
        Keep a head.

        :param host: whose it is said to be.
        :raises ProtocolViolation: it is none of that host, or that host is not trusted.
        :raises Unavailable: it cannot be written.
        """
        heads = list(read_heads([line])) if len(line) <= LINE_LIMIT else []
        if (known := trust.hosts.get(host)) is None or len(heads) != 1:
            raise ProtocolViolation("fleet", "no head of a host that fleet.trust names")
        key = VerifyingKey(Ed25519PublicKey.from_public_bytes(known.key))
        if not key.verifies(heads[0]):
            raise ProtocolViolation("fleet", f"a head that {host} has not signed")
        path = heads_file(self._home, host)
        private_directory(path.parent)
        FileSink(path, BEGINS).write(head_line(heads[0]))
        if os.path.getsize(path) > KEPT_BYTES and (dropped := shorten(path)):
            self.log.warn(
                "the heads of {dropped} sessions of {host} were dropped to make room; nothing here witnesses their "
                "logs any more",
                dropped=dropped,
                host=host,
            )


def shorten(path: Path) -> int:
    """
    Keep the newest heads of each session, all of those that have the highest number, and the newest sessions.

    :returns: the number of sessions whose heads were dropped.
    """
    newest: dict[str, list[SignedHead]] = {}
    with path.open("rb") as lines:
        for head in read_heads(lines):
            known = newest.pop(head.session, [])  # and to the end, where the newest are
            if known and known[0].sequence > head.sequence:
                newest[head.session] = known
            elif known and known[0].sequence == head.sequence:
                newest[head.session] = known if head in known else [*known[:1], head]
            else:
                newest[head.session] = [head]
    kept = [head_line(head) for heads in list(newest.values())[-KEPT_SESSIONS:] for head in heads]
    write_atomically(path, b"".join(kept))
    return max(0, len(newest) - KEPT_SESSIONS)
