"""A login of a person's own program on this machine: it is read, and never renewed or written."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ironcurtain.accounts.login import Login
from ironcurtain.accounts.login_files import FILE_LIMIT, read_login
from ironcurtain.accounts.source import Token
from ironcurtain.errors import ConfigurationError
from ironcurtain.files.private import file_stamp, read_private
from ironcurtain.home.account_sections import AccountName
from ironcurtain.secrets.redaction import Redactor

RENEWALS: Final[Mapping[AccountName, str]] = {
    "claude": "start claude, which renews it, or log in with claude /login",
    "chatgpt": "start codex, which renews it, or log in with codex login",
    "google": "start gemini, which renews it or logs in",
    "copilot": "log in with opencode auth login -p github-copilot",
}
"""What a person does about an expired login, by kind."""


KEYCHAIN: Final = (
    "Claude Code keeps its login in the Keychain of macOS, which is not read: run ironcurtain login claude"
)
"""What to do where that program has no file."""


def read_program_login(name: AccountName, path: Path, shown: str, platform: str = sys.platform) -> Login:
    """
    :param path: of the program's file; links are followed, as people keep their files elsewhere.
    :param shown: the path as the settings have it.
    :param platform: as :data:`sys.platform` has it.
    :raises ConfigurationError: there is no login, or it cannot be used; the message says what to do.
    """
    if not path.exists():
        advice = KEYCHAIN if (name, platform) == ("claude", "darwin") else RENEWALS[name]
        raise ConfigurationError(shown, f"there is no login: {advice}")
    return read_login(name, shown, read_private(path.resolve(), FILE_LIMIT))


class NamedLogin:
    """
    See :class:`~ironcurtain.accounts.source.TokenSource`.

    :param path: of the program's file, which is read again when it changes.
    :param shown: the path as the settings have it.
    :param redactor: learns the tokens.
    :raises ConfigurationError: the file cannot be used.
    """

    def __init__(self, kind: AccountName, path: Path, shown: str, redactor: Redactor) -> None:
        self.kind, self._path, self._shown, self._redactor = kind, path, shown, redactor
        self._stamp = file_stamp(path)
        self._login = self._read()
        self._token = self._login.token

    @property
    def description(self) -> str:
        """Which account pays."""
        return f"your {self._login.title}, from {self._shown}"

    def current(self) -> Token:
        """:returns: the token; the same object while the file is unchanged, or cannot be read."""
        stamp = file_stamp(self._path)
        if stamp != self._stamp:
            try:
                login = self._read()
            except ConfigurationError:  # the program may be about to write it: the next request looks again
                return self._token
            self._stamp = stamp
            if login != self._login:
                self._login, self._token = login, login.token
        return self._token

    async def refreshed(self, stale: Token) -> Token:
        """:raises ConfigurationError: the file still has the stale token: the message says what renews it."""
        current = self.current()
        if current.secret == stale.secret:
            raise ConfigurationError(self._shown, f"the login is no longer accepted: {RENEWALS[self.kind]}")
        return current

    def _read(self) -> Login:
        login = read_program_login(self.kind, self._path, self._shown)
        for secret in login.secrets():
            self._redactor.add(secret)
        return login
