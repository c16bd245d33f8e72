"""The records of sessions of other hosts, copied and verified here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ironcurtain.cli.output import print_lines
from ironcurtain.cli.run import run
from ironcurtain.errors import IronCurtainError
from ironcurtain.fleet.copies import copy_session, numbers, verify_copy
from ironcurtain.fleet.reach import require_member
from ironcurtain.fleet.trust import read_trust
from ironcurtain.home.host_numbers import HostNumber
from ironcurtain.home.layout import Home
from ironcurtain.home.session_paths import SessionPaths
from ironcurtain.session.verification import SessionRecords
from ironcurtain.text.display import one_line


def records_of_others(where: Home, chosen: Sequence[HostNumber] | None) -> tuple[SessionRecords, ...]:
    """
    :param chosen: the sessions; ``None``: all of all hosts, of which those that are not reached are named on standard
        error.
    :returns: their records, judged with the keys of ``fleet.trust`` and with the heads that this host keeps.
    :raises NotFound: a session that was chosen is not there, or its host.
    """
    require_member(where)
    copies = run(lambda reactor: _copied(reactor, where, chosen))
    return tuple(verify_copy(where, number, paths) for number, paths in copies)


async def _copied(
    reactor: Any, where: Home, chosen: Sequence[HostNumber] | None
) -> list[tuple[HostNumber, SessionPaths]]:
    if chosen is not None:
        return [(number, await copy_session(reactor, where, number)) for number in chosen]
    found = []
    for host in sorted(read_trust(where.fleet_trust).hosts):
        try:
            known = await numbers(reactor, where, host)
        except IronCurtainError as e:
            print_lines(f"Without {host}: {one_line(str(e), 300)}", err=True)
            continue
        for number in known:
            try:
                found.append((number, await copy_session(reactor, where, number)))
            except IronCurtainError as e:
                print_lines(f"Without {number}: {one_line(str(e), 300)}", err=True)
    return found
