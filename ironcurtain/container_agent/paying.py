"""Who pays for the models of an agent, and which of these accounts have reached a limit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ironcurtain.accounts.limits import AccountLimits
from ironcurtain.accounts.payers import Payer, Payers
from ironcurtain.accounts.places import Accounts
from ironcurtain.agents.adapter import Adapter
from ironcurtain.mitm_proxy.recording import ModelTraffic, ProxiedResponse
from ironcurtain.providers.rules import ProviderRule, provider_rules
from ironcurtain.session.model import SessionRequest
from ironcurtain.session.parts import Services


class Paying:
    """
    :param adapter: of the agent.
    :param environ: the environment of this process, for keys.
    """

    def __init__(self, adapter: Adapter, services: Services, environ: Mapping[str, str]) -> None:
        self._adapter, self._services, self._environ = adapter, services, environ

    @property
    def accounts(self) -> Accounts:
        """All accounts of the home."""
        return Accounts(self._services.home, self._services.settings.accounts, self._environ)

    def payers(self, request: SessionRequest) -> tuple[Payer, ...]:
        """
        :returns: the accounts that pay; none for an agent without a model.
        :raises ConfigurationError: nobody pays for the agent's model, or it is unclear who does.
        """
        settings, adapter = self._services.settings, self._adapter
        payers = Payers(adapter.display_name, adapter.providers, settings.providers, self.accounts)
        return payers.chosen(str(request.options.get("account") or ""), settings.agents.accounts)

    def rules(self, payers: Iterable[Payer]) -> tuple[ProviderRule, ...]:
        """:returns: the rules of the providers that these accounts pay for."""
        return provider_rules(self._services.settings.providers, [payer.provider for payer in payers])

    def limited(self, request: SessionRequest) -> float:
        """
        :returns: the seconds until the accounts can be used that would pay; 0: now, as far as this process knows.
        :raises ConfigurationError: see :meth:`payers`.
        """
        return self._services.limits.left(payer.words for payer in self.payers(request))

    def noting_limits(
        self, payers: Mapping[str, Payer], heard: Callable[[ModelTraffic], None]
    ) -> Callable[[ModelTraffic], None]:
        """
        :param payers: by their providers.
        :param heard: called with each event.
        :returns: a function to call with each event, which also notes what it says of limits.
        """

        def note(event: ModelTraffic) -> None:
            if isinstance(event, ProxiedResponse) and event.provider in payers:
                note_limit(self._services.limits, payers[event.provider].words, event)
            heard(event)

        return note


def note_limit(limits: AccountLimits, account: str, response: ProxiedResponse) -> None:
    """Note what a provider's response says of the limit of an account."""
    if response.wait is not None:
        limits.reached(account, response.wait)
    elif 0 < response.status < 400:
        limits.answered(account)
