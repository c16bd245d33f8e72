"""What an iteration is told. Pure, but for reading the prompt's file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ironcurtain.errors import UsageError
from ironcurtain.loop.echo import Event
from ironcurtain.servers.files.failures import FileError
from ironcurtain.servers.files.walk import Roots, open_regular, parent, require_regular

PROMPT_LIMIT = 4 * 1024 * 1024
"""Most bytes of a prompt (our choice: more than any model takes)."""

TOLD_LIMIT = 32 * 1024
"""
Most characters of events that the next prompt repeats (our choice). An agent could else make it too long to be given to
anybody; all events are in the file.
"""


def read_prompt(text: str, path: Path, workspace: Path) -> str:
    """
    :param text: the prompt itself, if it was given.
    :param path: its file otherwise. An agent can change what is in the workspace, so there no link is followed, and
        nothing but a regular file is read.
    :raises UsageError: there is none.
    """
    if text.strip():
        return text
    try:
        with os.fdopen(_open(path, workspace), "rb") as file:
            data = file.read(PROMPT_LIMIT + 1)
    except FileError as e:
        raise UsageError(f"no prompt: {e}. Write it there, or give --prompt TEXT") from None
    except OSError as e:
        raise UsageError(f"no prompt: {path}: {e.strerror}. Write it there, or give --prompt TEXT") from None
    if len(data) > PROMPT_LIMIT:
        raise UsageError(f"the prompt in {path} is over {PROMPT_LIMIT} bytes")
    if not data.strip():
        raise UsageError(f"the prompt in {path} is empty")
    return data.decode("utf-8", "replace")


def with_events(prompt: str, events: Sequence[Event]) -> str:
    """:returns: a prompt with the events of the iteration before at its end."""
    if not events:
        return prompt
    told: list[str] = []
    size = 0
    for number, event in enumerate(events):
        size += len(event.topic) + len(event.payload)
        if size > TOLD_LIMIT:
            told.append(f"(and {len(events) - number} more, which are too long to be repeated here)")
            break
        told.append(f"- {event.topic}: {event.payload}")
    return "\n".join([prompt.rstrip(), "", "Events of the iteration before:", "", *told, ""])


def _open(path: Path, workspace: Path) -> int:
    roots = Roots([os.fspath(workspace)])
    try:
        try:
            place = roots.locate(os.fspath(path))
        except FileError:  # elsewhere, where the person who named it said so
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
            try:
                require_regular(os.fstat(descriptor), os.fspath(path))
            except FileError:
                os.close(descriptor)
                raise
            return descriptor
        with parent(place) as (directory, name):
            return open_regular(directory, name, place.path, os.O_RDONLY)
    finally:
        roots.close()
