"""What a person's line means: a command or a message, for which escalation it is, and when its turn comes."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping
from math import inf

from ironcurtain.errors import UsageError
from ironcurtain.escalation.decision_keys import DecisionKeys, Part, ShownPart, Verdict
from ironcurtain.view import commands
from ironcurtain.view.commands import AGENT_COMMANDS, CONVERSATION, Command, Message, Wrong

ANSWERS = ("approve", "deny", "answer", "show")
"""The commands for an escalation."""

Input = Message | Command | Wrong


def parse(line: str, typed: str = "") -> Input | None:
    """
    :param typed: what of it was typed, as for :class:`~ironcurtain.view.commands.Message`.
    :returns: the meaning of a line; ``None`` if it is blank.
    """
    if not line.strip():
        return None
    if not line.startswith("/"):
        return Message(line.strip(), typed.strip())
    read = commands.parse(line, CONVERSATION)
    if isinstance(read, Command) and any(read.word == usage.word for usage in AGENT_COMMANDS):
        return Message(f"/{read.word} {read.text}".rstrip())
    if isinstance(read, Wrong):
        return Wrong(f"{read.why}; to send this as a message, put a space before it")
    return read


def choose(
    asked: Command,
    waiting: Mapping[int, str],
    keys: DecisionKeys,
    typed: tuple[float, float],
    outcomes: Mapping[int, str],
) -> int:
    """
    Find the escalation that a command is for. It must have been shown to the person.

    :param waiting: the numbers of the pending ones, with the digests of their arguments.
    :param keys: what was shown.
    :param typed: when the person began to type, and when Enter was pressed.
    :param outcomes: outcomes of others, in words.
    :returns: its number.
    :raises UsageError: there is none, the choice is ambiguous, or it was typed too early.
    """
    numbers = f" (waiting: {', '.join(map(str, sorted(waiting)))})" if waiting else ""
    if asked.number is None and not waiting:
        raise UsageError(f"no call waits for a decision: there is nothing to {asked.word}")
    if asked.number is None and len(waiting) > 1:
        raise UsageError(f"give a number, like: /{asked.word} {min(waiting)}{numbers}")
    number = min(waiting) if asked.number is None else asked.number
    question = ShownPart(number, waiting.get(number, ""), Part.ROW)
    is_shown = number in waiting and not keys.missing([question])
    if not is_shown and number in outcomes:
        raise UsageError(f"too late: {outcomes[number]}")
    if not is_shown and asked.number is not None:
        raise UsageError(f"no escalation {number} waits in this session{numbers}")
    if asked.number is None or asked.word != "show":
        check(keys, question, typed, f"/{asked.word} {number}")
    return number


def check(keys: DecisionKeys, thing: Hashable, typed: tuple[float, float], command: str) -> None:
    """
    Check a command that was typed out.

    :param thing: what it decides on.
    :param typed: when the person began to type, and when Enter was pressed.
    :raises UsageError: it was begun before this was shown, ended too early, or has pasted text.
    """
    if keys.word([thing], *typed) is Verdict.DECIDES:
        return
    if typed[0] == -inf:
        raise UsageError(f"pasted text decides nothing: type {command}")
    if keys.word([thing], typed[0], inf) is Verdict.DECIDES:
        raise UsageError(f"too early: read it, then type {command} again")
    raise UsageError(f"it was shown while you were typing: read it, then type {command}")


class LineQueue:
    """
    The lines that were not processed yet.

    The next message waits for the answer to the previous one; a decision waits for an escalation, or for the answer.
    """

    def __init__(self) -> None:
        self._lines: deque[tuple[Input, float]] = deque()
        self.began = 0.0
        """When the line was begun that :meth:`next` returned last."""

    def add(self, line: str, began: float, own: str = "") -> None:
        """
        Add a line.

        :param began: when its first character was typed; infinity if a program wrote it.
        :param own: what of it was typed.
        """
        if (parsed := parse(line, own)) is not None:
            self._lines.append((parsed, began))

    def next(self, working: bool, waiting: bool) -> Input | None:
        """
        :param working: whether a message is being processed.
        :param waiting: whether an escalation is pending.
        :returns: the next line to process, removed from the queue; ``None``: none yet.
        """
        if not self._lines:
            return None
        first = self._lines[0][0]
        if working and not (waiting and isinstance(first, Command) and first.word in ANSWERS):
            return None
        line, self.began = self._lines.popleft()
        return line
