"""The risk class of a command line."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from ironcurtain.command_rules.effects import effects
from ironcurtain.command_rules.places import Names, Places, reaches
from ironcurtain.command_rules.risk import SEVERITY, Risk
from ironcurtain.commandline.model import CommandLine, Match, Word

HARMLESS_FILES = frozenset(
    ("/dev/null", "/dev/zero", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/random", "/dev/urandom")
)
"""Files that can be read and written without an effect."""


def risk_of(line: CommandLine, places: Places) -> Risk:
    """
    :param line: as it was read.
    :param places: its directories; the first is where it starts.
    :returns: the most severe class of anything that it does.
    """
    roots = places.forms(Word.literal(places.directories[0]))
    found = [Risk.UNKNOWN] if line.doubts else [Risk.READ]
    for command in line.commands:
        for each in effects(command):
            found += [each.risk, *_written(each.writes, places, roots)]
    found += _written(line.writes, places, roots)
    found += [Risk.NETWORK for word in (*line.reads, *line.writes) if is_network_file(word)]
    return max(found, key=SEVERITY.__getitem__)


def is_network_file(word: Word) -> bool:
    """:returns: whether a redirection to a file makes bash open a connection (bash(1), REDIRECTION)."""
    return word.text.startswith(("/dev/tcp/", "/dev/udp/"))


def is_harmless(word: Word) -> bool:
    """:returns: whether a word names a file without contents, such as ``/dev/null``."""
    return word.text in HARMLESS_FILES or re.fullmatch(r"/dev/fd/[012]", word.text) is not None


def _written(words: Iterable[Word], places: Places, roots: Collection[Names]) -> list[Risk]:
    return [
        Risk.WRITE_INSIDE if word.known and is_inside(word, places, roots) else Risk.WRITE_OUTSIDE
        for word in words
        if not is_harmless(word)
    ]


def is_inside(word: Word, places: Places, roots: Collection[Names]) -> bool:
    """
    :param roots: the names of a directory, as written and with symbolic links followed.
    :returns: whether all paths that a word can mean are in the directory.
    """
    return all(any(reaches(form, root) is Match.YES for root in roots) for form in places.forms(word))
