"""The directories that the commands of a line can run in."""

from __future__ import annotations

import re

from ironcurtain.commandline.model import CommandLine, Word, Words

DIRECTORIES_LIMIT = 16
"""Most directories that are considered; a line with more is for a person."""

_OPTIONS = ("-C", "-D", "--directory", "--chdir", "--cwd", "--prefix", "--work-tree")
_ATTACHED = re.compile(r"(?:-C|--(?:directory|chdir|cwd|prefix|work-tree)=)(?P<path>.+)")


def directories_of(line: CommandLine, directory: str, home: str) -> tuple[str, ...]:
    """
    :param directory: the absolute path that the line starts in.
    :param home: absolute path of the user's home directory.
    :returns: the directory, and each that ``cd`` or an option such as ``-C`` can lead to from there.
    """
    found = [directory]
    for command in line.commands:
        for words in command.levels:
            for target in _targets(words):
                if target.known and not target.is_glob and len(found) < DIRECTORIES_LIMIT:
                    text = target.text
                    text = home + text[1:] if target.pattern == "~" or target.pattern.startswith("~/") else text
                    found += [text if text.startswith("/") else f"{each}/{text}" for each in found]
    return tuple(dict.fromkeys(found))


def moves_unknown(line: CommandLine) -> bool:
    """:returns: whether the text does not show where relative paths lead: ``cd $x``, or a link that the line makes."""
    targets = [target for command in line.commands for words in command.levels for target in _targets(words)]
    names = {command.name for command in line.commands}
    return (
        "popd" in names
        or ("ln" in names and len(line.commands) > 1)
        or len(targets) > 4
        or any(not target.known or target.is_glob or target.text == "-" for target in targets)
    )


def _targets(words: Words) -> Words:
    if words[0].text in ("cd", "pushd"):
        return tuple(word for word in words[1:] if not re.fullmatch(r"-[LPeq@]+|--", word.text)) or (Word("~"),)
    found: list[Word] = []
    for word, following in zip(words[1:], (*words[2:], None), strict=False):
        if word.text in _OPTIONS and following is not None:
            found.append(following)
        elif (attached := _ATTACHED.fullmatch(word.text)) is not None:
            found.append(Word.literal(attached["path"]) if word.known else word)
    return tuple(found)
