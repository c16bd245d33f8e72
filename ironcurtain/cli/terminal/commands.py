"""Parse the person's input: commands and messages."""

from __future__ import annotations

import shlex
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from enum import Enum
from math import inf

from ironcurtain.errors import UsageError
from ironcurtain.escalation.decision_keys import DecisionKeys, Part, ShownPart, Verdict
from ironcurtain.escalation.model import Outcome

NUMBER_DIGITS = 12
"""Maximum number of digits of a number."""


@dataclass(frozen=True, slots=True)
class Message:
    """
    A message for the agent.

    :param typed: what of it a person typed, and neither pasted nor piped in.
    """

    text: str
    typed: str = ""


@dataclass(frozen=True, slots=True)
class Decide:
    """
    Answer an escalation; without a number the only pending one.

    :param keep: whether the approval covers all calls of its scope.
    """

    outcome: Outcome
    number: int | None
    keep: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """
    Fill in a form; without a number the only pending one.

    :param words: ``NAME=VALUE``; without any, the fields are asked one after the other.
    """

    number: int | None
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Show:
    """Show an escalation completely; without a number the only pending one."""

    number: int | None


@dataclass(frozen=True, slots=True)
class DenyAll:
    """Deny all pending escalations of this session."""


@dataclass(frozen=True, slots=True)
class Revoke:
    """Revoke a kept approval."""

    number: int


@dataclass(frozen=True, slots=True)
class Undo:
    """Show what an undo would restore; without a turn of the last one."""

    turn: int | None


@dataclass(frozen=True, slots=True)
class UndoShown:
    """Undo what was shown."""


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Take back a message that waits for the agent; 0: the newest."""

    number: int


@dataclass(frozen=True, slots=True)
class Wrong:
    """Invalid input; ``why`` says what to type instead."""

    why: str


class Simple(Enum):
    """The commands without arguments, with their lines in the help."""

    BUDGET = "what this session used so far"
    HISTORY = "the messages and answers so far"
    PERMISSIONS = "the kept approvals; /revoke N ends one"
    STATUS = "the agent, its model and workspace, and what it used so far"
    LOGS = "where the log and the audit log are, and the log's last lines"
    HELP = "this list"
    STOP = "end this session; its calls that wait are withdrawn"
    DETACH = "leave; it continues, and 'ironcurtain attach' joins it"
    QUIT = "leave; Ctrl-D on an empty line does the same"
    EXIT = "leave"


Input = Message | Decide | Answer | Show | DenyAll | Revoke | Undo | UndoShown | Withdraw | Wrong | Simple

DECISIONS = {
    "approve": (Outcome.APPROVED, "approve a waiting call, once, exactly as it was shown"),
    "deny": (Outcome.DENIED, "deny a waiting call"),
}
"""The commands that answer an escalation, with their lines in the help."""

AGENT_COMMANDS = {
    "clear": "an agent in a container begins a new conversation",
    "compact": "it shortens its conversation, if it can",
    "model": "it uses another model, as in /model NAME",
}
"""The commands that the session carries out as messages, with their lines in the help."""

REVOKE_HELP = "/revoke takes the number of a kept approval's escalation, like: /revoke 3"


def parse(line: str, typed: str = "") -> Input | None:
    """
    :param typed: see :class:`Message`.
    :returns: the meaning of a line; ``None`` if it is blank.
    """
    if not line.strip():
        return None
    if not line.startswith("/"):
        return Message(line.strip(), typed.strip())
    word, *rest = line[1:].split() or [""]
    name = word.lower()
    if name == "deny" and [word.lower() for word in rest] == ["all"]:
        return DenyAll()
    if name in DECISIONS:
        return _decide(name, rest)
    if name == "answer":
        return _answer(line[1:])
    if name == "show":
        if len(rest) > 1 or not all(map(_is_number, rest)):
            return Wrong("/show takes the number of one escalation, like: /show 3")
        return Show(int(rest[0]) if rest else None)
    if name == "revoke":
        return Revoke(int(rest[0])) if len(rest) == 1 and _is_number(rest[0]) else Wrong(REVOKE_HELP)
    if name == "undo":
        return _undo(rest)
    if name in AGENT_COMMANDS:
        return Message(" ".join((f"/{name}", *rest)))
    if name == "withdraw":
        is_one = len(rest) <= 1 and all(map(_is_number, rest))
        return Withdraw(int("".join(rest) or 0)) if is_one else Wrong("/withdraw takes one number, like: /withdraw 3")
    if name.upper() not in Simple.__members__:
        return Wrong(f"there is no command /{name}: see /help; to send this as a message, put a space before it")
    return Wrong(f"/{name} takes no argument") if rest else Simple[name.upper()]


def _decide(name: str, rest: list[str]) -> Input:
    outcome, _ = DECISIONS[name]
    if keep := name == "approve" and len(rest) == 2 and rest[1].lower() == "keep":
        rest = rest[:1]
    if not rest:
        return Decide(outcome, None)
    if len(rest) > 1 or not _is_number(rest[0]):
        return Wrong(f"/{name} takes the number of one escalation, like: /{name} 3")
    return Decide(outcome, int(rest[0]), keep)


def _answer(line: str) -> Input:
    try:
        _, *rest = shlex.split(line)
    except ValueError:
        return Wrong("a quotation mark is missing")
    number = int(rest.pop(0)) if rest and _is_number(rest[0]) else None
    if not all("=" in word for word in rest):
        return Wrong("/answer takes the number of one form; values, if any, are written as NAME=VALUE")
    return Answer(number, tuple(rest))


def _undo(rest: list[str]) -> Input:
    if [word.lower() for word in rest] == ["yes"]:
        return UndoShown()
    if len(rest) > 1 or not all(map(_is_number, rest)):
        return Wrong("/undo takes the number of one turn, like: /undo 3")
    return Undo(int(rest[0]) if rest else None)


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdecimal() and len(word) <= NUMBER_DIGITS


def choose(
    asked: Decide | Answer | Show,
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
    word = type(asked).__name__.lower()
    if isinstance(asked, Decide):
        word = "approve" if asked.outcome is Outcome.APPROVED else "deny"
    number = _only_one(word, sorted(waiting)) if asked.number is None else asked.number
    question = ShownPart(number, waiting.get(number, ""), Part.ROW)
    is_shown = number in waiting and not keys.missing([question])
    if not is_shown and number in outcomes:
        raise UsageError(f"too late: {outcomes[number]}")
    if not is_shown and asked.number is not None:
        raise UsageError(f"no escalation {number} waits in this session{_list(sorted(waiting))}")
    if asked.number is None or not isinstance(asked, Show):
        check(keys, question, typed, f"/{word} {number}")
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


def _only_one(word: str, waiting: list[int]) -> int:
    if not waiting:
        raise UsageError(f"no call waits for a decision: there is nothing to {word}")
    if len(waiting) > 1:
        raise UsageError(f"give a number, like: /{word} {waiting[0]}{_list(waiting)}")
    return waiting[0]


def _list(waiting: list[int]) -> str:
    return f" (waiting: {', '.join(map(str, waiting))})" if waiting else ""
