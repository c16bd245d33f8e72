"""
Find the files of a session, running or not, and read its description.

A session can keep its files outside the home. Then a small file in the home has their path.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from ironcurtain.errors import ConfigurationError, NotFound
from ironcurtain.files.atomic import write_atomically
from ironcurtain.home.host_numbers import HostNumber, read_number
from ironcurtain.home.layout import Home
from ironcurtain.home.session_paths import SessionPaths
from ironcurtain.session.model import SessionInfo

SHOWN = 5
"""How many ids are shown of those that begin alike."""


class Elsewhere(msgspec.Struct, frozen=True, kw_only=True):
    """
    A session with files outside the home.

    :param directory: absolute path; later sessions may have used it, too.
    """

    version: int = 1
    id: str
    number: int
    directory: str

    @property
    def paths(self) -> SessionPaths:
        """The session's files."""
        return SessionPaths(Path(self.directory))


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What each version writes about a session; see :class:`~ironcurtain.session.model.SessionInfo`."""

    id: str
    number: int
    kind: str = ""
    label: str = ""
    workspace: str = ""


def remember(home: Home, session: Elsewhere) -> None:
    """Write the path of a session's files to the home."""
    write_atomically(home.sessions / f"{session.id}.json", msgspec.json.encode(session) + b"\n")


def forget(home: Home, session: str) -> None:
    """
    Forget a session whose files outside the home are removed.

    :param session: its id.
    """
    (home.sessions / f"{session}.json").unlink(missing_ok=True)


def elsewhere(home: Home) -> Iterator[Elsewhere]:
    """:returns: the home's sessions, running or ended, with files outside it. Damaged entries are left out."""
    for path in home.sessions.glob("*.json"):
        try:
            yield msgspec.json.decode(path.read_bytes(), type=Elsewhere)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue


def session_directory(home: Home, name: str, suits: Callable[[str], bool] | None = None) -> SessionPaths:
    """
    :param name: a session's number, id, beginning of an id (see :func:`begins`), or ``last``. One with a damaged
        description has its id only.
    :param suits: returns whether ``last`` can be a session of a kind; ``None``: of any kind.
    :raises NotFound: there is no such session.
    """
    if isinstance(read_number(name), HostNumber):
        raise NotFound(f"session {name} is another machine's: this is to be done there")
    inside = [known for known in snapshots(home) if name != "last" or suits is None or suits(known.kind)]
    found = {known.id: (known.number, home.session(known.id)) for known in inside}
    if name != "last" or suits is None:
        found |= {other.id: (other.number, other.paths) for other in elsewhere(home)}
    if name == "last" and found:
        return max(found.values(), key=lambda pair: pair[0])[1]
    chosen = [paths for number, paths in found.values() if str(number) == name]
    if not chosen:
        begun = {key: paths for key, (_, paths) in found.items() if begins(name, key)}
        if len(begun) > 1:
            raise NotFound(several(name, begun))
        chosen = [*begun.values()]
    chosen = chosen or [SessionPaths(path.parent) for path in damaged(home) if path.parent.name == name]
    if len(chosen) != 1:
        what = name if name != "last" else "yet" if suits is None else "that could go on"
        raise NotFound(f"there is no session {what} in {home.sessions}")
    return chosen[0]


def kept_directory(home: Home, name: str) -> SessionPaths:
    """
    Find a session for what needs other files of it than its audit log.

    :param name: as for :func:`session_directory`.
    :raises NotFound: there is no such session, or these files were removed.
    """
    paths = session_directory(home, name)
    if paths.snapshot.exists() and not paths.log.exists():  # each session has one until its files are removed
        raise NotFound(f"session {name}: its files but the audit log were removed as those of an old session")
    return paths


def begins(name: str, session_id: str) -> bool:
    """:returns: whether a name is an id or its beginning. Digits alone are a number, even if no session has it."""
    return name == session_id or (name != "" and not name.isdigit() and session_id.startswith(name))


def several(name: str, ids: Collection[str]) -> str:
    """:returns: why a name is no session's: it is the beginning of all these ids."""
    shown = ", ".join(sorted(ids)[:SHOWN]) + (", ..." if len(ids) > SHOWN else "")
    return f"{name} is the beginning of {len(ids)} ids ({shown}): give more of one, or a session's number"


def described(home: Home) -> Iterator[SessionInfo]:
    """:returns: the description of each session in the home whose files are there, also of ended sessions."""
    for path in home.sessions.glob("*/session.json"):
        with suppress(OSError, ConfigurationError):
            info = description(SessionPaths(path.parent))
            if info.id == path.parent.name and SessionPaths(path.parent).log.exists():
                yield info


def workspaces(home: Home) -> Iterator[str]:
    """:returns: the workspace of each session, also of ended ones and of those with files outside the home."""
    others = [known for each in elsewhere(home) if (known := _known(each.paths.snapshot)) is not None]
    for known in (*snapshots(home), *others):
        if known.workspace:
            yield known.workspace


def snapshots(home: Home) -> Iterator[Known]:
    """:returns: what each ``session.json`` in the home says, also of ended sessions. Damaged ones are left out."""
    for path in home.sessions.glob("*/session.json"):
        if (known := _known(path)) is not None and known.id == path.parent.name:
            yield known


def damaged(home: Home) -> Iterator[Path]:
    """:returns: each ``session.json`` in the home that does not describe the session in whose directory it is."""
    for path in home.sessions.glob("*/session.json"):
        try:
            right = description(SessionPaths(path.parent)).id == path.parent.name
        except ConfigurationError:
            right = False
        except OSError:  # it has gone meanwhile, with its session
            continue
        if not right:
            yield path


def description(paths: SessionPaths) -> SessionInfo:
    """
    :returns: the description of a session, as its owner wrote it last.
    :raises ConfigurationError: it is damaged.
    """
    try:
        return msgspec.json.decode(paths.snapshot.read_bytes(), type=SessionInfo)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        raise ConfigurationError(str(paths.snapshot), f"is damaged: {e}") from None


def _known(path: Path) -> Known | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Known)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
