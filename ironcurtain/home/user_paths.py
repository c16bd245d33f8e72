"""What ``~`` stands for, and paths that people write where no shell expands it: in variables, settings and options."""

from __future__ import annotations

import os
import pwd
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from ironcurtain.errors import UsageError

_HOME: Final = re.compile(r"(?:~(?P<account>[^/]*)|\$HOME|\$\{HOME\})(?=/|\Z)")
_VARIABLE: Final = re.compile(r"(?:\A|(?<=/))(?:\$\{[^/]*\}|\$[A-Z_][A-Z0-9_]*)(?=/|\Z)|\A\$\w+")
"""A variable in the place of a name; in lower case only at the beginning, since projects name directories so."""

_ESCAPED: Final = re.compile("[\udc80-\udcff]")


def user_path(text: str, environ: Mapping[str, str] = os.environ) -> str:
    """
    Expand ``~``, ``~ACCOUNT``, ``$HOME`` or ``${HOME}`` at the beginning of a path.

    :param environ: for ``HOME``.
    :raises UsageError: it contains another variable, names no account, or cannot be written in UTF-8, as records and
        messages to other processes require.
    """
    check_encodable(text)
    if (found := _HOME.match(text)) is not None:
        text = _home(found["account"] or "", text, environ) + text[found.end() :] or "/"
    if (variable := _VARIABLE.search(text)) is not None:
        raise UsageError(f"the path {text} contains the variable {variable[0]}, which is not expanded: write it out")
    check_encodable(text)
    return text


def absolute_path(path: str | os.PathLike[str], environ: Mapping[str, str] = os.environ) -> Path:
    """
    :param path: as for :func:`user_path`; relative to the current directory.
    :raises UsageError: as for :func:`user_path`, or the current directory is such a path, or was removed.
    """
    expanded = Path(user_path(os.fspath(path), environ))
    if not expanded.is_absolute():
        expanded = current_directory() / expanded
    return expanded


def current_directory() -> Path:
    """:raises UsageError: it was removed, or its path cannot be written in UTF-8."""
    try:
        current = os.getcwd()
    except OSError as e:
        raise UsageError(f"the current directory cannot be used: {e.strerror}: change to another one") from None
    check_encodable(current)
    return Path(current)


def check_file_names() -> None:
    """:raises UsageError: Python takes names of files for another encoding than UTF-8, which other processes expect."""
    if (encoding := sys.getfilesystemencoding()) != "utf-8":
        raise UsageError(f"Python takes names of files for {encoding} in this locale: set PYTHONUTF8=1")


def check_encodable(text: str, what: str = "path", advice: str = "rename it") -> None:
    """:raises UsageError: a text from the system, such as a path, is not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        # The bytes that are not UTF-8 stand in it as lone surrogates (PEP 383).
        shown = _ESCAPED.sub(lambda byte: f"\\x{ord(byte[0]) - 0xDC00:02x}", text).encode(errors="backslashreplace")
        raise UsageError(f"the {what} {shown.decode()} is not UTF-8 text: {advice}") from None


def _home(account: str, text: str, environ: Mapping[str, str]) -> str:
    if not account and (home := environ.get("HOME", "")):
        if not home.startswith("/"):
            raise UsageError(f"HOME is {home!r}, which is no absolute path: correct it, or write {text} out")
        return home.rstrip("/")
    try:
        entry = pwd.getpwnam(account) if account else pwd.getpwuid(os.geteuid())
    except (KeyError, UnicodeEncodeError):
        raise UsageError(f"the path {text} names no account of this machine: for a file write ./{text}") from None
    return entry.pw_dir.rstrip("/")


def account_home(uid: int) -> str:
    """:returns: a user's home directory according to the system, whatever the environment says."""
    try:
        return pwd.getpwuid(uid).pw_dir
    except KeyError:
        return "/"


def person_home(environ: Mapping[str, str], uid: int) -> str:
    """
    :returns: the meaning of ``~``: ``HOME``, or if that is not set, the account's home.
    :raises UsageError: ``HOME`` is not an absolute path in UTF-8, or another login's directory.
    """
    if not environ.get("HOME"):
        return account_home(uid)
    home = user_path("~", environ)
    with suppress(FileNotFoundError, NotADirectoryError):
        try:
            os.stat(os.path.join(home, "."))
        except PermissionError:
            raise UsageError(f"HOME is {home}, which this account may not enter: set HOME to its own") from None
    return home
