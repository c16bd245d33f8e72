"""
The confined process, ``python -I -B -m ironcurtain.senses.worker``: carries out one order and ends.

It has nothing but its input: no network, no socket, no file but programs. A picture or a sound that takes it over gains
a wrong answer about itself.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ironcurtain.errors import UsageError
from ironcurtain.platform.files import nameless_file
from ironcurtain.senses import differences, hearing, pictures
from ironcurtain.senses.wire import (
    BAD_DATA,
    MISSING,
    FindChanges,
    FindEvents,
    MakePicture,
    ReadText,
    Transcribe,
    read_order,
)

READING = ("--psm", "3", "--dpi", "200", "-l", "eng", "tsv")
"""Options of ``tesseract``: find columns and lines, whatever the page; English letters."""

_REPLIES: Mapping[type, Callable[[Any, bytes], Any]] = {
    MakePicture: pictures.make_picture,
    FindChanges: differences.find_changes,
    Transcribe: lambda order, pcm: hearing.transcribe(pcm),
    FindEvents: lambda order, pcm: hearing.find_events(pcm),
}


def main() -> int:
    """:returns: the exit status; while ``tesseract`` reads, this process is it."""
    try:
        order, data = read_order(sys.stdin.buffer.read())
        if isinstance(order, ReadText):
            _read(order, data)
        reply = msgspec.msgpack.encode(_REPLIES[type(order)](order, data))
    except UsageError as e:
        print(e, file=sys.stderr)
        return BAD_DATA
    except (ImportError, FileNotFoundError) as e:
        print(e, file=sys.stderr)
        return MISSING
    sys.stdout.buffer.write(reply)
    return 0


def _read(order: ReadText, png: bytes) -> None:
    """:raises OSError: ``tesseract`` cannot be started."""
    made, letters = pictures.prepare_for_reading(order, png)
    with os.fdopen(nameless_file(), "wb") as file:
        file.write(letters)
        file.flush()
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        os.dup2(file.fileno(), 0)
    sys.stdout.buffer.write(msgspec.json.encode(made) + b"\n")
    sys.stdout.flush()
    os.execv(order.program, (order.program, "stdin", "stdout", *READING))


if __name__ == "__main__":
    sys.exit(main())
