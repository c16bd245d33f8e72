"""Lines for shells that show no marks: a command between two others that show where it begins and ends."""

from __future__ import annotations

import msgspec


class _Syntax(msgspec.Struct, frozen=True):
    """
    :param block: with ``%s`` in place of a command that ends with its line.
    :param status: the exit status of what ran last.
    """

    block: str
    status: str


UNRECORDED = " " * 11
"""Before a command that is typed and that the shell is to keep out of its history: blanks that nobody types there."""

_POSIX = _Syntax("{ %s\n}", '"$?"')
_SYNTAX = {
    **dict.fromkeys(("ash", "bash", "busybox", "dash", "ksh", "ksh93", "mksh", "oksh", "sh", "yash", "zsh"), _POSIX),
    "fish": _Syntax("begin; %s\nend", "$status"),
}


def with_marks(command: str, shell: str, nonce: str) -> str | None:
    """
    :param shell: its name.
    :param nonce: letters and digits; that of the marks.
    :returns: what to type so that the command runs between its marks, or not at all if it is not complete. It begins
        with a blank, so that shells can leave it out of their history. ``None``: the syntax of the shell is not known.
    """
    if (syntax := _SYNTAX.get(shell)) is None:
        return None
    began = rf" printf '\033]133;C;aid={nonce}\007' >/dev/tty; "
    return f"{began}{syntax.block % command};{end_mark(shell, nonce)}"


def end_mark(shell: str, nonce: str) -> str:
    """:returns: what to type so that the shell shows the mark of a command's end."""
    return rf" printf '\033]133;D;%s;aid={nonce}\007' {_SYNTAX.get(shell, _POSIX).status} >/dev/tty"
