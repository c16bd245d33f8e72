"""Differences between the shells, and between a shell that reads a script and one that people type into."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ironcurtain.commandline.model import Words
from ironcurtain.commandline.names import changes_commands, names

_SET_IN_TEXT = re.compile(
    r"(?<![$\w/.-])([A-Za-z_]\w*)(?=(?:\[[^\]]{0,200}\])?\s*(?:[-+*/%&|^:]|<<|>>)?:?=(?!=))"
    r"|\{([A-Za-z_]\w*)\}\s*[<>]|\b(?:for|select|foreach)\s+([A-Za-z_]\w*)"
)
"""How a text sets a variable: by an assignment, also in arithmetic, for a descriptor, or by a loop."""

_SETTERS = names(
    "read declare typeset local export readonly integer float getopts mapfile readarray unset vared set wait"
)
"""Builtins that set the variables that their arguments name."""

_SET_BY_WORD = re.compile(r"(\w+)(?:\[.*|\+?=.*)?", re.DOTALL)

_NO_EVENT = frozenset(' \t\n=("')
"""Characters after ``!`` with which it does not refer to the history (bash(1), HISTORY EXPANSION)."""


def interactive_doubts(text: str, shell: str) -> Iterator[str]:
    """
    :param text: as it is typed into a shell.
    :returns: doubts about what the shell changes before it parses the text.
    """
    if shell == "fish":
        return
    if text.lstrip().startswith("^") or _names_history(text):
        yield "it may refer to the history of the shell"


def _names_history(text: str) -> bool:
    """:returns: whether a ``!`` outside single quotes can refer to an earlier command."""
    single = double = False
    index = 0
    while index < len(text):
        character = text[index]
        if character == "\\" and not single:
            index += 2
            continue
        if character == "'" and not double:
            single = not single
        elif character == '"' and not single:
            double = not double
        elif character == "!" and not single and text[index - 1 : index] not in ("$", "{", "["):
            following = text[index + 1 : index + 2]
            if following and following not in _NO_EVENT:
                return True
        index += 1
    return False


def set_by_text(text: str, shell: str) -> Iterator[str]:
    """:returns: the variables that a text sets and that change what commands do."""
    for found in _SET_IN_TEXT.finditer(text):
        variable = found[1] or found[2] or found[3]
        if _matters(variable, shell):
            yield variable


def set_by_command(name: str, words: Words, shell: str) -> Iterator[str]:
    """:returns: the variables that a builtin sets and that change what commands do."""
    if name not in _SETTERS:
        return
    refers = any(re.fullmatch(r"-\w*n\w*", word.text) for word in words[1:])  # declare -n other=PATH
    for word in words[1:]:
        if (found := _SET_BY_WORD.fullmatch(word.text)) is not None:
            for variable in re.findall(r"\w+", word.text) if refers else (found[1],):
                if _matters(variable, shell):
                    yield variable


def _matters(variable: str, shell: str) -> bool:
    """Only zsh has lists in small letters, such as ``path``, that are the same as variables in capitals."""
    return changes_commands(variable) and (shell == "zsh" or not variable.islower() or "proxy" in variable)
