"""What a logged-in key can do over SSH: the console, attaching, and commands."""

from __future__ import annotations

import time
from typing import Any

from ironcurtain.console.console import Console
from ironcurtain.control.client import ControlClient
from ironcurtain.errors import NotFound
from ironcurtain.home.host_numbers import HostNumber, read_number
from ironcurtain.home.layout import Home
from ironcurtain.home.registry import SessionRegistry
from ironcurtain.home.session_paths import SessionPaths
from ironcurtain.operations import Principal
from ironcurtain.operations.api import LocalApi
from ironcurtain.operations.home_source import HomeSource
from ironcurtain.operations.operations import Operations
from ironcurtain.session.elsewhere import session_directory
from ironcurtain.session.model import Ticket
from ironcurtain.ssh.attaching import Attaching
from ironcurtain.ssh.channel import SessionChannel
from ironcurtain.ssh.programs import OwnPrograms
from ironcurtain.terminal.model import Mode


def make_programs(reactor: Any, home: Home, operations: Operations, socket: str) -> OwnPrograms:
    """
    :param operations: of this process.
    :param socket: its own control socket; other processes are reached by theirs.
    :returns: the programs that run over SSH, for a logged-in key.
    """

    def source(who: Principal) -> HomeSource:
        own = LocalApi(operations, who)
        return HomeSource(
            reactor,
            SessionRegistry(home.registry),
            home.daemon_socket,
            lambda path, host: own if path == socket else ControlClient(reactor, path, who, host),
        )

    def console(who: Principal, channel: SessionChannel) -> Console:
        shown = Console(source(who), channel, reactor, who.name, environ=channel.environ)
        shown.start()
        return shown

    async def ticket(who: Principal, session: str, mode: Mode) -> Ticket:
        entries = SessionRegistry(home.registry).live()
        owner = next((entry for entry in entries if session in (str(entry.number), entry.session_id)), None)
        if owner is None or not owner.control_socket:
            raise NotFound(f"there is no session {session}: see 'sessions'")
        return await ControlClient(reactor, owner.control_socket, who, owner.host).ticket(owner.session_id, mode)

    attaching = Attaching(reactor, operations.terminal, ticket)

    async def files(who: Principal, name: str) -> SessionPaths:
        if isinstance(number := read_number(name), HostNumber):
            from ironcurtain.fleet.copies import copy_session

            return await copy_session(reactor, home, number, who)
        return session_directory(home, name)

    return OwnPrograms(console, attaching.attach, source, files, time.time)
