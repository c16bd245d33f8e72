"""
Read the files that a project's Dockerfile copies.

Anybody may have written the project. So no link is followed, not even of a directory above a file, and what is read
once is what is shown, agreed to and built.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from ironcurtain.container.dockerfiles import Needs, read_needs
from ironcurtain.errors import ConfigurationError
from ironcurtain.text.decoding import decode_text

FILE_LIMIT = 1024 * 1024
"""Maximum size in bytes of a Dockerfile or ``devcontainer.json``."""

CONTEXT_LIMIT = 64 * 1024 * 1024
"""Maximum size in bytes of all files for a build, which are in memory at once."""

FILES_LIMIT, DEPTH_LIMIT = 20_000, 64
"""Maximum number of these files, and of directories above one."""

IGNORE = ".dockerignore"

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def read_below(top: str, path: str, limit: int = FILE_LIMIT) -> bytes | None:
    """
    :param top: an existing directory.
    :param path: of a file below it, without ``..``.
    :returns: the content; ``None`` if there is no such file.
    :raises ConfigurationError: it is a link or below one, no regular file, or larger than ``limit`` bytes.
    """
    *above, name = path.split("/")
    with suppress(FileNotFoundError):
        try:
            with _directory(top, above) as directory:
                return _content(directory, name, limit)
        except OSError as e:
            if isinstance(e, FileNotFoundError):
                raise
            raise ConfigurationError(f"{top}/{path}", f"is not used: {e.strerror}; links are not followed") from None
        except ValueError as e:
            raise ConfigurationError(f"{top}/{path}", str(e)) from None
    return None


def read_context(top: str, folder: str, dockerfile: str) -> tuple[Needs, dict[str, bytes]]:
    """
    :param top: an existing directory.
    :param folder: path of the directory below it that the Dockerfile copies from; empty: the top.
    :param dockerfile: its text.
    :returns: what it takes, and the files by path below the top.
    :raises ConfigurationError: they are too large, or cannot be read.
    """
    needs = read_needs(dockerfile)
    if not needs.files:
        return needs, {}
    above = folder.split("/") if folder else []
    ignore = read_below(top, "/".join([*above, IGNORE]))
    ignored, size = _ignored(decode_text("/".join((top, *above, IGNORE)), ignore or b"")), 0
    found = {} if ignore is None else {IGNORE: ignore}
    try:
        with _directory(top, above) as directory:
            for path, holder, name in _walk(directory, "", needs, ignored):
                found[path] = _content(holder, name, CONTEXT_LIMIT - size)
                size += len(found[path])
                if len(found) > FILES_LIMIT:
                    raise ValueError
            return needs, found
    except OSError as e:
        raise ConfigurationError(f"{top}/{folder}", f"cannot be read: {e.strerror}") from None
    except ValueError:
        raise ConfigurationError(
            f"{top}/{folder}",
            f"the Dockerfile copies more than {CONTEXT_LIMIT >> 20} MiB or {FILES_LIMIT} files: name what it needs "
            f"more exactly, or leave files out in {IGNORE}",
        ) from None


def _walk(directory: int, above: str, needs: Needs, ignored: Callable[[str], bool]) -> Iterator[tuple[str, int, str]]:
    """:returns: path, open directory and name of each file that is copied."""
    for name in sorted(os.listdir(directory)):
        path = f"{above}{name}"
        mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
        if path == ".git" or ignored(path):
            continue
        if stat.S_ISREG(mode) and needs.takes(path):
            yield path, directory, name
        elif stat.S_ISDIR(mode) and needs.may_take_below(path):
            if path.count("/") >= DEPTH_LIMIT:
                raise OSError(errno.ELOOP, "too many directories")
            opened = os.open(name, _FLAGS | os.O_DIRECTORY, dir_fd=directory)
            try:
                yield from _walk(opened, f"{path}/", needs, ignored)
            finally:
                os.close(opened)


def _ignored(patterns: str) -> Callable[[str], bool]:
    lines = [line.strip() for line in patterns.splitlines()]
    if not (kept := [line for line in lines if line and not line.startswith("#")]):
        return lambda path: False
    from docker.utils.build import PatternMatcher  # slow to import, and few projects need it

    matcher = PatternMatcher(kept)
    if any(line.startswith("!") for line in kept):
        return lambda path: False  # the Engine leaves them out itself: something below may be an exception
    return lambda path: bool(matcher.matches(path))  # type: ignore[arg-type]  # its stubs are wrong


@contextmanager
def _directory(top: str, names: list[str]) -> Iterator[int]:
    current = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in names:
            below = os.open(name, _FLAGS | os.O_DIRECTORY, dir_fd=current)
            os.close(current)
            current = below
        yield current
    finally:
        os.close(current)


def _content(directory: int, name: str, limit: int) -> bytes:
    """:raises ValueError: it is no regular file, or too large."""
    with open(os.open(name, _FLAGS, dir_fd=directory), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("is not a regular file")
        data = file.read(limit + 1)
    if len(data) > limit:
        raise ValueError(f"is larger than {limit} bytes")
    return data
