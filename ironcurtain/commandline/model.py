"""The reading of a command line: words, commands and doubts."""

from __future__ import annotations

import re
from enum import IntEnum

import msgspec

UNKNOWN = "\0"
"""In the pattern of a word: a part that the shell fills in when the command runs. It can be any text, or many words."""

_SPECIAL = re.compile(r"[^\w/.-]")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_GLOB = re.compile(r"(?<!\\)(?:\\\\)*[*?\[]")


class Match(IntEnum):
    """Whether something matches."""

    NO = 0
    MAYBE = 1
    """The text does not show it."""
    YES = 2


class Word(msgspec.Struct, frozen=True):
    """
    One word of a command, after quotes are removed.

    :param pattern: the text. A backslash precedes each character that has lost a special meaning by quotes, so that
        ``*`` is a wildcard and ``\\*`` is a star; :data:`UNKNOWN` stands for what the text does not show.
    """

    pattern: str

    @classmethod
    def literal(cls, text: str) -> Word:
        """:returns: the word that is exactly this text, as if it were quoted."""
        return cls(quoted(text))

    @property
    def text(self) -> str:
        """The word as the command gets it, if it is known and has no wildcard."""
        return self.filled("${}")

    def filled(self, value: str) -> str:
        """:returns: the word as the command gets it, with a text in place of what is unknown."""
        pattern = self.pattern
        return (
            _ESCAPED.sub(r"\1", pattern).replace(UNKNOWN, value) if "\\" in pattern or UNKNOWN in pattern else pattern
        )

    @property
    def known(self) -> bool:
        """Whether the text shows all of it."""
        return UNKNOWN not in self.pattern

    @property
    def is_glob(self) -> bool:
        """Whether it has a wildcard, which the shell replaces by names of files."""
        return _GLOB.search(self.pattern) is not None

    @property
    def plain(self) -> str | None:
        """The word if it is exactly this text, else ``None``."""
        return self.text if self.known and not self.is_glob else None

    def after(self, count: int) -> Word:
        """:returns: the word without its first characters, which must not be quoted."""
        return Word(self.pattern[count:])


Words = tuple[Word, ...]


def quoted(text: str) -> str:
    """:returns: the pattern of a text all of which is quoted."""
    return _SPECIAL.sub(r"\\\g<0>", text)


def basename(word: Word) -> str:
    """:returns: the name of a command without its directory."""
    return word.text.rstrip("/").rpartition("/")[2]


class SimpleCommand(msgspec.Struct, frozen=True):
    """
    A command that would run, with its arguments.

    :param words: the command and its arguments.
    :param wrappers: the commands around it, from the outermost: ``sudo sh -c 'ls -l'`` for ``ls -l``, then
        ``sh -c 'ls -l'``.
    :param text: as written, or as the innermost wrapper gets it.
    """

    words: Words
    wrappers: tuple[Words, ...] = ()
    text: str = ""

    @property
    def argv(self) -> tuple[str, ...]:
        """The words as text."""
        return tuple(word.text for word in self.words)

    @property
    def name(self) -> str:
        """The command without its directory."""
        return basename(self.words[0])

    @property
    def levels(self) -> tuple[Words, ...]:
        """The wrappers and the command itself."""
        return (*self.wrappers, self.words)


Stage = tuple[SimpleCommand, ...]
"""The commands that write to, or read from, one end of a pipe."""


class CommandLine(msgspec.Struct, frozen=True):
    """
    What a line of shell would run.

    :param commands: in the order of the text; a command behind a condition is one of them.
    :param pipelines: which commands get the output of which: each a chain of stages. A command in a substitution is a
        stage before the command that gets its output.
    :param reads: the files that redirections read.
    :param writes: the files that redirections write.
    :param doubts: sentences that say why the text does not show all that would run.
    :param changes_shell: whether it may change what later lines of the same shell mean.
    """

    commands: tuple[SimpleCommand, ...] = ()
    pipelines: tuple[tuple[Stage, ...], ...] = ()
    reads: Words = ()
    writes: Words = ()
    doubts: tuple[str, ...] = ()
    changes_shell: bool = False
