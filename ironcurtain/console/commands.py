"""The commands of the console's input line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from ironcurtain.escalation.model import Outcome
from ironcurtain.home.host_numbers import read_number


class Section(StrEnum):
    """The lists on the screen."""

    WAITING = "waiting"
    SESSIONS = "sessions"
    HISTORY = "history"


@dataclass(frozen=True, slots=True)
class Decide:
    """
    Answer one escalation.

    :param keep: whether the approval covers all calls of its scope.
    """

    outcome: Outcome
    number: int
    keep: bool = False


@dataclass(frozen=True, slots=True)
class DecideAll:
    """Deny all listed pending escalations, or approve those of them that were read."""

    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Permissions:
    """Show the kept approvals."""


@dataclass(frozen=True, slots=True)
class Revoke:
    """Revoke a kept approval."""

    number: int


@dataclass(frozen=True, slots=True)
class Stop:
    """End a session."""

    session: int


@dataclass(frozen=True, slots=True)
class Start:
    """
    Start a session in the daemon.

    :param task: its first message; if empty, it waits for one.
    :param agent: if empty, the default one.
    :param workspace: a path that begins with ``/`` or ``~/``; if empty, a new directory.
    """

    task: str = ""
    agent: str = ""
    workspace: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """Send the opened session a message."""

    text: str


@dataclass(frozen=True, slots=True)
class GoTo:
    """Go to a list."""

    section: Section


@dataclass(frozen=True, slots=True)
class Filter:
    """Show only rows with a text; all, if it is empty."""

    text: str


@dataclass(frozen=True, slots=True)
class Help:
    """Explain keys and commands."""


@dataclass(frozen=True, slots=True)
class Quit:
    """Leave the console."""


@dataclass(frozen=True, slots=True)
class Wrong:
    """Invalid input; ``why`` says what to type."""

    why: str


Command = Decide | DecideAll | Permissions | Revoke | Stop | Start | Message | GoTo | Filter | Help | Quit | Wrong

HELP = (
    ("a  d", "approve or deny the chosen escalation; y confirms after a second. To approve, read its text to the end"),
    ("A", "approve it and stop asking about such calls, after a confirmation"),
    ("up down", "choose; also j and k, or the mouse"),
    ("Tab", "go to the next list: waiting, sessions, history"),
    ("PgUp PgDn", "scroll down in the text, also with Space or the wheel"),
    ("g G", "go to the beginning or the end of the text"),
    ("f", "filter what is listed"),
    (
        "/approve N",
        "approve escalation N; /approve all: those that you read to their end and that act on nothing outside",
    ),
    ("/answer N", "fill in form N on this line, field by field; a does so for the chosen one, y sends it"),
    ("/deny N", "deny escalation N; /deny all: all waiting ones that the filter shows"),
    ("/start TASK", "start a session in the daemon; before TASK may stand --agent NAME and --workspace DIRECTORY"),
    ("Enter", "open the chosen session: what it did and used; m writes it a message, t attaches, Esc goes back"),
    ("/message TEXT", "send the session that is open, or chosen, a message"),
    ("/stop N", "end session N; its calls that wait are withdrawn"),
    ("/approve N keep", "as A does, for escalation N"),
    ("/permissions", "the kept approvals, and their calls"),
    ("/revoke N", "revoke the kept approval of escalation N"),
    ("/sessions", "the running sessions, with the activity of the chosen one"),
    ("/escalations", "the calls that wait for a decision"),
    ("/history", "past decisions, with time and person"),
    ("/filter TEXT", "list only rows with TEXT; without it, all again"),
    ("/quit", "leave, also with q; waiting calls keep waiting"),
    ("Ctrl-L", "redraw the screen"),
)
"""Keys and commands with their explanation."""

_OUTCOMES = {"/approve": Outcome.APPROVED, "/answer": Outcome.APPROVED, "/deny": Outcome.DENIED}
_PLAIN: dict[str, Command] = {
    "/sessions": GoTo(Section.SESSIONS),
    "/escalations": GoTo(Section.WAITING),
    "/history": GoTo(Section.HISTORY),
    "/permissions": Permissions(),
    "/help": Help(),
    "/quit": Quit(),
}


def parse(text: str) -> Command:
    """:returns: the command in a line; :class:`Wrong` if it is none."""
    word, _, rest = text.strip().partition(" ")
    rest = rest.strip()
    if word in _OUTCOMES:
        return _decision(word, rest)
    if word == "/revoke":
        return _numbered(Revoke, rest, "/permissions")
    if word == "/start":
        return _start(rest)
    if word == "/message":
        return Message(rest) if rest else Wrong("write the message after /message")
    if word == "/stop":
        return _numbered(Stop, rest, "/sessions")
    if word == "/filter":
        return Filter(rest)
    if word in _PLAIN and not rest:
        return _PLAIN[word]
    if word in _PLAIN:
        return Wrong(f"{word} takes no argument")
    return Wrong("no such command: /help lists them")


def _decision(word: str, rest: str) -> Command:
    if rest == "all" and word != "/answer":
        return DecideAll(_OUTCOMES[word])
    number, _, more = rest.partition(" ")
    if (one := read_number(number)) is not None and (not more or (word == "/approve" and more.strip() == "keep")):
        return Decide(_OUTCOMES[word], one, keep=bool(more))
    return Wrong(f"which one? Type {word} and its number{'' if word == '/answer' else f', or {word} all'}")


def _start(rest: str) -> Command:
    given = {"--agent": "", "--workspace": ""}
    while (option := rest.partition(" ")[0]) in given:
        given[option], _, rest = rest[len(option) :].lstrip().partition(" ")
        rest = rest.lstrip()
        if not given[option]:
            return Wrong(f"{option} needs a value")
    if rest.startswith("-"):
        return Wrong(f"/start has no option {rest.partition(' ')[0]}: there are {' and '.join(given)}, before TASK")
    if given["--workspace"] and not f"{given['--workspace']}/".startswith(("/", "~/")):
        return Wrong("begin the workspace with / or ~/: the daemon has a current directory of its own")
    return Start(rest, given["--agent"], given["--workspace"])


def _numbered(make: Callable[[int], Command], text: str, listing: str) -> Command:
    number = read_number(text)
    return Wrong(f"which one? {listing} lists the numbers") if number is None else make(number)
