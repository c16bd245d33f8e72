"""The commands that a person types after a slash: from one table each line is read, and the help is made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from ironcurtain.home.host_numbers import read_number
from ironcurtain.text.columns import Line, Span, items, wrap

HELP_COLUMNS = 21
"""Columns for what is explained, in a help."""


class Command(msgspec.Struct, frozen=True):
    """
    A command as it was typed.

    :param number: the one given; ``None``: none was.
    :param option: the fixed word after it, such as ``all`` and ``keep``; empty: none.
    :param text: the rest of the line.
    :param session: number of the agent's session, where there are several.
    """

    word: str
    number: int | None = None
    option: str = ""
    text: str = ""
    session: int = 0


class Message(msgspec.Struct, frozen=True):
    """
    A message for an agent.

    :param typed: what of it a person typed, and neither pasted nor piped in.
    :param session: number of the agent's session, where there are several.
    """

    text: str
    typed: str = ""
    session: int = 0


class Wrong(msgspec.Struct, frozen=True):
    """Invalid input; ``why`` says what to type instead, and is not escaped."""

    why: str


class Usage(msgspec.Struct, frozen=True):
    """
    One way to write a command, or a key where the help of a surface has keys, too.

    :param form: as the help shows it: ``N`` stands for a number, other capitals for the rest of the line, and what is
        in brackets can be left out.
    :param help: what it does; empty: the help of another one says it.
    """

    form: str
    help: str

    @property
    def word(self) -> str:
        """The command's name."""
        return self.form.partition(" ")[0].removeprefix("/")

    def read(self, rest: str) -> Command | None:
        """:returns: the command, given what stands after its name; ``None``: this is another way to write it."""
        found = Command(self.word)
        for part in self.form.split(" ")[1:]:
            wanted, is_optional = part.strip("[]"), part.startswith("[")
            first, _, after = rest.partition(" ")
            if wanted == "N" and (number := read_number(first)) is not None:
                found, rest = replace(found, number=number), after.lstrip()
            elif wanted.islower() and first.lower() == wanted:
                found, rest = replace(found, option=wanted), after.lstrip()
            elif wanted != "N" and wanted.isupper() and rest:
                found, rest = replace(found, text=rest), ""
            elif not is_optional:
                return None
        return None if rest else found


_KEEP = Usage("/approve N keep", "approve it, and stop asking about such calls")
_PERMISSIONS = Usage("/permissions", "the kept approvals; /revoke N ends one")
_REVOKE, _HELP = Usage("/revoke N", ""), Usage("/help", "")

CONSOLE = (
    Usage("/approve N", "approve escalation N"),
    Usage("/approve all", "approve those that you read to their end and that act on nothing outside"),
    _KEEP,
    Usage("/answer N", "fill in form N on this line, field by field; y sends it"),
    Usage("/deny N", "deny escalation N"),
    Usage("/deny all", "deny all waiting ones that the filter shows"),
    Usage("/start [TASK]", "start a session in the daemon; --agent NAME and --workspace DIRECTORY stand before TASK"),
    Usage("/message TEXT", "send the session that is open, or chosen, a message"),
    Usage("/withdraw [N]", "take back a message that waits for its agent"),
    Usage("/stop N", "end session N; its calls that wait are withdrawn"),
    _PERMISSIONS,
    _REVOKE,
    Usage("/sessions", "the running sessions, with the activity of the chosen one"),
    Usage("/escalations", "the calls that wait for a decision"),
    Usage("/history", "past decisions, with time and person"),
    Usage("/filter [TEXT]", "list only rows with TEXT; without it, all again"),
    _HELP,
    Usage("/quit", "leave, also with q; waiting calls keep waiting"),
)
"""The commands of the console."""

AGENT_COMMANDS = (
    Usage("/clear", "an agent in a container begins a new conversation"),
    Usage("/compact [TEXT]", "it shortens its conversation, if it can"),
    Usage("/model [NAME]", "it uses another model, as in /model NAME"),
)
"""The commands that a session carries out as messages."""

CONVERSATION = (
    Usage("/approve [N]", "approve a waiting call, once, exactly as it was shown"),
    Usage("/deny [N]", "deny a waiting call; /deny all denies all of this session"),
    Usage("/show [N]", "show a waiting call completely, before you approve it"),
    Usage("/deny all", ""),
    _KEEP,
    Usage("/answer [N] [VALUES]", "fill in a form: field by field, or with NAME=VALUE ..."),
    *AGENT_COMMANDS,
    Usage("/withdraw [N]", "take back a message that waits for the agent"),
    Usage("/undo [N]", "show what undoing turn N, or the last one, restores"),
    Usage("/undo yes", "restore what was shown"),
    Usage("/budget", "what this session used so far"),
    Usage("/history", "the messages and answers so far"),
    _PERMISSIONS,
    _REVOKE,
    Usage("/status", "the agent, its model and workspace, and what it used"),
    Usage("/logs", "where the logs are, and the last lines of one"),
    _HELP,
    Usage("/stop", "end this session; its calls that wait are withdrawn"),
    Usage("/detach", "leave; it continues, and 'ironcurtain attach' joins it"),
    Usage("/quit", "leave, as do /exit and Ctrl-D on an empty line"),
    Usage("/exit", ""),
)
"""The commands of a conversation."""


def parse(line: str, usages: Iterable[Usage]) -> Command | Wrong:
    """
    :param line: with or without its slash.
    :param usages: the table of the surface.
    """
    word, _, rest = line.strip().removeprefix("/").partition(" ")
    known = [usage for usage in usages if usage.word == word.lower()]
    read = (usage.read(rest.strip()) for usage in known)
    if (command := next((each for each in read if each is not None), None)) is not None:
        return command
    if not known:
        return Wrong(f"there is no command /{word}: see /help")
    forms = [usage.form for usage in known]
    return Wrong(f"/{word} takes no argument" if forms == [f"/{known[0].word}"] else f"type {' or '.join(forms)}")


def key_lines(keys: Iterable[tuple[str, str]], width: int, rest: Sequence[Line] = ()) -> list[Line]:
    """
    :param keys: each with what it does, in a word; empty: the key says it.
    :param width: columns.
    :param rest: stands after the keys.
    :returns: the keys that count now, side by side.
    """
    shown = [(Span(key, "key"), *((Span(f" {word}"),) if word else ())) for key, word in keys]
    return items([*shown, *rest], width, "  ")


def help_lines(usages: Iterable[Usage], width: int) -> list[Line]:
    """
    :param width: columns.
    :returns: commands, or keys, and what they do, side by side.
    """
    lines: list[Line] = []
    for usage in usages:
        for index, part in enumerate(wrap(usage.help, width - HELP_COLUMNS) if usage.help else ()):
            lines.append((Span(f"{'' if index else usage.form:<{HELP_COLUMNS}}", "key"), Span(part)))
    return lines
