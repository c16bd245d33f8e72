"""
Instructions that wait until a model can be reached, or that watchers propose: in memory, until the user begins or
discards them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import msgspec

from ironcurtain.errors import IronCurtainError
from ironcurtain.text.display import one_line

LIMIT = 20
"""How many instructions wait at most."""

SHOWN = 200
"""Most characters that are shown of each."""

HELP = "#? lists, #+ begins the oldest, #- discards all; #+ N and #- N take number N"

_COMMAND = re.compile(r"([?+-])(?:\s*(\d{1,6}))?")


class Offer(msgspec.Struct, frozen=True):
    """
    An instruction that somebody else than the user proposes.

    :param shown: what and who it is, on one line.
    :param begun: called when the user lets it begin; it raises :class:`~ironcurtain.errors.IronCurtainError` if it
        cannot.
    :param over: called when it is over, with why it failed, or an empty text; ``None``: the user discards it.
    """

    instruction: str
    shown: str
    begun: Callable[[], None]
    over: Callable[[str | None], None]


class Taken(msgspec.Struct, frozen=True):
    """
    What a line after ``#`` is.

    :param instruction: to begin now; empty: there is nothing to begin.
    :param number: of an instruction that waited until now.
    :param said: lines for the user.
    :param offer: whose instruction it is, if not the user's.
    """

    instruction: str = ""
    number: int | None = None
    said: tuple[str, ...] = ()
    offer: Offer | None = None


class WaitingInstructions:
    """The instructions of one session; their numbers are never used again."""

    def __init__(self) -> None:
        self._waiting: dict[int, str | Offer] = {}
        self._last = 0

    def offer(self, offer: Offer) -> int | None:
        """
        :returns: its number; ``None``: too many wait, so that it is not kept.
        """
        if len(self._waiting) >= LIMIT:
            return None
        self._last += 1
        self._waiting[self._last] = offer
        return self._last

    def withdraw(self, number: int) -> None:
        """What was offered under this number is no longer proposed."""
        self._waiting.pop(number, None)

    def take(self, line: str) -> Taken:
        """:param line: what was typed after ``#``: an instruction, or a word about those that wait."""
        command = _COMMAND.fullmatch(line)
        if command is None or not (self._waiting or command[1] == "?"):
            return Taken(line)
        number = int(command[2]) if command[2] else None
        if number is not None and number not in self._waiting:
            return Taken(said=(f"no instruction {number} waits", *self._listed()))
        match command[1]:
            case "+":
                begun = min(self._waiting) if number is None else number
                if not isinstance(found := self._waiting[begun], Offer):
                    return Taken(found, begun)
                try:
                    found.begun()
                except IronCurtainError as e:
                    return Taken(said=(f"instruction {begun} cannot begin, and still waits: {e}",))
                del self._waiting[begun]
                return Taken(found.instruction, begun, offer=found)
            case "-":
                gone = [number] if number is not None else list(self._waiting)
                for each in gone:
                    if isinstance(dropped := self._waiting.pop(each), Offer):
                        dropped.over(None)
                return Taken(said=(f"discarded: {', '.join(map(str, gone))}",))
            case _:
                return Taken(said=tuple(self._listed()))

    def ended(self, taken: Taken, unreached: bool, error: str = "") -> tuple[str, ...]:
        """
        An instruction is over.

        :param unreached: whether that is because no model could be reached, and nothing was done for it.
        :param error: why it failed; empty if it did not.
        :returns: lines for the user.
        """
        if taken.offer is not None:  # whoever proposed it may do so again
            taken.offer.over(error)
            return ()
        if not unreached:
            if taken.number is not None:
                self._waiting.pop(taken.number, None)
            typed = not all(isinstance(each, Offer) for each in self._waiting.values())
            return ("a model answers again; begin what waits, or discard it:", *self._listed()) if typed else ()
        if taken.number is not None:
            return (f"no model answers: instruction {taken.number} still waits ({HELP})",)
        if len(self._waiting) >= LIMIT:
            return (f"no model answers, and {LIMIT} instructions wait already: this one is not kept ({HELP})",)
        self._last += 1
        self._waiting[self._last] = taken.instruction
        return (f"no model answers: the instruction waits as number {self._last}, until the shell ends ({HELP})",)

    def _listed(self) -> Iterable[str]:
        if not self._waiting:
            yield "no instruction waits"
            return
        for number, waits in self._waiting.items():
            yield f"{number}  {waits.shown if isinstance(waits, Offer) else one_line(waits, SHOWN)}"
        yield HELP
