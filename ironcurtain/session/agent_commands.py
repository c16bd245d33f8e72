"""Messages that are commands about an agent's conversation, and no words for the agent."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clear:
    """Begin a new conversation."""


@dataclass(frozen=True, slots=True)
class Compact:
    """Shorten the conversation."""


@dataclass(frozen=True, slots=True)
class UseModel:
    """Use another model from now on; empty: say which is used."""

    name: str


def read_command(message: str) -> Clear | Compact | UseModel | None:
    """:returns: the command that a message is; ``None``: it is for the agent."""
    match message.split():
        case ["/clear"]:
            return Clear()
        case ["/compact"]:
            return Compact()
        case ["/model", *name] if len(name) <= 1:
            return UseModel("".join(name))
        case _:
            return None
