"""What ``ironcurtain doctor`` says about agents: their programs on this machine, and where they can run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ironcurtain.cli.findings import HINT, OK, Finding
from ironcurtain.cli.output import settings
from ironcurtain.home.agent_names import UNTESTED, UNTESTED_MARK

if TYPE_CHECKING:
    from ironcurtain.home.layout import Home
    from ironcurtain.process.accounts import Account


def agent_findings(where: Home, account: Account | None, has_engine: bool) -> Iterator[Finding]:
    """
    :param account: the account that sandboxed programs run as; ``None``: that of this process.
    :param has_engine: whether a Docker Engine answers whose containers are fit for agents.
    :returns: a finding for each agent.
    """
    from ironcurtain.accounts.payers import Payers
    from ironcurtain.accounts.places import Accounts
    from ironcurtain.agents.adapter import KEY_VARIABLES
    from ironcurtain.agents.registry import installed
    from ironcurtain.container_agent.places import Places, landlock_only, weakness
    from ironcurtain.sandbox import bubblewrap

    known = settings(where).settings
    without = bubblewrap.available(account)
    accounts = Accounts(where, known.accounts, os.environ)
    agents, held_by_less = installed(), False
    for name in (listed.id for listed in agents.listing() if not listed.problem):
        adapter = agents.find(name)
        machine = Places(adapter, known, os.environ)
        program = machine.program()
        lack = machine.lack(program) if program is not None else ""
        untested = f"; {UNTESTED_MARK}" if name in UNTESTED else ""
        payers = [each.words for each in Payers(name, adapter.providers, known.providers, accounts).all()]
        if program is None:
            there = "no program on this machine"
        else:
            there = f"{program.path} ({' '.join(filter(None, (program.origin, machine.version(program, account))))})"
        in_bubblewrap = program is not None and without is None and not lack
        places = [*(["in a container"] if has_engine else []), *(["with bubblewrap"] if in_bubblewrap else [])]
        paid = f"; paid by {', '.join(payers)}" if payers else "; no account"
        detail = f"{there}{paid}; runs {' or '.join(places) or 'nowhere'}{untested}"
        mend = ""
        if not places:
            missing = "Install Docker, or the agent's program with bubblewrap."
            mend = missing if program is None else f"{lack}." if lack else without or ""
        held_by_less |= in_bubblewrap and not has_engine
        lacks = bool(adapter.providers) and not payers
        if places and lacks:
            variable = KEY_VARIABLES.get(adapter.providers[0])
            key = f"export {variable}=... for a key, or " if variable else ""
            mend = " ".join(filter(None, (f"It needs an account: {key}ironcurtain login for a subscription.", mend)))
        yield Finding(f"agent {name}", OK if places and not lacks else HINT, detail, mend)
    if without is not None and not has_engine and (words := landlock_only(account)):
        yield Finding("agents with Landlock", HINT, "none but IronCurtain's own", f"{words}.")
    if held_by_less:
        yield Finding("agents with bubblewrap", OK, weakness())
