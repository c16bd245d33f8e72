"""
The specification of a session's container, and the files for its agent.

The agent can have written to these directories. So every directory on the path of a file is opened relative to its
parent, without following links, and whatever the agent put in its place is removed.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from ironcurtain.container.spec import (
    ContainerSpec,
    Mount,
    group_text,
    mounts,
    owner_labels,
    passwd_text,
)
from ironcurtain.errors import Unavailable
from ironcurtain.files.atomic import write_atomically
from ironcurtain.files.removal import remove_at
from ironcurtain.home.layout import account_directory, private_directory
from ironcurtain.home.sections import Resources
from ironcurtain.home.session_paths import RunPaths, SessionPaths
from ironcurtain.process.accounts import Account
from ironcurtain.process.identity import ProcessIdentity
from ironcurtain.sandbox.linked_repository import LinkedRepository

SCRATCH_SHARE = 4
"""``/tmp`` may have a quarter of the memory (compilers and package managers need hundreds of MiB)."""

SCRATCH_MOST_MB = 1024
"""Maximum size of ``/tmp`` in MiB."""

BUNDLE_NAME = "ca-bundle.pem"
"""
The certificates to trust with this system's, below the orientation's directory: see
:data:`ironcurtain.agents.adapter.CA_BUNDLE`.
"""

TRUST_STORE_NAME = "ca-bundle.p12"
"""The same for Java: see :data:`ironcurtain.agents.adapter.TRUST_STORE`."""

COMMAND = ("sleep", "infinity")
"""Keeps the container alive between messages."""


_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def container_name(session_id: str) -> str:
    """:returns: the name of a session's container."""
    return f"ironcurtain-{session_id.replace('-', '')[:12]}"


def scratch_mb(resources: Resources) -> int:
    """:returns: the size of ``/tmp`` in MiB."""
    return min(SCRATCH_MOST_MB, resources.memory_mb // SCRATCH_SHARE)


def passwd_file(paths: SessionPaths) -> Path:
    """:returns: the container's ``/etc/passwd``."""
    return paths.users / "passwd"


def group_file(paths: SessionPaths) -> Path:
    """:returns: the container's ``/etc/group``."""
    return paths.users / "group"


def prepare(paths: SessionPaths, account: Account) -> None:
    """Make the directories of a container's account, and its files about users."""
    account_directory(paths.agent_home, account.uid, account.gid)
    account_directory(paths.orientation, account.uid, account.gid)
    private_directory(paths.users)
    for file, text in (
        (passwd_file(paths), passwd_text(account.uid, account.gid)),
        (group_file(paths), group_text(account.gid)),
    ):
        write_atomically(file, text.encode(), durable=False)  # the next start writes it anew
        file.chmod(0o444)


def repository_files(
    paths: SessionPaths, repository: LinkedRepository, places: Sequence[str], own: str
) -> dict[str, str]:
    """
    Write the files of git that have to be others in the container, where the workspace has other paths.

    :param places: as for :meth:`LinkedRepository.files_for`, with ``own``.
    :returns: their paths here, by their paths in the container.
    """
    files = {}
    for number, (path, content) in enumerate(repository.files_for(places, own).items()):
        write_atomically(file := paths.users / f"repository-{number}", content, durable=False)
        file.chmod(0o444)
        files[path] = str(file)
    return files


def describe(
    *,
    session_id: str,
    image: str,
    command: tuple[str, ...],
    tty: bool,
    account: Account,
    environment: Mapping[str, str],
    workspace: Path,
    places: Sequence[str],
    further: Sequence[Mount],
    paths: SessionPaths,
    run: RunPaths,
    resources: Resources,
    processors: float,
    home: Path,
    owner: ProcessIdentity,
) -> ContainerSpec:
    """
    :param command: the main program; :data:`COMMAND` if programs are run one by one.
    :param tty: whether that program has a terminal.
    :param environment: environment of all programs inside.
    :param places: the paths of the workspace in the container; programs start in the first one.
    :param further: further mounts, such as for the workspace's git repository if it is elsewhere.
    :param processors: number of processors of this machine; an Engine refuses more.
    :param home: IronCurtain's home.
    :param owner: this process.
    :raises UsageError: such a container is not allowed.
    """
    return ContainerSpec(
        name=container_name(session_id),
        image=image,
        command=command,
        uid=account.uid,
        gid=account.gid,
        environment=environment,
        mounts=(
            *mounts(
                workspace=str(workspace),
                places=places,
                home=str(paths.agent_home),
                sockets=str(run.agent),
                orientation=str(paths.orientation),
                passwd=str(passwd_file(paths)),
                group=str(group_file(paths)),
            ),
            *further,
        ),
        tmpfs_mb=scratch_mb(resources),
        memory_mb=resources.memory_mb,
        cpus=min(resources.cpus, processors),
        pids=resources.pids,
        labels=owner_labels(session_id, str(home), owner),
        tty=tty,
        directory=places[0],
    )


class Placer:
    """
    :param top: an existing directory, not a link.
    :param uid: owner of the files and new directories, with ``gid``.
    :param writable: whether their owner may change them.
    """

    def __init__(self, top: Path, uid: int, gid: int, *, writable: bool) -> None:
        self._top, self._uid, self._gid = top, uid, gid
        self._mode = 0o600 if writable else 0o400

    def place(self, path: str, data: bytes, *, replace: bool = True, runs: bool = False) -> None:
        """
        Write a file atomically.

        :param path: below the top, with ``/`` between names.
        :param replace: whether to replace an existing regular file.
        :param runs: whether it is a program.
        :raises Unavailable: it cannot be written.
        """
        *above, name = path.split("/")
        if not all(part not in ("", ".", "..") for part in (*above, name)):
            raise ValueError(f"not a plain path: {path}")
        try:
            with self._directory(above) as directory:
                found = _mode(directory, name)
                if found is not None and stat.S_ISREG(found) and not replace:
                    return
                if found is not None and not stat.S_ISREG(found):
                    remove_at(directory, name)
                self._write(directory, name, data, self._mode | (0o100 if runs else 0))
        except OSError as e:
            raise Unavailable(f"cannot write {self._top / path}: {e.strerror}") from None

    def make_directory(self, path: str) -> None:
        """
        Make a directory unless there is one.

        :param path: as for :meth:`place`.
        :raises Unavailable: it cannot be made.
        """
        try:
            with self._directory(path.split("/")):
                return
        except OSError as e:
            raise Unavailable(f"cannot make {self._top / path}: {e.strerror}") from None

    @contextmanager
    def _directory(self, names: list[str]) -> Iterator[int]:
        current = os.open(self._top, _DIRECTORY)
        try:
            for name in names:
                following = self._enter(current, name)
                os.close(current)
                current = following
            yield current
        finally:
            os.close(current)

    def _enter(self, directory: int, name: str) -> int:
        found = _mode(directory, name)
        if found is not None and not stat.S_ISDIR(found):
            os.unlink(name, dir_fd=directory)
            found = None
        if found is None:
            os.mkdir(name, 0o700, dir_fd=directory)
        entered = os.open(name, _DIRECTORY, dir_fd=directory)
        if found is None:
            os.fchown(entered, self._uid, self._gid)
        return entered

    def _write(self, directory: int, name: str, data: bytes, mode: int) -> None:
        draft = f".{secrets.token_hex(8)}.new"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(draft, flags, 0o600, dir_fd=directory), "wb") as file:
            file.write(data)
            os.fchown(file.fileno(), self._uid, self._gid)
            os.fchmod(file.fileno(), mode)
        os.rename(draft, name, src_dir_fd=directory, dst_dir_fd=directory)


def _mode(directory: int, name: str) -> int | None:
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
