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

READ_SIZE = 8 * 1024
"""Most bytes of one read (the kernel gives half of that)."""

AHEAD = 64 * 1024
"""How many bytes are read before they can be shown: the program goes on meanwhile (our choice; 8 KiB cost a tenth)."""

_BUFFER = memoryview(bytearray(1024 * 1024))  # the same each time: new memory costs as much as the reading
_LAST = len(_BUFFER) - READ_SIZE


def pass_on(source: int, sink: int) -> tuple[bytes, bytes]:
    """
    Pass on what a terminal's program writes, until it pauses, or :data:`BURST_SECONDS` are over, or it was a megabyte.

    :param source: the program's terminal, as ``sink`` a descriptor that does not block.
    :param sink: the person's terminal.
    :returns: what was shown, and what was read but is not shown yet. That something has ended is found again.
    """
    read = shown = 0
    end = time.monotonic() + BURST_SECONDS
    with suppress(OSError):  # one of them is gone
        while (left := end - time.monotonic()) > 0 and shown <= _LAST:
            room = read - shown < AHEAD and read <= _LAST
            came = _read(source, read) if room else 0
            read += came
            went = _write(sink, shown, read) if shown < read else 0
            shown += went
            if not (came or went or _wait(source if room else None, sink if shown < read else None, left)):
                break
    return bytes(_BUFFER[:shown]), bytes(_BUFFER[shown:read])


def _read(source: int, at: int) -> int:
    """:returns: how many bytes there were."""
    try:
        return os.readv(source, [_BUFFER[at : at + READ_SIZE]])
    except BlockingIOError:
        return 0


def _write(sink: int, start: int, end: int) -> int:
    """:returns: how many bytes it took."""
    try:
        return os.write(sink, _BUFFER[start:end])
    except BlockingIOError:
        return 0


def _wait(source: int | None, sink: int | None, left: float) -> bool:
    """:returns: whether anything can go on."""
    waits = select.poll()
    if source is not None:
        waits.register(source, select.POLLIN)
    if sink is not None:
        waits.register(sink, select.POLLOUT)
    return bool(waits.poll(1000 * (QUIET_SECONDS if sink is None else left)))
