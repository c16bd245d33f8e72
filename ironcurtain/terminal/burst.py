"""Much output at once, from a program's terminal straight to a person's: no turn of the reactor for each few KiB."""

from __future__ import annotations

import os
import select
import time
from contextlib import suppress

BURST_SECONDS = 0.02
"""How long nothing else is done (our choice: nobody notices, and it is some 1.5 MB)."""

QUIET_SECONDS = 0.001
"""After how long without output a burst is over (our choice)."""

READ_SIZE = 64 * 1024


def pass_on(source: int, sink: int) -> tuple[bytes, bytes]:
    """
    Pass on what a terminal's program writes, until it pauses, a key is pressed, or :data:`BURST_SECONDS` are over.

    :param source: the program's terminal, as ``sink`` a descriptor that does not block.
    :param sink: the person's terminal. It is read by nobody here, but keys that wait there end this.
    :returns: what was shown, and what was read but is not shown yet. That something has ended is found again.
    """
    shown: list[bytes] = []
    rest = b""
    comes, goes = select.poll(), select.poll()
    comes.register(source, select.POLLIN)
    comes.register(sink, select.POLLIN)
    goes.register(sink, select.POLLIN | select.POLLOUT)
    end = time.monotonic() + BURST_SECONDS
    with suppress(OSError):  # one of them is gone
        while (left := end - time.monotonic()) > 0:
            if not rest:
                if comes.poll(QUIET_SECONDS * 1000) != [(source, select.POLLIN)]:
                    break
                rest = os.read(source, READ_SIZE)
            elif goes.poll(left * 1000) != [(sink, select.POLLOUT)]:
                break
            with suppress(BlockingIOError):
                written = os.write(sink, rest)
                shown.append(rest[:written])
                rest = rest[written:]
    return b"".join(shown), rest
