"""Which account pays for each agent, and which ones no agent can use: for ``config check``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ironcurtain.home.layout import Home


def payer_notes(where: Home) -> Iterator[str]:
    """
    :returns: for each agent that an account could pay for, which one does, or why none; and what no agent can use.
    :raises ConfigurationError: the settings are wrong.
    """
    from ironcurtain.accounts.payers import Payers
    from ironcurtain.agents.registry import installed
    from ironcurtain.cli.account_list import accounts
    from ironcurtain.cli.output import settings
    from ironcurtain.errors import ConfigurationError
    from ironcurtain.home.agent_names import marked
    from ironcurtain.llm.dialects import DIALECTS

    effective, found, names = settings(where).settings, accounts(where), set[str]()
    used = set(DIALECTS)
    for agent in installed().listing():
        used |= set(agent.providers)
        payers = Payers(agent.display_name, agent.providers, effective.providers, found)
        possible = [payer.name for payer in payers.all()]
        names |= set(possible)
        if not possible and agent.id != effective.default_agent:
            continue
        try:
            chosen = payers.chosen("", effective.agents.accounts)
        except ConfigurationError as e:
            yield f"agent {marked(agent.id)}: {e.detail}"
        else:
            if chosen:
                yield f"agent {marked(agent.id)}: paid by {'; '.join(payer.words for payer in chosen)}"
    for name in effective.providers:
        if name not in used:
            yield f"provider {name}: no agent here uses it"
    for name in effective.agents.accounts:
        if name not in names:
            yield f"agents.accounts: {name} is no account that an agent here can use"
