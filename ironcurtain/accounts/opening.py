"""Make the sources of the tokens with which accounts pay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ironcurtain.accounts.kept_account import KeptAccount, Post
from ironcurtain.accounts.login import NAMES, Login, is_token
from ironcurtain.accounts.named_login import NamedLogin
from ironcurtain.accounts.places import VARIABLES, AccountPlace, Accounts
from ironcurtain.accounts.source import FixedToken, TokenSource
from ironcurtain.errors import ConfigurationError
from ironcurtain.home.sections import SecretSource
from ironcurtain.process.configured_secret import configured_secret
from ironcurtain.secrets.redaction import Redactor, Secret


class AccountSurroundings(msgspec.Struct, frozen=True):
    """
    :ivar reactor: for delays, commands and connections.
    :ivar post: sends renewals: see :func:`ironcurtain.accounts.token_endpoint.verified_endpoint`.
    :ivar now: seconds since the epoch.
    :ivar redactor: learns the tokens.
    """

    reactor: Any
    post: Post
    now: Callable[[], float]
    redactor: Redactor


async def open_account(accounts: Accounts, place: AccountPlace, around: AccountSurroundings) -> TokenSource:
    """
    :returns: the source of an account's tokens, which reads files and runs commands now.
    :raises NotFound: the login was removed.
    :raises ConfigurationError: the account cannot be used; the message says what to do.
    """
    if place.origin == "login":
        return KeptAccount(accounts.kept.of(place.name), around.post, around.reactor, around.now, around.redactor)
    if place.path is not None:
        return NamedLogin(place.name, place.path, place.shown, around.redactor)
    where, source = f"accounts.{place.name}.token", accounts.token_settings(place.name).token
    if not source.has_source:
        source = SecretSource(env=VARIABLES[place.name])
    found = await configured_secret(source, where, accounts.environ, around.reactor)
    secret = Secret(found.reveal().strip(), found.origin)
    if not is_token(secret.reveal()):
        raise ConfigurationError("config.toml", f"the value of the {place.shown} is not a token", field=where)
    around.redactor.add(secret)
    title = f"your {NAMES[place.name]}, from the {place.shown}"
    return FixedToken(place.name, Login(place.name, secret).token, title, f"put a new one into the {place.shown}")
