"""
A program that a loop runs in a terminal: ``python agent.py WORD ... PROMPT``.

It says what it gets. Words: ``raw`` takes all keys as they come, ``paste`` asks for marks round pastes, ``alternate``
shows the other screen and takes the mouse, ``stubborn`` survives SIGTERM, ``flood`` writes some megabytes at once,
``once`` promises in the first iteration.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import tty
from typing import Any

READY = b"ready %d, iteration %d, %d words, input %b\r\n"


def say(data: bytes) -> None:
    """Write at once."""
    os.write(1, data)


def noted(number: int, frame: Any) -> None:
    """A signal came."""
    if number == signal.SIGWINCH:
        say(b"size %d %d\r\n" % tuple(os.get_terminal_size(1)))
        return
    say(b"got %b\r\n" % signal.Signals(number).name.encode())
    if number == signal.SIGTERM and "stubborn" not in sys.argv:
        sys.exit(0)


def main() -> None:
    """Say what comes, until ``q``."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGWINCH):
        signal.signal(number, noted)
    if "raw" in sys.argv:
        tty.setraw(0)
    say(b"\x1b[?2004h" * ("paste" in sys.argv) + b"\x1b[?1049h\x1b[?1000h\x1b[?25l" * ("alternate" in sys.argv))
    kind = b"terminal" if os.isatty(0) else b"none"
    say(READY % (os.getpid(), int(os.environ["IRONCURTAIN_LOOP_ITERATION"]), len(sys.argv), kind))
    if "flood" in sys.argv:
        with open(1, "wb", closefd=False) as output:
            output.writelines(b"line %06d of much\n" % number for number in range(100_000))
    if "once" in sys.argv:
        say(b"\x1b[32mLOOP_\x1b[1mCOMPLETE\x1b[0m\r\n")
        return
    while True:
        select.select([0], [], [])
        data = os.read(0, 1000)
        if not data:
            say(b"end of input\r\n")
            signal.pause()
        elif b"q" in data:
            break
        say(b"keys %b\r\n" % data.hex().encode())
    if os.isatty(0):
        termios.tcdrain(1)


if __name__ == "__main__":
    main()
