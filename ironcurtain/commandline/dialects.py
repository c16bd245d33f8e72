"""Differences between the shells, and between a shell that reads a script and one that people type into."""

from __future__ import annotations

from collections.abc import Iterator

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
