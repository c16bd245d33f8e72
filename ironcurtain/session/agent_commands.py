"""Messages that are commands about an agent's conversation, and no words for the agent."""

from __future__ import annotations

import msgspec


class Clear(msgspec.Struct, frozen=True):
    """Begin a new conversation."""


class Compact(msgspec.Struct, frozen=True):
    """Shorten the conversation."""


class UseModel(msgspec.Struct, frozen=True):
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
