"""The files of a session that a command names: its own, or a copy of those of another host."""

from __future__ import annotations

from ironcurtain.home.host_numbers import HostNumber, read_number
from ironcurtain.home.layout import Home
from ironcurtain.home.session_paths import SessionPaths
from ironcurtain.session.elsewhere import session_directory


def session_files(where: Home, name: str) -> SessionPaths:
    """
    :param name: of a session, as :func:`~ironcurtain.session.elsewhere.session_directory` takes it, or a number of
        another host.
    :raises NotFound: there is no such session, or that host is not here.
    """
    number = read_number(name)
    if not isinstance(number, HostNumber):
        return session_directory(where, name)
    from ironcurtain.cli.run import run
    from ironcurtain.fleet.copies import copy_session

    return run(lambda reactor: copy_session(reactor, where, number))
