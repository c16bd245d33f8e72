"""Which accounts at model providers there are: for ``login``, ``doctor`` and ``config check``. No token is shown."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ironcurtain.cli.findings import HINT, OK, WRONG, Finding
from ironcurtain.cli.output import settings
from ironcurtain.text.display import one_line

if TYPE_CHECKING:
    from ironcurtain.accounts.places import AccountPlace, Accounts, AccountState
    from ironcurtain.home.account_sections import AccountName
    from ironcurtain.home.layout import Home


def accounts(where: Home) -> Accounts:
    """
    :returns: the accounts of a home.
    :raises ConfigurationError: the settings are wrong.
    """
    from ironcurtain.accounts.places import Accounts

    return Accounts(where, settings(where).settings.accounts, os.environ)


def states(found: Accounts) -> list[tuple[AccountPlace, AccountState]]:
    """:returns: all accounts with their states."""
    return [(place, found.state(place, time.time())) for place in found.all()]


def until(state: AccountState) -> str:
    """:returns: how long an account lasts, for people."""
    if state.expires is None:
        return "renewed" if state.renewed else "-"
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(state.expires))


def findings(where: Home) -> Iterator[Finding]:
    """:returns: a finding for each account, and a hint where there are two of one name."""
    from ironcurtain.accounts.places import ACCOUNT_NAMES

    found = accounts(where)
    for place, state in states(found):
        what, end = f"account {place.name}", f", until {until(state)}" if state.expires is not None else ""
        if state.problem:
            yield Finding(what, WRONG, f"{place.shown}: {one_line(state.problem)}")
        else:
            yield Finding(what, OK, f"{one_line(state.title)}, from {place.shown}{end}")
    for name in ACCOUNT_NAMES:
        if problem := choice(found, name):
            yield Finding(f"account {name}", HINT, problem)


def choice(found: Accounts, name: AccountName) -> str:
    """:returns: that a person has to choose between two accounts; else empty."""
    from ironcurtain.errors import ConfigurationError

    try:
        found.chosen(name)
    except ConfigurationError as e:
        return f"{e.detail}"
    return ""
