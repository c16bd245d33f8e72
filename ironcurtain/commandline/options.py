"""Options of programs that run other programs, in the manner of getopt."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from ironcurtain.commandline.model import Word, Words

_SHORT = re.compile(r"([^:])(:{0,2})")


class Options(msgspec.Struct, frozen=True):
    """
    The options of a program.

    :param short: by letter: empty for no value, ``:`` for a value, ``::`` for a value that can only be attached.
    :param long: the same by name.
    """

    short: Mapping[str, str]
    long: Mapping[str, str]

    @classmethod
    def of(cls, notation: str) -> Options:
        """:param notation: letters as for getopt(3), then long names with the same colons, divided by blanks."""
        short, *long = f"{notation} ".split(" ")
        names = (name for name in long if name)
        return cls(dict(_SHORT.findall(short)), {name.rstrip(":"): name[len(name.rstrip(":")) :] for name in names})


class Parsed(msgspec.Struct):
    """
    The options that a command has.

    :ivar values: the options by their names without dashes.
    :ivar rest: the words after the options.
    :ivar strange: options that the program is not known to have.
    """

    values: dict[str, Word | None] = msgspec.field(default_factory=dict)
    rest: Words = ()
    strange: list[str] = msgspec.field(default_factory=list)


def parse_options(words: Words, options: Options) -> Parsed:
    """
    :param words: the arguments of a command; its options end at the first word that is none.
    :returns: the options and what follows.
    """
    found = Parsed()
    rest = iter(words)
    used = 0
    for word in rest:
        text = word.text
        if not text.startswith("-") or text == "-":
            break
        used += 1
        if text == "--":
            break
        if text.startswith("--"):
            used += _long(word, rest, options, found)
        else:
            used += _short(word, rest, options, found)
    found.rest = words[used:]
    return found


def _long(word: Word, rest: Iterator[Word], options: Options, found: Parsed) -> int:
    """:returns: how many more words the option takes."""
    name, equals, value = word.text[2:].partition("=")
    names = [name] if name in options.long else [each for each in options.long if each.startswith(name)]
    if not names or (not word.known and not equals):
        found.strange.append(word.text)
        return 0
    kinds = {options.long[each] for each in names}
    if len(kinds) > 1:
        found.strange.append(word.text)
    takes = ":" in kinds and not equals
    found.values[names[0]] = next(rest, None) if takes else _part(word, value) if equals else None
    return int(takes)


def _short(word: Word, rest: Iterator[Word], options: Options, found: Parsed) -> int:
    """:returns: how many more words the last option of the cluster takes."""
    letters = word.text[1:]
    for index, letter in enumerate(letters):
        kind = options.short.get(letter)
        if kind is None:
            found.strange.append(f"-{letter}")
            return 0
        attached = letters[index + 1 :]
        if kind and (attached or kind == "::"):
            found.values[letter] = _part(word, attached) if attached else None
            return 0
        if kind:
            found.values[letter] = next(rest, None)
            return 1
        found.values[letter] = None
    return 0


def _part(word: Word, text: str) -> Word:
    """:returns: the end of a word as a word of its own."""
    return Word.literal(text) if word.known else word
