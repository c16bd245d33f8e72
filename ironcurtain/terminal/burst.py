"""Much output at once, from a program's terminal straight to a person's: no turn of the reactor for each few KiB."""

from __future__ import annotations

import os
import select
import time
from contextlib import suppress

BURST_SECONDS = 0.02
"""How long nothing else is done, keys included (our choice: nobody notices, and it is some 1.5 MB)."""

QUIET_SECONDS = 0.001
"""After how long without output a burst is over (our choice)."""

READ_SIZE = 64 * 1024


def pass_on(source: int, sink: int) -> tuple[bytes, bytes]:
    """
    Pass on what a terminal's program writes, until it pauses, or :data:`BURST_SECONDS` are over.

    :param source: the program's terminal, as ``sink`` a descriptor that does not block.
    :param sink: the person's terminal.
    :returns: what was shown, and what was read but is not shown yet. That something has ended is found again.
    """
    shown: list[bytes] = []
    rest = b""
    comes, goes = select.poll(), select.poll()
    comes.register(source, select.POLLIN)
    goes.register(sink, select.POLLOUT)
    end = time.monotonic() + BURST_SECONDS
    with suppress(OSError):  # one of them is gone
        while (left := end - time.monotonic()) > 0:
            try:
                rest = rest or os.read(source, READ_SIZE)
                written = os.write(sink, rest)
                shown.append(rest[:written])
                rest = rest[written:]
            except BlockingIOError:
                if not (goes.poll(left * 1000) if rest else comes.poll(QUIET_SECONDS * 1000)):
                    break
    return b"".join(shown), rest
