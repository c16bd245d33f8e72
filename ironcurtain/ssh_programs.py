"""What a logged-in key can do over SSH: the console, attaching, and commands."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from twisted.internet.threads import deferToThreadPool

from ironcurtain.console.console import Console
from ironcurtain.control.client import ControlClient
from ironcurtain.fleet.lacking import lists_lack
from ironcurtain.home.host_numbers import HostNumber, read_number
from ironcurtain.home.layout import Home
from ironcurtain.home.registry import SessionRegistry
from ironcurtain.home.session_paths import SessionPaths
from ironcurtain.operations import Principal
from ironcurtain.operations.api import LocalApi, OversightApi
from ironcurtain.operations.home_source import HomeSource
from ironcurtain.operations.operations import Operations
from ironcurtain.session.elsewhere import session_directory
from ironcurtain.session.recorded_summary import summary_of
from ironcurtain.session.summary import SessionSummary
from ironcurtain.session.verification import verify_records
from ironcurtain.ssh.attaching import Attaching
from ironcurtain.ssh.channel import SessionChannel
from ironcurtain.ssh.programs import OwnPrograms


def make_programs(
    reactor: Any, home: Home, operations: Operations, socket: str, witnesses: Callable[[], Sequence[str]]
) -> OwnPrograms:
    """
    :param operations: of this process.
    :param socket: its own control socket; other processes are reached by theirs.
    :param witnesses: returns where the heads of the audit logs of this home go.
    :returns: the programs that run over SSH, for a logged-in key.
    """

    lacking = partial(lists_lack, home)

    def source(who: Principal) -> HomeSource:
        own = LocalApi(operations, who)
        return HomeSource(
            reactor,
            SessionRegistry(home.registry),
            home.daemon_socket,
            lambda path, host: own if path == socket else ControlClient(reactor, path, who, host),
            lacking,
        )

    def console(who: Principal, channel: SessionChannel) -> Console:
        shown = Console(source(who), channel, reactor, who.name, environ=channel.environ)
        shown.start()
        return shown

    attaching = Attaching(reactor, operations.terminal, lambda who, name, mode: source(who).ticket(name, mode))

    async def files(who: Principal, name: str) -> SessionPaths:
        if isinstance(number := read_number(name), HostNumber):
            from ironcurtain.fleet.copies import copy_session

            return await copy_session(reactor, home, number, who)
        return session_directory(home, name)

    async def report(who: Principal, name: str) -> SessionSummary:
        paths, number = await files(who, name), read_number(name)

        def judge() -> SessionSummary:
            if isinstance(number, HostNumber):
                from ironcurtain.fleet.copies import verify_copy

                return summary_of(verify_copy(home, number, paths))
            return summary_of(*verify_records(home, witnesses(), chosen=[paths]).sessions)

        return await deferToThreadPool(reactor, reactor.getThreadPool(), judge)  # a log is long

    def registered() -> list[int]:
        return [entry.number for entry in SessionRegistry(home.registry).here() if entry.control_socket]

    def lacks(asked: OversightApi) -> Sequence[str]:
        return asked.lacking() if isinstance(asked, HomeSource) else ()

    return OwnPrograms(console, attaching.attach, source, files, report, time.time, lacks, registered)
