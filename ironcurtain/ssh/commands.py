"""The commands of ``ssh HOST COMMAND``."""

from __future__ import annotations

import shlex

import msgspec

from ironcurtain.errors import UsageError
from ironcurtain.home.host_numbers import read_number

LENGTH_LIMIT = 4096
"""Maximum length in bytes of a command."""

_TARGETS = {
    "console": "",
    "attach": "S",
    "observe": "S",
    "sessions": "",
    "stop": "S",
    "escalations": "",
    "show": "N",
    "approve": "N",
    "deny": "N",
    "answer": "N",
    "permissions": "",
    "revoke": "N",
    "logs": "S",
    "audit": "S",
    "report": "S",
}
"""Each command with its argument: a session, an escalation's number, or nothing."""

_FLAGS = {
    "console": (),
    "attach": (),
    "observe": (),
    "escalations": ("--json", "--all"),
    "approve": ("--json", "--digest", "--keep"),
    "deny": ("--json", "--session"),
    "answer": ("--json", "--digest", "--cancel"),
}
"""The options of each command, if they differ from ``--json``."""

_VALUES = {"--digest": "a digest, as escalations show N ends with it", "--session": "the number of a session"}
"""The options with a value, and its description."""

_KNOWN = (
    "console, attach S, observe S, sessions, stop S, escalations, escalations show N, approve N, deny N, "
    "deny all, answer N NAME=VALUE ..., permissions, revoke N, logs S, audit S, report S; without one: the console"
)


class Command(msgspec.Struct, frozen=True):
    """
    One command.

    :param name: ``show`` for ``escalations show``.
    :param session: number or id, or ``last`` for the newest; with ``deny all`` empty for all sessions.
    :param number: number of an escalation, also of a kept approval.
    :param json: print for programs.
    :param everything: include decided ones; with ``deny``, all pending ones.
    :param digest: digest of the arguments shown, if given.
    :param keep: whether the approval covers all calls of its scope.
    :param values: ``NAME=VALUE`` words, for a form.
    :param cancel: whether nobody answers the form.
    """

    name: str
    session: str = ""
    number: int = 0
    json: bool = False
    everything: bool = False
    digest: str | None = None
    keep: bool = False
    values: tuple[str, ...] = ()
    cancel: bool = False


def parse(text: bytes) -> Command:
    """
    Parse a client's command.

    :raises UsageError: there is no such command, or its arguments are wrong.
    """
    words = _words(text)
    if words[:2] == ["escalations", "show"]:
        words = words[1:]
    name, rest = words[0], words[1:]
    if name not in _TARGETS:
        raise UsageError(f"there is no command {name[:40]!r}: the commands are {_KNOWN}")
    targets, options = _sort(name, rest)
    kind = _TARGETS[name]
    if name in ("attach", "observe") and not targets:
        targets = ["last"]
    if name == "deny" and targets == ["all"]:
        return Command(name, session=options.get("--session", ""), json="--json" in options, everything=True)
    if "--session" in options:
        raise UsageError("--session goes with deny all")
    targets, values = (targets[:1], tuple(targets[1:])) if name == "answer" else (targets, ())
    if len(targets) != len(kind):
        wanted = {"": "nothing more", "S": "one session", "N": "the number of one escalation"}[kind]
        raise UsageError(f"{name} wants {wanted}")
    return Command(
        name,
        session=targets[0] if kind == "S" else "",
        number=_number(name, targets[0]) if kind == "N" else 0,
        json="--json" in options,
        everything="--all" in options,
        digest=options.get("--digest"),
        keep="--keep" in options,
        values=values,
        cancel="--cancel" in options,
    )


def _words(text: bytes) -> list[str]:
    if len(text) > LENGTH_LIMIT:
        raise UsageError(f"a command has at most {LENGTH_LIMIT} bytes")
    try:
        words = shlex.split(text.decode())
    except (UnicodeDecodeError, ValueError):
        raise UsageError("the command is not text, or a quotation mark is missing") from None
    if not words:
        raise UsageError(f"there is no command; there are: {_KNOWN}")
    return words


def _sort(name: str, words: list[str]) -> tuple[list[str], dict[str, str]]:
    """:returns: the words that are not options, and the options with their values."""
    targets: list[str] = []
    options: dict[str, str] = {}
    left = iter(words)
    for word in left:
        option, _, value = word.partition("=")
        if not word.startswith("-"):
            targets.append(word)
        elif option not in _FLAGS.get(name, ("--json",)) or (value and option not in _VALUES):
            raise UsageError(f"{name} has no option {word[:40]!r}")
        elif option in _VALUES and not (value := value or next(left, "")):
            raise UsageError(f"{option} wants {_VALUES[option]}")
        else:
            options[option] = value
    return targets, options


def _number(name: str, text: str) -> int:
    if (number := read_number(text)) is None:
        raise UsageError(f"{name} wants the number of an escalation, not {text[:40]!r}")
    return number
