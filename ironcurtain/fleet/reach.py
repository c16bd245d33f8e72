"""The control API of another host's daemon, through the socket that this host's daemon has for it."""

from __future__ import annotations

from typing import Any

from ironcurtain.control.client import ControlClient
from ironcurtain.errors import NotFound
from ironcurtain.fleet.serving import DAEMON
from ironcurtain.fleet.trust import read_trust
from ironcurtain.home.layout import Home
from ironcurtain.operations import Principal
from ironcurtain.process.own_programs import daemon_command


def daemon_of(reactor: Any, home: Home, host: str, who: Principal | None = None) -> ControlClient:
    """
    :param who: the principal, if not the local user.
    :returns: the operations of a host's daemon.
    :raises NotFound: this host does not reach it; the message says why.
    """
    require_member(home)
    if host not in read_trust(home.fleet_trust).hosts:
        raise NotFound(f"fleet.trust does not name {host}: 'ironcurtain fleet trust' adds a host")
    if not (socket := home.fleet_socket(host, DAEMON)).exists():
        raise NotFound(f"{host} is not here: see 'ironcurtain fleet status'")
    return ControlClient(reactor, str(socket), who, host)


def require_member(home: Home) -> None:
    """:raises NotFound: no daemon runs here as a member of a fleet."""
    if not home.fleet_members.exists():
        raise NotFound(
            f"no daemon runs here as a member of a fleet: ironcurtain fleet init (or join), then {daemon_command()}"
        )
