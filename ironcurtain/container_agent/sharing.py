"""
Let an agent read the user's own files for it: memory, skills and commands, where ``[agents.NAME] share`` says so.

They are copied into the session's directory and mounted read-only, so that neither a link among them nor a secret
beside them gets into a container. Settings and logins are not among them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import PurePath

import msgspec

from ironcurtain.agents.adapter import HOME, Shareable
from ironcurtain.container.spec import Mount
from ironcurtain.container_agent.provision import Placer
from ironcurtain.files.removal import remove
from ironcurtain.home.layout import account_directory
from ironcurtain.home.session_paths import SessionPaths
from ironcurtain.process.accounts import Account
from ironcurtain.text.decoding import decode_anyhow
from ironcurtain.text.display import one_line

FILES_LIMIT, BYTES_LIMIT = 2000, 16 * 1024 * 1024
"""Maximum number and size of the files of one kind; skills are mostly text."""

DEPTH_LIMIT = 12
"""Maximum depth of directories."""

NAMED_LIMIT = 5
"""Maximum number of left out files that are named."""

SETTINGS = frozenset(("settings.json", "settings.local.json", "auth.json", "config.toml", "opencode.json"))
"""Names of files of settings and logins."""

SECRET_ENDINGS = (".jks", ".kdbx", ".key", ".keystore", ".p12", ".pem", ".pfx")
SECRET_WORDS = ("credential", "id_dsa", "id_ecdsa", "id_ed25519", "id_rsa", "passwd", "password", "secret", "token")
"""Endings and parts of the names of files that may be secrets; a text in Markdown may be about them."""

_PRIVATE_KEY = b"PRIVATE KEY-----"
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Found(msgspec.Struct):
    """
    The files of one kind.

    :ivar files: content and whether it is a program, by path below the user's home.
    :ivar single: whether the kind is one file.
    :ivar left_out: paths that are not shared, each with the reason.
    """

    what: Shareable
    files: dict[str, tuple[bytes, bool]] = msgspec.field(default_factory=dict)
    single: bool = False
    left_out: list[str] = msgspec.field(default_factory=list)
    size: int = 0


def chosen(offered: Sequence[Shareable], share: bool | Sequence[str]) -> tuple[Shareable, ...]:
    """:returns: those that the setting ``share`` names; ``True`` names all."""
    if isinstance(share, bool):
        return tuple(offered) if share else ()
    return tuple(each for each in offered if each.name in share)


def may_be_secret(name: str, *, directory: bool = False) -> bool:
    """:returns: whether a file's or directory's name says that it can hold secrets or settings."""
    lower = name.lower()
    if lower.startswith(".") or directory:
        return lower.startswith(".")
    if lower in SETTINGS or lower.endswith(SECRET_ENDINGS):
        return True
    return not lower.endswith((".md", ".mdx")) and any(word in lower for word in SECRET_WORDS)


def collect(home: str, shared: Sequence[Shareable]) -> list[Found]:
    """
    Read the user's files. No link is followed, and what is missing is left out.

    :param home: absolute path of the user's home directory.
    """
    found = []
    for what in shared:
        each = Found(what)
        try:
            _collect(home, each)
        except FileNotFoundError:
            continue
        except OSError as e:
            each.left_out.append(f"{what.path} ({e.strerror})")
        found.append(each)
    return found


def stage(found: Sequence[Found], paths: SessionPaths, account: Account) -> tuple[Mount, ...]:
    """
    Copy files into a session's directory, and make what they are mounted on in the agent's home.

    :returns: the mounts.
    :raises Unavailable: they cannot be written.
    """
    with suppress(FileNotFoundError):
        remove(paths.shared)
    account_directory(paths.shared, account.uid, account.gid)
    copies = Placer(paths.shared, account.uid, account.gid, writable=False)
    home = Placer(paths.agent_home, account.uid, account.gid, writable=True)
    made = []
    for each in found:
        if each.what.joined or not each.files:
            continue
        for path, (data, runs) in each.files.items():
            copies.place(path, data, runs=runs)
        if each.single:
            home.place(each.what.path, b"", replace=False)
        else:
            home.make_directory(each.what.path)
        made.append(Mount(str(paths.shared / each.what.path), f"{HOME}/{each.what.path}"))
    return tuple(made)


def joined_text(found: Sequence[Found]) -> str:
    """:returns: what follows the orientation of an agent that reads both from one file; empty: nothing."""
    texts = [
        f"\n# What the person wrote for all projects (~/{each.what.path})\n\n{decode_anyhow(data)}\n"
        for each in found
        if each.what.joined
        for data, _ in each.files.values()
    ]
    return "".join(texts)


def sentences(found: Sequence[Found]) -> Iterator[str]:
    """:returns: what is shared and what is not, for people."""
    shared = [f"~/{each.what.path}" for each in found if each.files]
    if shared:
        yield f"the agent may read your {', '.join(shared)}"
    if left := [entry for each in found for entry in each.left_out]:
        more = f" and {len(left) - NAMED_LIMIT} more" if len(left) > NAMED_LIMIT else ""
        yield one_line(f"not shared with the agent: {', '.join(left[:NAMED_LIMIT])}{more}")


def _collect(home: str, found: Found) -> None:
    *above, name = PurePath(found.what.path).parts
    current = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in above:
            below = os.open(part, _FLAGS | os.O_DIRECTORY, dir_fd=current)
            os.close(current)
            current = below
        status = os.stat(name, dir_fd=current, follow_symlinks=False)
        found.single = stat.S_ISREG(status.st_mode)
        if stat.S_ISDIR(status.st_mode):
            _collect_directory(current, name, found.what.path, found, 0)
        else:
            _collect_file(current, name, found.what.path, found)
    finally:
        os.close(current)


def _collect_directory(directory: int, name: str, path: str, found: Found, depth: int) -> None:
    if depth > DEPTH_LIMIT:
        found.left_out.append(f"{path} (too deep)")
        return
    opened = os.open(name, _FLAGS | os.O_DIRECTORY, dir_fd=directory)
    try:
        for entry in sorted(os.listdir(opened)):
            below = f"{path}/{entry}"
            is_directory = stat.S_ISDIR(os.stat(entry, dir_fd=opened, follow_symlinks=False).st_mode)
            if may_be_secret(entry, directory=is_directory):
                found.left_out.append(f"{below} (may be a secret or settings)")
            elif is_directory:
                _collect_directory(opened, entry, below, found, depth + 1)
            else:
                _collect_file(opened, entry, below, found)
    finally:
        os.close(opened)


def _collect_file(directory: int, name: str, path: str, found: Found) -> None:
    status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    if not stat.S_ISREG(status.st_mode):
        found.left_out.append(f"{path} ({'a link' if stat.S_ISLNK(status.st_mode) else 'no file'})")
        return
    if len(found.files) >= FILES_LIMIT or found.size + status.st_size > BYTES_LIMIT:
        found.left_out.append(f"{path} (more than {FILES_LIMIT} files or {BYTES_LIMIT >> 20} MiB)")
        return
    with open(os.open(name, _FLAGS, dir_fd=directory), "rb") as file:
        data = file.read(BYTES_LIMIT - found.size + 1)
    if _PRIVATE_KEY in data or len(data) > BYTES_LIMIT - found.size:
        found.left_out.append(f"{path} (a private key, or too large)")
        return
    found.size += len(data)
    found.files[path] = (data, bool(status.st_mode & 0o111))
