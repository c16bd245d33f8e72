"""
JSON as people write it: with comments and with commas after the last member.

Editors allow both in their settings, from where files are copied. What is no JSON is replaced by spaces, so that every
line and column of the rest stays where it is.
"""

from __future__ import annotations

import re

from ironcurtain.errors import ConfigurationError

_COMMENTS = re.compile(r'"(?:[^"\\\n]|\\.)*"?|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
"""A text, which may contain what looks like a comment, or a comment."""

_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+|"', re.DOTALL)
_CHARACTER = re.compile(r"[^\n]")


def plain_json(source: str, text: str) -> str:
    """
    :param source: the file's name, for messages.
    :param text: JSON with ``//`` and ``/* */`` comments, and with commas before ``}`` and ``]``.
    :returns: the same JSON without them. Other errors stay, for the parser.
    :raises ConfigurationError: a comment has no end.
    """
    return _without_last_commas(without_comments(source, text))


def without_comments(source: str, text: str) -> str:
    """:returns: a text as :func:`plain_json` returns it, with the commas before ``}`` and ``]``."""

    def blank(found: re.Match[str]) -> str:
        comment = found[0]
        if comment.startswith('"'):
            return comment
        if comment.startswith("/*") and (len(comment) < 4 or not comment.endswith("*/")):
            line = text.count("\n", 0, found.start()) + 1
            raise ConfigurationError(source, "the comment that begins here has no end: add */", line=line)
        return _CHARACTER.sub(" ", comment)

    return _COMMENTS.sub(blank, text)


def _without_last_commas(text: str) -> str:
    kept, shown, comma, before = list[str](), 0, -1, ""
    for found in _TOKENS.finditer(text):
        token = found[0]
        if token in ("}", "]") and comma >= 0:
            kept += (text[shown:comma], " ")
            shown = comma + 1
        comma = found.start() if token == "," and before not in ("", "{", "[", ",", ":") else -1
        before = token
    return "".join((*kept, text[shown:]))
