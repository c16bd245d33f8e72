"""Data piped into ``ironcurtain start``, which is added to the task."""

from __future__ import annotations

import os
import select
import stat

from ironcurtain.errors import UsageError
from ironcurtain.text.data import with_marked_data

LIMIT = 512 * 1024
"""Maximum number of bytes added to a task: about what fits into the context of a model."""

FIRST_BYTE_SECONDS = 3.0
"""
Seconds to wait for the first byte of an open pipe. A program that was started by another one often has an open pipe as
its standard input, into which nothing is ever written.
"""


def read_piped(descriptor: int, patient: bool = False) -> bytes | None:
    """
    Read standard input to its end, unless it is a terminal or a device.

    :param patient: wait for the first byte of a pipe without a time limit.
    :returns: the data, at most :data:`LIMIT` + 1 bytes; ``None`` if nothing arrived in time from an open pipe.
    :raises OSError: it cannot be read.
    """
    mode = os.fstat(descriptor).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        return b""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    if not stat.S_ISREG(mode) and not poll.poll(None if patient else FIRST_BYTE_SECONDS * 1000):
        return None
    data = b""
    while len(data) <= LIMIT and (more := os.read(descriptor, LIMIT + 1 - len(data))):
        data += more
    return data


def with_data(task: str, data: bytes, mark: str) -> str:
    """
    :param data: the piped data.
    :param mark: random letters and digits, so that the data's author cannot forge its end.
    :returns: the task, with the data marked as such.
    :raises UsageError: the data is too long, or not text.
    """
    if len(data) > LIMIT:
        raise UsageError(
            f"standard input is over {LIMIT // 1024} KiB: put it into a file in the workspace, and name that in TASK"
        )
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise UsageError("standard input is not UTF-8 text: put it into a file in the workspace, and name that in TASK")
    if not text.strip():
        return task
    return with_marked_data(task, "The text between the marks was piped in.", "standard-input", text, mark)
