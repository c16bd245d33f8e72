"""A session that a command of this host starts on another host of its fleet: a certain one, or one with room."""

from __future__ import annotations

import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from ironcurtain.cli.output import print_lines
from ironcurtain.cli.progress import started_by
from ironcurtain.cli.review import review_of
from ironcurtain.errors import IronCurtainError, Unavailable
from ironcurtain.home.host_numbers import HostNumber
from ironcurtain.operations.principal import owner

if TYPE_CHECKING:
    from ironcurtain.control.client import ControlClient
    from ironcurtain.fleet.tasks import Body
    from ironcurtain.home.layout import Home
    from ironcurtain.session.model import SessionInfo, SessionRequest


async def started_on(
    reactor: Any, home: Home, host: str, request: SessionRequest, notices: bool = False
) -> tuple[ControlClient, SessionInfo]:
    """
    Start a session on another host, and show its progress.

    :param notices: as for :class:`~ironcurtain.cli.progress.ProgressDisplay`.
    :returns: that host's daemon, and the session.
    :raises NotFound: the host is not reached, or not trusted.
    :raises RemoteError: it refuses.
    :raises Unavailable: it does not answer.
    """
    from ironcurtain.control.wire import RemoteError
    from ironcurtain.fleet.reach import daemon_of

    daemon = daemon_of(reactor, home, host)
    try:
        info = await started_by(partial(daemon.start, request), notices)
    except RemoteError as e:
        raise RemoteError(e.code, f"{host} refuses: {e}", e.exit_status) from None
    if info is None:
        raise Unavailable(f"{host} does not answer: ask there whether its fleet.trust names this host")
    return daemon, info


def give(where: Home, agent: str, body: Body, labels: tuple[str, ...], on: str) -> None:
    """
    Keep a task, which the daemon offers to other hosts; the parameters are those of
    :class:`~ironcurtain.fleet.tasks.Task`.

    :raises NotFound: no daemon runs here as a member of a fleet.
    """
    from ironcurtain.fleet.reach import require_member
    from ironcurtain.fleet.task_files import TaskFiles
    from ironcurtain.fleet.tasks import new_task

    require_member(where)
    given = new_task(owner().name, agent, body, labels, on, at=time.time())
    TaskFiles(where).add(given)
    where_to = on or "a machine with room"
    print_lines(f"Task {given.id} waits for {where_to}: 'ironcurtain fleet status' shows it.", err=True)
    print_lines(f"To take it back: ironcurtain fleet take-back {given.id}", err=True)


async def review_session(reactor: Any, home: Home, info: SessionInfo) -> None:
    """Print what to review after a session of a daemon, of this host or another, which has ended."""
    if not isinstance(info.number, HostNumber):
        review_of(home.session(info.id))
        return
    from ironcurtain.fleet.copies import copy_session

    with suppress(IronCurtainError):  # the host is gone, or does not show this person its sessions
        review_of(await copy_session(reactor, home, info.number))
