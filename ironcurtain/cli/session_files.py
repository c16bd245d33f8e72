"""The files of a session that a command names: its own, or a copy of those of another host."""

from __future__ import annotations

from collections.abc import Callable

from ironcurtain.cli.files import follow
from ironcurtain.errors import NotFound
from ironcurtain.home.host_numbers import HostNumber, read_number
from ironcurtain.home.layout import Home
from ironcurtain.home.session_paths import SessionPaths
from ironcurtain.session.elsewhere import session_directory


def show_file(where: Home, name: str, kind: str, following: bool, show: Callable[[bytes], None]) -> None:
    """
    Show the lines of a session's file.

    :param name: as for :func:`session_files`.
    :param kind: ``log`` or ``audit``.
    :param following: whether to continue with new lines, without a time limit.
    :param show: called with each line, with its end.
    :raises NotFound: there is no such session or file, or its host is not here, or the file was removed.
    """
    number = read_number(name)
    if following and isinstance(number, HostNumber):
        from ironcurtain.cli.run import run
        from ironcurtain.fleet.copies import follow_file

        run(lambda reactor: follow_file(reactor, where, number, kind, show))
        return
    files = session_files(where, name)
    if kind == "log" and files.snapshot.exists() and not files.log.exists():  # each session has one until then
        raise NotFound(f"session {name}: its log was removed as that of an old session")
    for line in follow(files.log if kind == "log" else files.audit, following):
        show(line)


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
