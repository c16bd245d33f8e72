"""A model that says what a file tells it to, for demonstrations and tests."""

from __future__ import annotations

import os
from collections.abc import Callable

from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from ironcurtain.errors import ConfigurationError
from ironcurtain.llm.model import ModelEvent, ModelReply, ModelRequest, TextDelta, ToolStarted, UsageSeen
from ironcurtain.llm.script import CODE_TOOL, Script, parse_script


def load_script(path: str) -> Script:
    """
    Read a file of turns; its format is told in :mod:`ironcurtain.llm.script`.

    :raises ConfigurationError: it cannot be read or is wrong.
    """
    try:
        with open(os.path.expanduser(path), encoding="utf-8") as file:
            return parse_script(file.read(), path)
    except OSError as e:
        raise ConfigurationError(path, f"cannot be read: {e.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(path, "is not UTF-8 text") from None


class ScriptedProvider:
    """
    Answer from a script, in natural time.

    :param clock: the reactor, or a ``Clock``; waits between words if the script says so.
    """

    name = "scripted"

    def __init__(self, script: Script, clock: IReactorTime) -> None:
        self._script, self._clock = script, clock

    async def converse(self, request: ModelRequest, notify: Callable[[ModelEvent], None]) -> ModelReply:
        """See :meth:`ironcurtain.llm.model.Provider.converse`; errors are of kind ``script``."""
        turn, reply = self._script.answer(request)
        for word in turn.words():
            if turn.delay:
                await deferLater(self._clock, turn.delay)
            notify(TextDelta(word))
        if turn.code:
            notify(ToolStarted(CODE_TOOL))
        notify(UsageSeen(reply.usage))
        return reply
