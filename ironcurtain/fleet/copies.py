"""Copies of the files of other hosts' sessions: their logs, audit logs and findings."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from msgspec.structs import replace
from twisted.internet.task import deferLater

from ironcurtain.audit.signing import VerifyingKey
from ironcurtain.errors import NotFound, Unavailable
from ironcurtain.files.atomic import write_atomically
from ironcurtain.fleet.heads import heads_file
from ironcurtain.fleet.mirror import SESSIONS_LIMIT
from ironcurtain.fleet.reach import daemon_of
from ironcurtain.fleet.serving import DAEMON, FILE_LIMIT, FILES, KINDS
from ironcurtain.fleet.trust import read_trust
from ironcurtain.home.host_numbers import HostNumber
from ironcurtain.home.layout import Home, private_directory
from ironcurtain.home.session_paths import SessionPaths
from ironcurtain.operations import Principal
from ironcurtain.session.verification import SessionRecords, verify_records

COPIES_LIMIT = 256 * 1024 * 1024
"""Maximum size in bytes of all copies of one host's sessions."""

FRESH_SECONDS = 600.0
"""So long a command may use the copy that it made; older ones are removed once half of that is used up."""

FOLLOW_SECONDS = 1.0
"""Seconds between two looks at a file that is followed."""


async def copy_session(reactor: Any, home: Home, number: HostNumber, who: Principal | None = None) -> SessionPaths:
    """
    Copy the files of a session of another host, as they are now.

    :param who: the principal, if not the local user.
    :returns: the copy, in this home until the daemon ends.
    :raises NotFound: that host is not here, or has no such session.
    :raises NotAllowed: it does not let this person view its sessions.
    :raises Unavailable: the copies of that host's sessions would be too large.
    """
    client = daemon_of(reactor, home, number.host, who)
    directory = home.fleet_socket(number.host, DAEMON).parent
    paths = SessionPaths(private_directory(directory) / f"session-{number.there}")
    private_directory(paths.directory)
    for kind, name in KINDS.items():
        content = await client.content(f"{FILES}/{number.there}/{kind}", FILE_LIMIT)
        if len(content) > make_room(directory, time.time()):
            raise Unavailable(
                f"the copies of sessions of {number.host} would take more than {COPIES_LIMIT >> 20} MiB here: look at "
                f"fewer of them, or again in {FRESH_SECONDS / 60:.0f} minutes"
            )
        write_atomically(paths.directory / name, content, durable=False)
    return paths


def make_room(directory: Path, now: float) -> int:
    """
    Remove the oldest copies that no command uses any more, while they take much room.

    :param directory: of a host.
    :param now: seconds since the epoch.
    :returns: how many bytes more may be copied.
    """
    sizes, made = dict[Path, int](), dict[Path, float]()
    for path in directory.glob("session-*"):
        with suppress(FileNotFoundError):  # another command removes or replaces it
            made[path] = path.stat().st_mtime
            sizes[path] = sum(file.stat().st_size for file in path.iterdir())
    for path in sorted(sizes, key=made.__getitem__):
        if sum(sizes.values()) > COPIES_LIMIT // 2 and now - made[path] > FRESH_SECONDS:
            shutil.rmtree(path, ignore_errors=True)
            del sizes[path]
    return COPIES_LIMIT - sum(sizes.values())


async def numbers(reactor: Any, home: Home, host: str) -> list[HostNumber]:
    """
    :returns: the sessions of a host, also those that have ended; the newest, if they are too many.
    :raises NotFound: that host is not here.
    :raises RemoteError: it does not let this person view its sessions.
    """
    found = await daemon_of(reactor, home, host).read(FILES, list[int])
    return [HostNumber(host, number) for number in found[-SESSIONS_LIMIT:]]


async def follow_file(reactor: Any, home: Home, number: HostNumber, kind: str, show: Callable[[bytes], None]) -> None:
    """
    Read a file of a session of another host, and go on while it grows, until this is cancelled.

    :param kind: see :data:`~ironcurtain.fleet.serving.KINDS`.
    :param show: called with each line.
    :raises NotFound: that host is not here, or has no such session.
    """
    client, place, kept = daemon_of(reactor, home, number.host), 0, b""
    while True:
        content = await client.content(f"{FILES}/{number.there}/{kind}?from={place}", FILE_LIMIT)
        place += len(content)
        *lines, kept = (kept + content).split(b"\n")
        for line in lines:
            show(line + b"\n")
        if not content:
            await deferLater(reactor, FOLLOW_SECONDS, lambda: None)


def verify_copy(home: Home, number: HostNumber, paths: SessionPaths) -> SessionRecords:
    """
    :param paths: the copy of a session.
    :returns: its records, judged with the key of ``fleet.trust`` and with the heads that this host keeps.
    :raises NotFound: its host is not there.
    """
    key, heads = key_of(home, number), heads_file(home, number.host)
    (judged,) = verify_records(home, (), chosen=[paths], key=key, fleet=heads if heads.exists() else None).sessions
    return replace(judged, description={**judged.description, "number": number})


def key_of(home: Home, number: HostNumber) -> Path:
    """
    :returns: a file with the key with which a session's host signs its audit logs, as ``fleet.trust`` has it.
    :raises NotFound: it is not there.
    """
    known = read_trust(home.fleet_trust).hosts.get(number.host)
    if known is None:
        raise NotFound(f"fleet.trust does not name {number.host}")
    path = home.fleet_socket(number.host, DAEMON).parent / "key.pem"
    write_atomically(path, VerifyingKey(Ed25519PublicKey.from_public_bytes(known.key)).pem.encode(), durable=False)
    return path
