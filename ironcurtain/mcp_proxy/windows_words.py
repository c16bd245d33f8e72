"""Command lines as they are written for Windows, in the words of this system, as far as these are plain."""

from __future__ import annotations

import re
import shlex

_PATH = re.compile(r"[A-Za-z]:[\\/]|\\\\[^\\\s]+\\")
_SCRIPT = re.compile(r"([\w.-]+)\.(?:cmd|bat|ps1)", re.IGNORECASE)
_EXECUTABLE = re.compile(r"(node|npm|npx|uv|uvx|pipx|python3?|bun|bunx|deno)\.exe", re.IGNORECASE)
_CMD = re.compile(r"cmd(?:\.exe)?", re.IGNORECASE)
_SWITCH = re.compile(r"/[A-Za-z](?::\w+)?")
_OPERATOR = re.compile(r"[&|<>^%]")
_VARIABLE = re.compile(
    r"%(?P<name>APPDATA|LOCALAPPDATA|ALLUSERSPROFILE|PROGRAMDATA|PROGRAMFILES(?:\(X86\))?|USERPROFILE|USERNAME|HOMEDRIVE"
    r"|HOMEPATH|SYSTEMROOT|SYSTEMDRIVE|WINDIR|TEMP|TMP|PUBLIC|COMSPEC|PATH|CD)%",
    re.IGNORECASE,
)
"""Variables that Windows sets; other texts between signs of per cent can be parts of an address."""

_LITERAL = re.compile(r"\\\w")
"""A backslash that separates the parts of a path. One before another character is that of a shell."""


def is_windows_path(text: str) -> bool:
    """:returns: whether a text is an absolute path of Windows."""
    return _PATH.match(text) is not None


def windows_variable(text: str) -> str | None:
    """:returns: the first variable of Windows in a text, as it is written there; ``None`` if there is none."""
    found = _VARIABLE.search(text)
    return None if found is None else found[0]


def split_words(line: str) -> list[str]:
    """
    :param line: a command line as one text.
    :returns: its words. Backslashes before letters and digits are those of paths.
    :raises ValueError: a quotation has no end.
    """
    lexer = shlex.shlex(line, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters = True, ""
    if _LITERAL.search(line):
        lexer.escape = ""
    return list(lexer)


def without_cmd(words: list[str]) -> list[str]:
    """
    :param words: a command line.
    :returns: the command line that ``cmd /c`` would run, and its program by the name that it has here; the same words
        if it is not plain.
    """
    if _CMD.fullmatch(words[0]):
        rest = words[1:]
        while rest and _SWITCH.fullmatch(rest[0]):
            rest = rest[1:]
        if not rest or len(rest) == len(words) - 1 or any(map(_OPERATOR.search, rest)):
            return words
        try:
            words = split_words(rest[0]) if len(rest) == 1 else rest
        except ValueError:
            return words
    known = _SCRIPT.fullmatch(words[0]) or _EXECUTABLE.fullmatch(words[0])
    return words if known is None else [known[1], *words[1:]]
