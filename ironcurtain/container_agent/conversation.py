"""What an agent program is started with: the conversation to continue, its model, its orientation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from msgspec.structs import replace

from ironcurtain.agents.adapter import Adapter, Facts
from ironcurtain.errors import SessionError, UsageError
from ironcurtain.files.atomic import write_atomically
from ironcurtain.session.history import INTERRUPTED
from ironcurtain.session.model import Turn
from ironcurtain.session.parts import Core
from ironcurtain.text.display import json_line, shorten

CUT_OFF_SHOWN = 2000
"""Maximum length in characters of a message that was cut off, where the agent is told of it."""


class Conversation:
    """
    :param place: writes the agent's files.
    :param orientation: returns that of the agent, once its tools are known.
    :param answered: whether a message of this conversation has been answered.
    :param notice: precedes the messages until one is answered; empty: nothing does.
    :ivar facts: for the adapter; the orientation is added by :meth:`orient`.
    :ivar name: the agent's own identifier of the conversation; empty: it is not known.
    """

    def __init__(
        self,
        core: Core,
        adapter: Adapter,
        facts: Facts,
        place: Callable[[Facts], None],
        orientation: Callable[[], Awaitable[str]],
        answered: bool,
        notice: str,
    ) -> None:
        self._core, self._adapter, self._place, self._orientation = core, adapter, place, orientation
        self.facts, self.name = facts, ""
        self._answered, self._notice = answered, notice
        self._oriented = False

    def environment(self) -> dict[str, str]:
        """
        :returns: the program's variables.
        :raises UsageError: the facts do not fit the agent.
        """
        return dict(self._adapter.environment(self.facts))

    @property
    def command(self) -> tuple[str, ...]:
        """The program's command line."""
        return tuple(self._adapter.turn(self.facts, not self._answered))

    async def orient(self) -> None:
        """Write the agent's files, once."""
        if not self._oriented:
            self.facts = replace(self.facts, orientation=await self._orientation())
            self._place(self.facts)
            self._oriented = True

    @property
    def notice(self) -> str:
        """What precedes the next message; empty: nothing."""
        return self._notice

    def answered(self) -> None:
        """A message was answered, so that the conversation can be resumed: keep its name for later programs."""
        self._answered, self._notice = True, ""
        if self.name and self.name != self.facts.conversation:
            self.facts = replace(self.facts, conversation=self.name)
            write_atomically(self._core.paths.agent_conversation, self.name.encode())

    def clear(self) -> None:
        """Begin a new one."""
        self.facts, self.name = replace(self.facts, conversation=""), ""
        self._answered, self._notice = False, ""
        self._core.paths.agent_conversation.unlink(missing_ok=True)

    def use_model(self, model: str) -> None:
        """:raises SessionError: ``MESSAGE_FAILED``: the agent cannot use it."""
        facts = replace(self.facts, model=model)
        try:
            self._adapter.environment(facts)
        except UsageError as e:
            raise SessionError("MESSAGE_FAILED", str(e)) from None
        self.facts = facts
        if self._oriented:
            self._place(facts)


def cut_off(turns: Sequence[Turn]) -> str:
    """:returns: what a resumed agent has to know if its last turn was cut off; else empty."""
    if not turns or turns[-1].error != INTERRUPTED:
        return ""
    message = json_line(shorten(turns[-1].message, CUT_OFF_SHOWN))
    return (
        "[IronCurtain was ended while you worked on the previous message, and the session was resumed. What you had "
        f"begun may be done, half done or not done: look before you do it again. The message was: {message}]"
    )
