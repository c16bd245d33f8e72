"""
Patterns of commands, such as ``rm -rf /`` or ``curl * | sh``.

A deny pattern matches a command that does at least what the pattern says:

- It is compared with each command that the line would run, and with each command around it: ``sudo *`` matches
  ``echo x | sudo tee f``, and ``rm -rf /`` matches ``sudo sh -c 'rm -rf /'``.
- The name of the command is compared without its directory, in lower case.
- Flags can stand anywhere, alone or together, short or long: ``-rf`` is ``-r -f``, ``-fr`` and ``--recursive --force``.
- Other words can stand in any order, except that the subcommand of programs such as git comes first. More words and
  flags than the pattern has do not matter.
- ``*`` alone stands for any words, also for none; within a word it stands for any characters.
- A path is compared in its shortest form, both as written and with symbolic links followed: ``//``, ``/.`` and
  ``/tmp/..`` are ``/``. ``/*``, everything in a directory, counts as the directory.
- Modes of chmod are compared as numbers.
- A pattern with a pipe matches commands that get each other's output, by pipes or substitutions. ``sh`` in it stands
  for every shell, ``eval`` and ``source``.
- If the text does not show whether the command matches, as in ``rm -rf $x``, it may match.

An allow pattern matches a command word by word, in its order. One without wildcards matches that command and nothing
else, with all commands around it. One with wildcards is compared with the innermost command only, and nothing may be
around that but commands that change nothing, such as ``time``.

Aliases and functions that the user's shell has already are not seen.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ironcurtain.command_rules.flags import GLOBAL_OPTIONS, letter, parts
from ironcurtain.command_rules.globs import names_overlap, overlap
from ironcurtain.command_rules.places import EVERYTHING, Names, Places
from ironcurtain.commandline.model import CommandLine, Match, SimpleCommand, Stage, Word, Words, basename, quoted
from ironcurtain.commandline.names import SHELLS, names
from ironcurtain.commandline.plain import NotPlain
from ironcurtain.commandline.programs import program
from ironcurtain.commandline.reading import read_without_unwrapping

ANY = Word("*")
TRANSPARENT = names("time nice ionice timeout stdbuf command setsid")
"""Commands around a command that change nothing about what it does."""

_EVALUATES = SHELLS | {"eval", "source", "."}


class PatternError(ValueError):
    """A text is no pattern; the message says why."""


class Pattern(msgspec.Struct, frozen=True):
    """
    A pattern, read by :func:`parse_pattern`.

    :param text: as written.
    :param commands: the words of its commands; more than one if it has pipes.
    """

    text: str
    commands: tuple[Words, ...]

    def denies(self, line: CommandLine, places: Places) -> Match:
        """:returns: whether it matches, as a deny pattern, a command of a line."""
        if len(self.commands) == 1:
            return max((self._matches(self.commands[0], each, places) for each in line.commands), default=Match.NO)
        return max((self._flows(chain, places) for chain in line.pipelines), default=Match.NO)

    def allows(self, command: SimpleCommand) -> bool:
        """:returns: whether it matches, as an allow pattern, a command."""
        if len(self.commands) != 1:
            return False
        levels = command.levels
        while len(levels) > 1 and program(levels[0][0]) in TRANSPARENT:
            if self.is_exact and _same_words(self.commands[0], levels[0]):
                return True
            levels = levels[1:]
        return (self.is_exact or len(levels) == 1) and _same_words(self.commands[0], levels[0])

    @property
    def is_exact(self) -> bool:
        """Whether it has no wildcards, so that it says all of a command."""
        return not any(word.is_glob for words in self.commands for word in words)

    def names_subcommand(self) -> bool:
        """:returns: whether its second word is plain."""
        return any(word.plain is not None for word in self.commands[0][1:2])

    def _flows(self, chain: tuple[Stage, ...], places: Places) -> Match:
        """:returns: whether stages of a chain match the commands of the pattern, in their order."""
        # best[n]: how well the first n commands of the pattern match the stages so far.
        best = [Match.YES] + [Match.NO] * len(self.commands)
        for stage in chain:
            for index in range(len(self.commands), 0, -1):
                wanted = self.commands[index - 1]
                here = max((self._matches(wanted, each, places, True) for each in stage), default=Match.NO)
                best[index] = max(best[index], min(best[index - 1], here))
        return best[-1]

    def _matches(self, wanted: Words, command: SimpleCommand, places: Places, pipe: bool = False) -> Match:
        return max(_match(wanted, words, places, pipe) for words in command.levels)


def parse_pattern(text: str, home: str) -> Pattern:
    """
    :param text: of a pattern, as in ``policy.toml``.
    :param home: absolute path of the user's home directory.
    :raises PatternError: the text cannot be a pattern.
    """
    try:
        line = read_without_unwrapping(text, {"HOME": home})
    except NotPlain as e:
        raise PatternError(str(e)) from None
    if not line.commands:
        raise PatternError("it has no command")
    if line.reads or line.writes:
        raise PatternError("write redirections as paths in [approval.filesystem]")
    if any(not word.known for command in line.commands for word in command.words):
        raise PatternError("it can have no variables but $HOME, and no substitutions")
    if len(line.commands) > 1 and [len(chain) for chain in line.pipelines] != [len(line.commands)]:
        raise PatternError("write one pattern for each command; only pipes can join commands")
    return Pattern(text, tuple(command.words for command in line.commands))


def _match(wanted: Words, words: Words, places: Places, pipe: bool) -> Match:
    """:returns: whether the words of a command match one command of a pattern."""
    named = _name_matches(wanted[0], words[0], pipe)
    if named is Match.NO:
        return named
    name = basename(words[0]).lower()
    asked, given = parts(basename(wanted[0]), wanted[1:]), parts(name, words[1:])
    operands = [word for word in asked.operands if word != ANY]
    found = Match.YES
    if name in GLOBAL_OPTIONS and operands and given.operands:
        found = _operand(operands[0], given.operands[0], places)
        if found is Match.NO:
            return found
        operands = operands[1:]
    found = min((found, *(_best(each, given.operands, places) for each in operands)))
    if not all(_has_flag(name, flag, given.flags) for flag in asked.flags):
        found = Match.NO
    if given.unknown:
        found = max(found, Match.MAYBE)
    return min(named, found)


def _name_matches(wanted: Word, word: Word, pipe: bool) -> Match:
    if not word.known:
        return Match.MAYBE
    name = Word.literal(basename(word)) if not word.is_glob else Word(word.pattern.rpartition("/")[2])
    if pipe and basename(wanted) == "sh" and name.text.lower() in _EVALUATES:
        return Match.YES
    return Match.YES if overlap(wanted.pattern.rpartition("/")[2], name.pattern) else Match.NO


def _has_flag(name: str, wanted: str, flags: Iterable[str]) -> bool:
    start = wanted.partition("*")[0]
    if wanted in flags or letter(name, start) in flags:
        return True
    if not wanted.startswith("--"):
        return False
    return any(flag.startswith(start) if "*" in wanted else start.startswith(flag) and len(flag) > 2 for flag in flags)


def _best(wanted: Word, operands: Iterable[Word], places: Places) -> Match:
    return max((_operand(wanted, each, places) for each in operands), default=Match.NO)


def _operand(wanted: Word, given: Word, places: Places) -> Match:
    if not given.known:
        return Match.MAYBE
    key, equals, value = wanted.pattern.partition("=")
    if equals and value.startswith("/"):
        start, _, rest = given.text.partition("=")
        return _path(Word(value), Word.literal(rest), places) if start == Word(key).text else Match.NO
    if wanted.pattern.startswith(("/", "~")):
        return _path(wanted, given, places)
    if not overlap(wanted.pattern, given.pattern):
        return Match.NO
    return Match.MAYBE if given.is_glob else Match.YES


def _path(wanted: Word, given: Word, places: Places) -> Match:
    roots, forms = places.forms(wanted), places.forms(given)
    return max(_names(root, form) for root in roots for form in forms)


def _names(wanted: Names, given: Names) -> Match:
    if any(Word(name).is_glob for name in wanted):
        return Match.YES if overlap("/".join(wanted), "/".join(given)) else Match.NO
    if len(wanted) == len(given) and all(map(names_overlap, wanted, given)):
        return Match.YES
    match = Match.YES
    while given and Word(given[-1]).is_glob:
        match = match if given[-1] in EVERYTHING else Match.MAYBE
        given = given[:-1]
        if len(wanted) == len(given) and all(map(names_overlap, wanted, given)):
            return match
    return Match.NO


def _same_words(wanted: Words, words: Words) -> bool:
    """:returns: whether the words of a command match those of an allow pattern, one by one."""
    if wanted == (ANY,):
        return True
    first = words[0]
    name = program(first) if "/" not in wanted[0].pattern else first.text
    if name is None or not first.known or not overlap(wanted[0].pattern, quoted(name), exact=True):
        return False
    reached = {0}
    patterns = wanted[1:]
    for word in words[1:]:
        reached = _after_any(patterns, reached)
        reached = {
            index if patterns[index] == ANY else index + 1
            for index in reached
            if index < len(patterns) and (patterns[index] == ANY or _covers(patterns[index], word))
        }
    return len(patterns) in _after_any(patterns, reached)


def _after_any(patterns: Words, reached: set[int]) -> set[int]:
    found = set(reached)
    for index in sorted(reached):
        while index < len(patterns) and patterns[index] == ANY:
            index += 1
            found.add(index)
    return found


def _covers(wanted: Word, word: Word) -> bool:
    if not word.known or (wanted.is_glob and ".." in word.text.split("/")):
        return False
    return overlap(wanted.pattern, quoted(word.text), exact=True)
