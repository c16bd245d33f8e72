"""Messages that a person sends while the agent works."""

from __future__ import annotations

from collections.abc import Callable

from ironcurtain.cli.terminal.commands import Message
from ironcurtain.errors import IronCurtainError
from ironcurtain.operations.api import SessionApi

NOT_SENT = "not sent: the agent is working. Press Enter again when it is done"
"""Where an agent keeps no messages."""


async def keep(api: SessionApi, session: int, message: Message, put_back: Callable[[str], None]) -> str:
    """
    Send a message that waits, or joins what the agent works on. Its events show what becomes of it.

    :param put_back: takes its text if the agent keeps no messages.
    :returns: what to tell the person; empty: nothing.
    """
    try:
        await api.send(session, message.text, message.typed)
    except IronCurtainError as e:
        if e.code == "SESSION_NOT_READY":
            put_back(message.text)
            return NOT_SENT
    return ""


async def withdraw(api: SessionApi, session: int, number: int, put_back: Callable[[str], None]) -> str:
    """
    Take back a message that waits.

    :param number: 0: the newest.
    :param put_back: takes its text.
    :returns: what to tell the person; empty: nothing.
    """
    try:
        put_back(await api.withdraw(session, number))
    except IronCurtainError as e:
        return str(e)
    return ""
