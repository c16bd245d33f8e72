"""Messages that an agent's program got during a turn, for this turn or the next one."""

from __future__ import annotations

from collections.abc import Callable


class HandedOver:
    """The messages that one program got and has not yet said to have taken into its conversation."""

    def __init__(self) -> None:
        self._messages: list[tuple[str, Callable[[], None]]] = []

    def add(self, message: str, taken: Callable[[], None]) -> None:
        """:param taken: called once the program says that it has taken the message."""
        self._messages.append((message, taken))

    def take(self, message: str) -> None:
        """The program has taken a message."""
        for handed in self._messages:
            if handed[0] == message:
                self._messages.remove(handed)
                handed[1]()
                return

    def clear(self) -> None:
        """The turn was interrupted, and the program forgets them."""
        self._messages.clear()

    def begin(self, message: str, notice: str) -> str:
        """
        A turn begins with a message.

        :param notice: precedes the message; empty: nothing does.
        :returns: what to send. A message that the program has already is known by its own words alone: with a notice,
            it would be sent a second time.
        """
        rest = [handed for handed in self._messages if handed[0] != message]
        is_known, self._messages = len(rest) < len(self._messages), rest
        return message if is_known or not notice else f"{notice}\n\n{message}"
