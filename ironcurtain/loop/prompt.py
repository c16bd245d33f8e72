"""What an iteration is told. Pure, but for reading the prompt's file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ironcurtain.errors import UsageError
from ironcurtain.loop.echo import Event

PROMPT_LIMIT = 4 * 1024 * 1024
"""Most bytes of a prompt (our choice: more than any model takes)."""


def read_prompt(text: str, path: Path) -> str:
    """
    :param text: the prompt itself, if it was given.
    :param path: its file otherwise.
    :raises UsageError: there is none.
    """
    if text.strip():
        return text
    try:
        with path.open("rb") as file:
            data = file.read(PROMPT_LIMIT + 1)
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
    told = [f"- {event.topic}: {event.payload}" for event in events]
    return "\n".join([prompt.rstrip(), "", "Events of the iteration before:", "", *told, ""])
