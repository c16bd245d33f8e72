"""The question of ``ironcurtain init`` whether the user's own SSH keys may log in."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ironcurtain.cli.output import print_lines, print_table
from ironcurtain.cli.questions import confirmed
from ironcurtain.cli.ssh import let_in, read_key
from ironcurtain.errors import ConfigurationError, UsageError
from ironcurtain.home.layout import Home
from ironcurtain.home.user_paths import person_home
from ironcurtain.text.display import one_line

if TYPE_CHECKING:
    from ironcurtain.ssh.authorized_keys import AuthorizedKey, KeyList

USUAL = ("id_ed25519.pub", "id_ed25519_sk.pub", "id_ecdsa.pub", "id_ecdsa_sk.pub", "id_rsa.pub")
"""The keys that ``ssh`` tries by default (ssh_config(5)). Of keys with the same name, these take precedence."""

ROLES = ("view", "approve", "attach", "admin")
"""The roles of these keys: all, since their holder has all rights on the machine anyway."""

HOW = "To log in over SSH: ironcurtain ssh add-key ~/.ssh/id_ed25519.pub --roles view,approve,attach"
"""The hint if no key was added."""


def offer_own_keys(where: Home) -> None:
    """
    List the keys below ``~/.ssh``, and add them if the user agrees. Without a terminal, only print how.

    :raises UsageError: the list has a wrong line with one of the keys.
    :raises ConfigurationError: the list of permitted keys cannot be read.
    """
    from ironcurtain.ssh.key_files import KeyFile

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print_lines(HOW)
        return
    listed = KeyFile.of(where).read()
    keys = list(_own_keys(Path(person_home(os.environ, os.geteuid()), ".ssh"), listed))
    if keys and _confirmed(keys):
        for key in keys:
            let_in(where, key)
    elif not listed.keys:
        print_lines(HOW)


def _confirmed(keys: list[AuthorizedKey]) -> bool:
    print_table(("NAME", "TYPE", "FINGERPRINT"), [(key.name, key.type, key.fingerprint) for key in keys])
    which = "this key of yours" if len(keys) == 1 else "these keys of yours"
    return confirmed(f"Permit {which} to log in over SSH, with all roles ({', '.join(ROLES)})?", default=True)


def _own_keys(directory: Path, listed: KeyList) -> Iterator[AuthorizedKey]:
    """:returns: the keys that are not listed yet. For unusable ones the reason is printed."""
    blobs, names = {key.blob for key in listed.keys}, {key.name for key in listed.keys}
    for path in sorted(directory.glob("*.pub"), key=_rank):
        try:
            key = _read(path)
            if key.blob in blobs:
                continue
            if key.name in names:
                raise UsageError(f"another key has the name {key.name}; use --name of ironcurtain ssh add-key")
        except UsageError as e:
            print_lines(f"left out {one_line(path.name)}: {e}")
            continue
        blobs.add(key.blob)
        names.add(key.name)
        yield key


def _read(path: Path) -> AuthorizedKey:
    try:
        if not path.is_file():
            raise UsageError("is not a regular file")
        with path.open("rb") as file:
            return read_key(file, ",".join(ROLES))
    except OSError as e:
        raise UsageError(f"cannot be read: {e.strerror}") from None
    except ConfigurationError as e:
        raise UsageError(e.detail) from None


def _rank(path: Path) -> tuple[int, str]:
    return USUAL.index(path.name) if path.name in USUAL else len(USUAL), path.name
