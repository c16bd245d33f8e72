"""How sandboxed servers of a session reach the network."""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ironcurtain.accounts.source import TokenSource
from ironcurtain.mcp_proxy.servers_config import CommandServer, ServerConfig
from ironcurtain.network.access import Access
from ironcurtain.network.dialling import Dialer
from ironcurtain.network.gateway import WayOut
from ironcurtain.network.judge import NetworkJudge
from ironcurtain.session.parts import Core

if TYPE_CHECKING:
    from ironcurtain.mitm_proxy.authority import Authority
    from ironcurtain.mitm_proxy.proxy import MitmProxy


def authority_for(servers: Sequence[ServerConfig], core: Core) -> Authority | None:
    """:returns: what signs the certificates with which refusals are given; ``None``: no server has a network."""
    sandboxes = (server.sandbox for server in servers if isinstance(server, CommandServer))
    if not any(sandbox is not None and sandbox.access for sandbox in sandboxes):
        return None
    from ironcurtain.mitm_proxy.authority import Authority  # few sessions need it

    return Authority.load_or_make(core.services.home.authority, core.services.now)


def way_out(core: Core, authority: Authority | None, reactor: Any) -> WayOut:
    """
    :param authority: see :func:`authority_for`; what is permitted is not decrypted.
    :returns: what the connections of servers take, and those of their installation.
    """
    services = core.services
    dialer = Dialer(reactor, reactor.nameResolver, services.proxies)
    if authority is None:
        return WayOut(reactor, dialer)
    from ironcurtain.mitm_proxy.proxy import MitmProxy, MitmSurroundings

    around = MitmSurroundings(reactor, reactor.nameResolver, os.urandom, lambda: uuid.uuid4().hex, services.proxies)

    def proxy(judge: NetworkJudge, access: Access) -> MitmProxy:
        return MitmProxy(
            session_id=core.id,
            rules=(),
            account=_no_account,
            authority=authority,
            audit=core.audit,
            redactor=services.redactor,
            surroundings=around,
            events=lambda event: None,
            down=lambda why: core.log_line("session", why),
            judge=judge,
            undecrypted=access,
        )

    return WayOut(reactor, dialer, proxy)


def _no_account(name: str) -> TokenSource:
    raise AssertionError(f"there is no provider {name}")
