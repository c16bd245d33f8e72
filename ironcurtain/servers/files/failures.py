"""Error messages of the file server's tools."""

from __future__ import annotations

import errno

from ironcurtain.errors import IronCurtainError


class FileError(IronCurtainError):
    """A call that cannot be carried out. The message is the tool's answer for the agent."""

    code = "FILE"


class LinkInPath(FileError):
    """
    A component of the path is a symbolic link. It was not one when the call was judged, or the call was not judged.
    """

    code = "LINK_IN_PATH"

    def __init__(self, path: str) -> None:
        super().__init__(f"{shown(path)} is a symbolic link, and links are not followed; use the path of its target")


_REASONS = {
    errno.ENOENT: "no such file or directory: {path}",
    errno.ENOTDIR: "not a directory: {path}",
    errno.EISDIR: "is a directory: {path}",
    errno.EEXIST: "exists already: {path}",
    errno.ENOTEMPTY: "directory is not empty: {path}; delete what is in it first",
    errno.EACCES: "permission denied by the file system: {path}",
    errno.EPERM: "not permitted by the file system: {path}",
    errno.EROFS: "the file system is read-only: {path}",
    errno.ENOSPC: "no space left on the file system: {path}",
    errno.EDQUOT: "the disk quota is used up: {path}",
    errno.ENAMETOOLONG: "the name is too long for the file system: {path}",
    errno.EXDEV: "cannot move between two file systems: {path}; write a copy and delete the original",
    errno.ETXTBSY: "is a program that is running: {path}",
    errno.EINVAL: "the file system refuses this: {path}",
}


def explain(error: OSError, path: str) -> FileError:
    """
    Explain an error of the system in words.

    :param path: the caller's path.
    """
    reason = _REASONS.get(error.errno or 0)
    if reason is None:
        return FileError(f"{error.strerror or 'input/output error'}: {shown(path)}")
    return FileError(reason.format(path=shown(path)))


def shown(name: str) -> str:
    """
    :returns: a file name on one line. Characters that would break the line, or are not text, are escaped (``\\x0a``).
    """
    if name.isprintable():
        return name
    return "".join(c if c.isprintable() else _escaped(c) for c in name)


def _escaped(character: str) -> str:
    number = ord(character)
    if 0xDC80 <= number <= 0xDCFF:  # a byte that is not UTF-8, as os.fsdecode returns it
        return f"\\x{number - 0xDC00:02x}"
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
