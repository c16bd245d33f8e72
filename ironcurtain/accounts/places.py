"""Where the accounts of a home are, and in which state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Literal, get_args

import msgspec

from ironcurtain.accounts.kept import KeptLogins
from ironcurtain.accounts.login import NAMES, Login
from ironcurtain.accounts.login_files import USUAL_FILES
from ironcurtain.accounts.named_login import RENEWALS, read_program_login
from ironcurtain.accounts.renewing import renewal_request
from ironcurtain.errors import ConfigurationError, IronCurtainError
from ironcurtain.home.account_sections import AccountName, AccountSettings
from ironcurtain.home.layout import Home
from ironcurtain.home.user_paths import user_path

ACCOUNT_NAMES: Final[tuple[AccountName, ...]] = get_args(AccountName)
"""The accounts to which one logs in."""

VARIABLES: Final[Mapping[AccountName, str]] = {"claude": "CLAUDE_CODE_OAUTH_TOKEN"}
"""The environment variables in which the agents' programs look for tokens that last."""


class AccountPlace(msgspec.Struct, frozen=True):
    """
    One account that can pay.

    :ivar origin: ``login``: kept by IronCurtain; ``cli``: of a person's own program; ``token``: a token that lasts.
    :ivar shown: where it is, for people.
    :ivar path: the file of a login; ``None`` for a token.
    """

    name: AccountName
    origin: Literal["login", "cli", "token"]
    shown: str
    path: Path | None = None


class AccountState(msgspec.Struct, frozen=True):
    """
    What is known of an account without asking its provider. It contains no token.

    :ivar title: whose and which account it is.
    :ivar expires: when it ends, in seconds since the epoch; ``None``: it does not end, or nobody knows.
    :ivar renewed: whether IronCurtain renews its token until then.
    :ivar problem: why it cannot be used, and what to do; empty if it can.
    """

    title: str
    expires: float | None = None
    renewed: bool = False
    problem: str = ""


class Accounts:
    """
    :param settings: the tables ``[accounts.NAME]``.
    :ivar environ: the environment of this process.
    :ivar kept: the logins that IronCurtain keeps.
    """

    def __init__(self, home: Home, settings: Mapping[AccountName, AccountSettings], environ: Mapping[str, str]) -> None:
        self._settings, self.environ, self.kept = settings, environ, KeptLogins(home.accounts)

    def token_settings(self, name: AccountName) -> AccountSettings:
        """:returns: the table of an account; the defaults if there is none."""
        return self._settings.get(name, AccountSettings())

    def all(self) -> Iterator[AccountPlace]:
        """:returns: every account that can pay, two of one name if nothing says which."""
        for name in ACCOUNT_NAMES:
            yield from self.of(name)

    def of(self, name: AccountName) -> tuple[AccountPlace, ...]:
        """:returns: the places of one account: none, one, or two of which a person has to choose."""
        table, kept = self.token_settings(name), self.kept.of(name)
        login = AccountPlace(name, "login", f"ironcurtain login {name}", kept.path)
        if table.token.has_source:
            source = table.token
            shown = f"file {source.file}" if source.file else f"command {source.command}" if source.command else ""
            return (AccountPlace(name, "token", shown or f"environment variable {source.env}"),)
        if table.source == "cli":
            shown, path = self._program_file(name, table.file)
            return (AccountPlace(name, "cli", shown, path),)
        if table.source == "login":
            return (login,)
        variable = VARIABLES.get(name, "")
        given = AccountPlace(name, "token", f"environment variable {variable}")
        return (*((login,) if kept.path.exists() else ()), *((given,) if self.environ.get(variable) else ()))

    def unused(self) -> Iterator[AccountPlace]:
        """:returns: logins of a person's own programs for accounts that have no other place: they have to be named."""
        for name in ACCOUNT_NAMES:
            shown, path = self._program_file(name, "")
            place = AccountPlace(name, "cli", shown, path)
            if not self.of(name) and not self.state(place, 0.0).problem:
                yield place

    def chosen(self, name: AccountName) -> AccountPlace | None:
        """
        :returns: the place of an account; ``None`` if there is none.
        :raises ConfigurationError: there are two.
        """
        places = self.of(name)
        if len(places) > 1:
            raise ConfigurationError(
                "config.toml",
                f"there are two: {' and '.join(place.shown for place in places)}: choose one in config.toml with "
                f'[accounts.{name}] source = "login" or token = {{ env = "{VARIABLES[name]}" }}',
                field=f"accounts.{name}",
            )
        return places[0] if places else None

    def state(self, place: AccountPlace, now: float) -> AccountState:
        """
        :param now: seconds since the epoch.
        :returns: the state of an account. No command is run for it, which could ask for a password.
        """
        name = NAMES[place.name]
        if place.path is None:
            missing = place.shown.startswith("environment") and not self.environ.get(place.shown.rpartition(" ")[2])
            return AccountState(name, problem=f"the {place.shown} is not set" if missing else "")
        try:
            if place.origin == "login":
                login = self.kept.of(place.name).read()
            else:
                login = read_program_login(place.name, place.path, place.shown)
        except IronCurtainError as e:
            return AccountState(name, problem=str(e).removeprefix(f"{place.shown}: "))
        return _state(place, login, now)

    def _program_file(self, name: AccountName, file: str) -> tuple[str, Path]:
        usual = (file,) if file else USUAL_FILES[name]
        paths = [(shown, Path(user_path(shown, self.environ))) for shown in usual]
        return next(((shown, path) for shown, path in paths if path.exists()), paths[0])


def _state(place: AccountPlace, login: Login, now: float) -> AccountState:
    renewed = place.origin == "login" and renewal_request(login) is not None
    expires = login.ends if renewed else login.expires
    ended = expires is not None and expires <= now
    problem = ""
    if place.origin == "login" and (login.refused or ended):
        problem = f"it is no longer valid: run ironcurtain login {place.name}"
    elif place.origin == "cli" and ended:
        problem = f"it has expired: {RENEWALS[place.name]}"
    return AccountState(login.title, expires, renewed, problem)
