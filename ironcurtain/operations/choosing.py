"""Which session ``last`` is."""

from __future__ import annotations

from collections.abc import Iterable

from ironcurtain.errors import Unavailable
from ironcurtain.home.host_numbers import HostNumber
from ironcurtain.session.model import SessionInfo


def newest(known: Iterable[SessionInfo], registered: Iterable[int], terminal: bool = False) -> int | None:
    """
    :param known: the sessions of all processes that answered; those of other hosts are never meant.
    :param registered: the numbers of the sessions of this host in the registry.
    :param terminal: whether only sessions with a terminal are meant.
    :returns: the number of the newest open session; ``None``: there is none.
    :raises Unavailable: it may be one whose process does not say what it is.
    """
    ours = [info for info in known if not isinstance(info.number, HostNumber)]
    here = {info.number: info for info in sorted(ours, key=lambda info: info.state != "closed")}  # one may be resumed
    for number in sorted({*here, *registered}, reverse=True):
        if number not in here:
            raise Unavailable(f"the process of session {number} does not say what that is: name a session")
        if here[number].state != "closed" and (here[number].terminal or not terminal):
            return number
    return None
