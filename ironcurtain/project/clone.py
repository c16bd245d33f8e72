"""Clone a repository into a workspace before its agent starts: as the session's account, with a time limit."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from ironcurtain.errors import Unavailable
from ironcurtain.files.removal import remove, remove_at
from ironcurtain.process.accounts import SEARCH, Account
from ironcurtain.process.piped import CommandReactor, command_output
from ironcurtain.process.search_path import host_environment, host_program, required_program
from ironcurtain.project.gitsettings import MalformedSettings, parse
from ironcurtain.servers.files.failures import FileError
from ironcurtain.servers.files.walk import DIRECTORY, OpenRoot, Place, open_regular, parent
from ironcurtain.servers.git_remote.addresses import checked_address, clone_command, clone_environment
from ironcurtain.text.display import one_line

CLONE_SECONDS = 600.0
"""Time limit of a clone (enough for a large repository on a slow line)."""

INHERITED = ("PATH", "LANG", "TZ", "TMPDIR")
"""Environment variables of this process that git inherits."""


SHARED = ("/tmp", "/var/tmp")
"""Directories for everybody's temporary files, where that of this process may not be entered."""


class CloneFailed(Unavailable):
    """The repository could not be cloned; the message contains git's last output."""

    code = "CLONE_FAILED"


async def clone(
    reactor: CommandReactor,
    address: str,
    to: Path,
    account: Account,
    environ: Mapping[str, str],
    tell: Callable[[str], None],
    seconds: float = CLONE_SECONDS,
) -> None:
    """
    Clone a repository. Cancelling ends git and all processes that it started.

    :param to: an empty directory that belongs to the account.
    :param tell: called with each line of git's progress.
    :raises UsageError: the address may not be cloned.
    :raises CloneFailed: git failed, or took longer than ``seconds``.
    """
    checked_address(address)
    if (git := host_program("git", environ.get("PATH"))) is None:
        raise CloneFailed("the program git is missing: install it (Debian: apt-get install git)")
    other = account if os.geteuid() == 0 and account.uid != 0 else None
    environ = host_environment(environ)
    small = {name: environ[name] for name in INHERITED if name in environ}
    small["HOME"] = environ.get("HOME", account.home) if other is None else account.home
    if other is not None and "TMPDIR" in small:
        small["TMPDIR"] = _temporary(other)
    environment = clone_environment(small, environ, other is None)
    try:
        with _reachable(to, other) as place:
            command = clone_command(git, address, str(place))
            await _run(reactor, command, environment, place, other, tell, seconds)
            _check_left(place, address)
            if other is not None:
                await _run(reactor, _move(place), environment, to, other, tell, seconds)
    except BaseException:
        _empty(to)
        raise


@contextmanager
def _reachable(to: Path, other: Account | None) -> Iterator[Path]:
    """Yield the directory that git clones to. Another account may be unable to reach a directory below ours."""
    if other is None:
        yield to
        return
    above = Path(tempfile.mkdtemp(prefix="ironcurtain-clone-", dir=_temporary(other)))
    try:
        above.chmod(0o711)  # not owned by the account, so that it cannot replace the directory below
        place = above / "clone"
        place.mkdir(0o700)
        os.chown(place, other.uid, other.gid)
        yield place
    finally:
        with suppress(Unavailable):
            remove(above)


def _temporary(other: Account) -> str:
    """:returns: a directory for temporary files that an account can enter; that of root may be root's alone."""
    usual = tempfile.gettempdir()
    for directory in (usual, *SHARED):
        place = Path(directory).resolve()
        with suppress(OSError):
            if all(other.may(SEARCH, each.stat()) for each in (place, *place.parents)):
                return directory
    return usual


def _move(place: Path) -> list[str]:
    """Run as the account, it changes only what is the account's, whatever lies there by then, and in the directory."""
    find = required_program("find", "findutils")
    move = ["-exec", "mv", "--target-directory=.", "--", "{}", "+"]
    return [find, str(place), "-mindepth", "1", "-maxdepth", "1", *move]


async def _run(
    reactor: CommandReactor,
    command: list[str],
    environment: dict[str, str],
    cwd: Path,
    account: Account | None,
    tell: Callable[[str], None],
    seconds: float,
) -> None:
    def told(data: bytes) -> None:
        for part in filter(None, data.decode("utf-8", "replace").replace("\r", "\n").split("\n")):
            tell(one_line(part, 200))

    try:
        ended = await command_output(
            reactor,
            command if account is None else account.command(command),
            environment,
            "git clone",
            seconds=seconds,
            limit=0,
            directory=str(cwd),
            whole=False,
            keep_errors=True,
            tell=told,
            end_group=True,  # processes that git started and did not wait for
        )
    except Unavailable as e:
        raise CloneFailed(str(e)) from None
    if ended.status != 0:
        raise CloneFailed(f"git clone failed: {_last_words(ended.errors)}")


def _last_words(errors: bytes) -> str:
    lines = [line for line in re.split(r"[\r\n]", errors.decode("utf-8", "replace")) if line.strip()]
    telling = [line for line in lines if line.startswith(("fatal:", "error:", "ssh:"))] or lines
    return one_line(" ".join(telling[-3:]), 600) or "it printed nothing"


def _check_left(place: Path, address: str) -> None:
    """Check that git's settings hold the address, and nothing else that could run a program or leak a credential."""
    try:
        settings = parse(_settings(place))
    except (FileError, OSError, MalformedSettings) as e:
        raise CloneFailed(f"git clone left settings that cannot be read: {e}") from None
    addresses = [setting.value for setting in settings if setting.key == "remote.origin.url"]
    programs = [setting.key for setting in settings if setting.runs_program]
    if addresses != [address] or programs:
        raise CloneFailed(f"git clone left unexpected settings: {', '.join(programs)}")


def _settings(place: Path) -> bytes:
    root = OpenRoot(str(place), (str(place),), os.open(place, DIRECTORY))
    try:
        config = Place(root, (".git", "config"))
        with parent(config) as (descriptor, _):
            opened = open_regular(descriptor, config, os.O_RDONLY)
        with open(opened, "rb") as file:
            return file.read()
    finally:
        os.close(root.descriptor)


def _empty(place: Path) -> None:
    descriptor = os.open(place, DIRECTORY)
    try:
        for name in os.listdir(descriptor):
            with suppress(OSError):  # the reason of the failure matters more
                remove_at(descriptor, name)
    finally:
        os.close(descriptor)
