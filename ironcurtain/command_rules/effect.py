"""What a command does: the files and addresses that it uses, and how severe it is besides."""

from __future__ import annotations

import msgspec

from ironcurtain.command_rules.risk import Risk
from ironcurtain.commandline.model import UNKNOWN, Word, Words

HERE = Word(".")

_CLUSTER_LIMIT = 8
"""Most letters of options, with the dash, that may stand before a path in one word."""


class Effects(msgspec.Struct, frozen=True):
    """
    What a command does.

    :param risk: of everything but its files.
    :param reads: the files and directories that it reads.
    :param writes: those that it makes, changes or deletes.
    :param wholes: of these, those that it deletes, moves or changes with all that is in them.
    :param reads_trees: whether it reads all files in the directories that it reads.
    :param fills: directories in which it makes or changes files that its text does not name.
    :param strays: whether these can also be files elsewhere, as links in an archive lead there.
    :param lands: what it may write instead, with all that is in it: ``cp a b`` writes ``b/a`` if ``b`` is a directory.
    :param repository: whether ``.`` in these stands for all of a repository of git, whose root can lie above.
    :param addresses: of the network.
    """

    risk: Risk = Risk.READ
    reads: Words = ()
    writes: Words = ()
    wholes: Words = ()
    reads_trees: bool = False
    fills: Words = ()
    strays: bool = False
    lands: Words = ()
    repository: bool = False
    addresses: Words = ()

    @property
    def trees(self) -> Words:
        """The directories that it reads, fills, moves or deletes with all that is in them."""
        return (*self.wholes, *self.fills, *self.lands, *(self.reads if self.reads_trees else ()))


UNKNOWN_EFFECTS = Effects(Risk.UNKNOWN)


def operands(words: Words) -> Words:
    """:returns: the arguments that are no options, and the values in options such as ``--file=x``."""
    found: list[Word] = []
    rest = list(words[1:])
    while rest:
        word = rest.pop(0)
        if word.text == "--":
            return (*found, *rest)
        if not word.text.startswith("-"):
            found.append(word)
        elif "=" in word.text and word.text.startswith("--"):
            value = word.text.partition("=")[2]
            found.append(Word.literal(value) if word.known else word)
        elif not word.known:
            found.append(word)
        elif (slash := word.pattern.find("/")) > _CLUSTER_LIMIT:
            found.append(Word(UNKNOWN))
        elif slash >= 0:  # -f/x, or -cf/x
            found += [word.after(start) for start in range(2, max(slash, 2) + 1)]
    return tuple(found)


def within(directory: Word, file: Word) -> Word:
    """:returns: where a file gets to in a directory, by its own name; the directory itself for ``.`` and the like."""
    name = file.pattern.rstrip("/").rpartition("/")[2]
    if name in ("", ".", "..", "~"):
        return directory
    return Word(f"{directory.pattern.rstrip('/') or '/'}/{name}")
