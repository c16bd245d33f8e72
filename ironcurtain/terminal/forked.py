"""Start a command in a terminal without a reactor."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import termios
from collections.abc import Mapping, Sequence

from ironcurtain.errors import Unavailable
from ironcurtain.terminal.model import sane_size

TERM = {"TERM": "xterm-256color"}
"""The variable that a command in a terminal needs, where its environment lacks it."""

_CANNOT_EXECUTE = 126
"""The status with which shells report that a program cannot be executed."""


class NoPty(Unavailable):
    """This machine has no free pseudo-terminal, or does not permit one. Run without."""

    code = "NO_PTY"


def set_size(descriptor: int, columns: int, rows: int) -> None:
    """Set the size of a terminal; its foreground job gets SIGWINCH."""
    columns, rows = sane_size(columns, rows)
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))


def start_in_terminal(
    program: str, argv: Sequence[str], environ: Mapping[str, str], size: tuple[int, int]
) -> tuple[int, int]:
    """
    Start a command as the leader of a new session, in the current directory. It has no other descriptors of this
    process, which has no threads yet.

    :param program: its path.
    :param environ: its complete environment; ``TERM`` is added if missing.
    :param size: columns and rows.
    :returns: its pid, and the descriptor of the terminal's master side.
    :raises NoPty: there is no pseudo-terminal for it, or no process.
    """
    try:
        master, slave = os.openpty()
    except OSError as e:
        raise NoPty(f"no terminal can be opened: {e.strerror}") from e
    set_size(slave, *size)
    try:
        pid = os.fork()
    except OSError as e:
        os.close(master)
        os.close(slave)
        raise NoPty(f"the command cannot be started: {e.strerror}") from e
    if pid == 0:
        _become(program, argv, {**TERM, **environ}, slave)
    os.close(slave)
    return pid, master


def _become(program: str, argv: Sequence[str], environ: Mapping[str, str], slave: int) -> None:
    try:
        os.login_tty(slave)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and an ignored signal stays so
            signal.signal(number, signal.SIG_DFL)
        os.execve(program, list(argv), environ)
    except OSError as e:
        os.write(2, f"{program} cannot be executed: {e.strerror}\r\n".encode())
    finally:
        os._exit(_CANNOT_EXECUTE)
