"""
The logins that IronCurtain keeps, one file per account.

They are apart from those of a person's own programs: a refresh token works once, so that two programs that had the same
one would log each other out.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import msgspec

from ironcurtain.accounts.login import Login, is_token
from ironcurtain.accounts.login_files import FILE_LIMIT
from ironcurtain.errors import ConfigurationError, NotFound
from ironcurtain.files.atomic import write_atomically
from ironcurtain.files.locks import FileLock, locked
from ironcurtain.files.private import read_private
from ironcurtain.home.account_sections import AccountName
from ironcurtain.home.layout import private_directory
from ironcurtain.home.structured import check_version
from ironcurtain.secrets.redaction import Secret

FORMAT_VERSION: Final = 1
"""Format version of the files; newer ones are refused."""


class _Stored(msgspec.Struct):
    kind: AccountName
    access: str
    refresh: str | None
    expires: float | None
    extra: dict[str, str]
    owner: str
    plan: str
    ends: float | None = None
    refused: bool = False


class KeptLogin(msgspec.Struct, frozen=True):
    """The file of one account."""

    path: Path
    name: AccountName

    def read(self) -> Login:
        """
        :raises NotFound: there is no such login.
        :raises ConfigurationError: the file is damaged, or open to others.
        """
        if not self.path.exists():
            raise NotFound(f"there is no login {self.name}: run ironcurtain login {self.name}")
        return _parsed(str(self.path), read_private(self.path, FILE_LIMIT))

    def write(self, login: Login) -> None:
        """Replace the login; it is on disk when this returns. The caller holds the lock."""
        stored = _Stored(
            login.kind,
            login.access.reveal(),
            login.refresh.reveal() if login.refresh is not None else None,
            login.expires,
            {name: secret.reveal() for name, secret in login.extra.items()},
            login.owner,
            login.plan,
            login.ends,
            login.refused,
        )
        fields = {"version": FORMAT_VERSION, **msgspec.to_builtins(stored)}
        write_atomically(self.path, json.dumps(fields).encode() + b"\n")

    def remove(self) -> bool:
        """:returns: whether there was a login, which is removed once no process renews it."""
        if not self.path.exists():
            return False
        with locked(self.lock().path):
            self.path.unlink(missing_ok=True)
        return True

    def lock(self) -> FileLock:
        """:returns: the lock to hold while the login is renewed or changed."""
        private_directory(self.path.parent)
        return FileLock(self.path.with_suffix(".lock"))


class KeptLogins(msgspec.Struct, frozen=True):
    """:param directory: it may be missing."""

    directory: Path

    def of(self, name: AccountName) -> KeptLogin:
        """:returns: the file of an account, which need not exist."""
        return KeptLogin(self.directory / f"{name}.json", name)


def _parsed(path: str, data: bytes) -> Login:
    try:
        fields = msgspec.json.decode(data)
        check_version(path, fields, FORMAT_VERSION)
        stored = msgspec.convert(fields, _Stored)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):  # which could say what is in it
        stored = None
    if stored is None or not all(map(is_token, (stored.access, stored.refresh or "-", *stored.extra.values()))):
        raise ConfigurationError(path, "is damaged: remove it, and log in again with ironcurtain login")
    extra = {name: Secret(value, path) for name, value in stored.extra.items()}
    refresh = Secret(stored.refresh, path) if stored.refresh else None
    return Login(
        stored.kind,
        Secret(stored.access, path),
        refresh,
        stored.expires,
        extra,
        stored.owner,
        stored.plan,
        stored.ends,
        stored.refused,
    )
