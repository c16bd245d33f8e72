"""Which accounts can pay for an agent's models, and which one does: never one of several that nobody chose."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from ironcurtain.accounts.login import NAMES
from ironcurtain.accounts.places import VARIABLES, AccountPlace, Accounts
from ironcurtain.errors import ConfigurationError, UsageError
from ironcurtain.home.account_sections import AccountName
from ironcurtain.home.sections import Provider
from ironcurtain.providers.keys import DEFAULT_VARIABLES, has_key, key_origin, misplaced
from ironcurtain.providers.registry import KNOWN_PROVIDERS, family

TOKEN_SUFFIX: Final = "-token"
"""What is added to the name of an account if a token in the environment is meant, beside a login of the same name."""


class Payer(msgspec.Struct, frozen=True):
    """
    An account that can pay.

    :ivar name: as ``--account`` and the setting ``accounts`` of ``[agents]`` have it.
    :ivar provider: name of the provider that it pays for.
    :ivar words: what it is and where it is from, for people.
    :ivar place: of a login; ``None`` for a key.
    """

    name: str
    provider: str
    words: str
    place: AccountPlace | None = None

    @property
    def family(self) -> str:
        """The provider whose models it pays for."""
        return family(self.provider)


class Payers:
    """
    The accounts that can pay for one agent.

    :param agent: its display name.
    :param providers: those that the agent can use, the preferred one first.
    :param tables: the settings' ``providers``.
    """

    def __init__(
        self, agent: str, providers: Sequence[str], tables: Mapping[str, Provider], accounts: Accounts
    ) -> None:
        self._agent, self._providers, self._tables, self._accounts = agent, providers, tables, accounts

    def all(self) -> Iterator[Payer]:
        """:returns: all of them."""
        for provider in self._providers:
            known = KNOWN_PROVIDERS.get(provider)
            if known is not None and known.account:
                yield from self._logins(provider, known.account)
            elif known is not None and known.settings and provider not in self._tables:
                continue  # a key alone does not say at which place of the cloud
            elif has_key(provider, key := self._tables.get(provider, Provider()).key, self._accounts.environ):
                words = f"the API key for {provider} from the {key_origin(provider, key, self._accounts.environ)}"
                yield Payer(provider, provider, words)

    def chosen(self, wanted: str, preferred: Sequence[str]) -> tuple[Payer, ...]:
        """
        :param wanted: the value of ``--account``; empty for none.
        :param preferred: the setting ``accounts`` of ``[agents]``.
        :returns: one account for each family of models.
        :raises UsageError: there is no such account.
        :raises ConfigurationError: no account can pay, or several can and nothing says which one.
        """
        found = list(self.all())
        if wanted:
            if (payer := next((payer for payer in found if payer.name == wanted), None)) is None:
                raise UsageError(f"{self._agent} can use no account {wanted!r}: {self._choice(found)}")
            return (payer,)
        if not found and self._providers:
            raise self._nothing()
        families: dict[str, list[Payer]] = {}
        for payer in found:
            families.setdefault(payer.family, []).append(payer)
        return tuple(self._one(payers, preferred) for payers in families.values())

    def _logins(self, provider: str, name: AccountName) -> Iterator[Payer]:
        places = self._accounts.of(name)
        for place in places:
            beside = len(places) > 1 and place.origin == "token"
            yield Payer(f"{name}{TOKEN_SUFFIX}" if beside else name, provider, _words(name, place), place)

    def _one(self, payers: list[Payer], preferred: Sequence[str]) -> Payer:
        if len(payers) == 1:
            return payers[0]
        by_name = {payer.name: payer for payer in payers}
        for name in preferred:
            if name in by_name:
                return by_name[name]
        accounts = "; ".join(f"{payer.name}: {payer.words}" for payer in payers)
        raise ConfigurationError(
            "config.toml",
            f"several accounts could pay for {self._agent} ({accounts}): choose one with --account "
            f'{payers[0].name}, or for good with accounts = ["{payers[0].name}"] under [agents]',
            field="agents.accounts",
        )

    def _nothing(self) -> ConfigurationError:
        ways = "; ".join(way for provider in self._providers if (way := self._way(provider)))
        wrong = misplaced(self._accounts.environ)
        return ConfigurationError(
            "config.toml",
            f"{self._agent} has no account that pays for its model{f' ({wrong})' if wrong else ''}: {ways}",
            field=f"providers.{self._providers[0]}.key",
        )

    def _way(self, provider: str) -> str:
        known = KNOWN_PROVIDERS.get(provider)
        if known is not None and known.account:
            variable = VARIABLES.get(known.account, "")
            token = f" (or set {variable}, from claude setup-token)" if variable else ""
            return f"for a {NAMES[known.account]}, run ironcurtain login {known.account}{token}"
        if known is not None and known.settings:
            return ""  # the page on providers tells
        variable = DEFAULT_VARIABLES.get(provider, "")
        source = f"set {variable}, or its source" if variable else "set its source"
        return f"for an API key of {provider}, {source} as key in [providers.{provider}]"

    def _choice(self, found: Iterable[Payer]) -> str:
        names = [payer.name for payer in found]
        return f"choose one of {', '.join(names)}" if names else self._nothing().detail


def _words(name: AccountName, place: AccountPlace) -> str:
    origin = {"login": "from", "cli": "from", "token": "from the"}[place.origin]
    return f"your {NAMES[name]} {origin} {place.shown}"
