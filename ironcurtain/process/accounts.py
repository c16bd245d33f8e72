"""
The account that a session runs as: its MCP servers, its interpreter, its container.

It is the account of this process, unless that is root: what agents cause must not run as root.
"""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ironcurtain.errors import ConfigurationError
from ironcurtain.process.search_path import required_program

FREE_UIDS = range(61184, 65520)
"""
Uids that belong to no person: systemd reserves them for services (its UIDS-GIDS.md). The first unused one is the
default.
"""

READ, WRITE, SEARCH = 4, 2, 1
"""Permissions, as bits of a mode; creating files in a directory requires writing and searching it."""

HIGHEST_ID = 2**32 - 2
"""The highest uid and gid; one more means "unchanged" (chown(2))."""


class Account(msgspec.Struct, frozen=True):
    """
    A user of this machine.

    :param gid: group of new files, and the only group of the account's processes.
    :param name: empty if the system has no such user.
    :param home: its home directory in the system's database; ``/`` if there is no such user.
    :param named: whether the setting names it; else it was chosen.
    """

    uid: int
    gid: int
    name: str = ""
    home: str = "/"
    named: bool = False

    @property
    def is_root(self) -> bool:
        """Whether it is root; containers never run as root."""
        return self.uid == 0

    @property
    def switched(self) -> Account | None:
        """The account itself, if it is not that of this process, so that programs have to be started differently."""
        return self if self.uid != os.geteuid() else None

    @property
    def ids(self) -> str:
        """Uid and gid, separated by a colon."""
        return f"{self.uid}:{self.gid}"

    def __str__(self) -> str:
        return self.name or f"uid {self.uid}"

    def may(self, wanted: int, status: os.stat_result) -> bool:
        """
        :param wanted: :data:`READ`, :data:`WRITE`, :data:`SEARCH`, or a combination.
        :returns: whether owner, group and mode of a file or directory permit it.
        """
        mode = stat.S_IMODE(status.st_mode)
        shift = 6 if status.st_uid == self.uid else 3 if status.st_gid == self.gid else 0
        return self.is_root or (mode >> shift) & wanted == wanted

    def command(self, argv: Sequence[str]) -> list[str]:
        """
        :returns: the command line with which root runs ``argv`` as this account: with no other group, so not in
            docker's, for example, which gives root's rights.
        """
        return [
            required_program("setpriv"),
            f"--reuid={self.uid}",
            f"--regid={self.gid}",
            "--clear-groups",
            "--inh-caps=-all",
            "--",
            *argv,
        ]


def session_account(run_as: str, environ: Mapping[str, str], workspace: Path | None, euid: int) -> Account:
    """
    Choose the account of a session.

    For a process that is not root, it is the process's. For root it is ``run_as``, else the owner of the workspace,
    else the caller of ``sudo``; of these two the first that is not root. Otherwise it is an unused uid.

    :param run_as: the setting: a name or a uid; empty: choose.
    :param environ: the environment of this process, for ``SUDO_UID`` and ``SUDO_GID``.
    :param workspace: the session's directory; ``None`` for a new one.
    :param euid: uid of this process.
    :raises ConfigurationError: there is no such user, only root could run as it, or no uid is free.
    """
    if run_as:
        chosen = replace(_named(run_as), named=True)
        if euid not in (0, chosen.uid):
            raise ConfigurationError("config.toml", "only root can run sessions as another user", field="run_as")
        return chosen
    if euid != 0:
        return _account(euid, os.getegid())
    return _owner(workspace) or _caller(environ) or _unused()


def _named(run_as: str) -> Account:
    if (uid := _number(run_as)) is not None:
        return _account(uid)
    try:
        return _account(pwd.getpwnam(run_as).pw_uid)
    except (KeyError, ValueError):  # ValueError: it contains a NUL byte
        raise ConfigurationError("config.toml", f"there is no user {run_as!r} here", field="run_as") from None


def _owner(workspace: Path | None) -> Account | None:
    if workspace is None or (status := workspace.stat()).st_uid == 0:
        return None
    return _account(status.st_uid)


def _caller(environ: Mapping[str, str]) -> Account | None:
    uid, gid = (_number(environ.get(name, "")) for name in ("SUDO_UID", "SUDO_GID"))
    return _account(uid, gid or None) if uid else None


def _unused() -> Account:
    for uid in FREE_UIDS:
        if not (account := _account(uid)).name:
            return account
    raise ConfigurationError("config.toml", "all uids for services are in use: choose an account", field="run_as")


def _number(text: str) -> int | None:
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(HIGHEST_ID))):
        return None
    return number if (number := int(text)) <= HIGHEST_ID else None


def _account(uid: int, gid: int | None = None) -> Account:
    try:
        known = pwd.getpwuid(uid)
    except KeyError:
        return Account(uid, uid if gid is None else gid)
    return Account(uid, known.pw_gid if gid is None else gid, known.pw_name, known.pw_dir)
