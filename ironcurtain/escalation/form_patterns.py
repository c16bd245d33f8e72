"""
Patterns of JSON Schema, which are regular expressions of ECMA-262 and match anywhere in a text.

A server's pattern is not trusted. It is matched by an engine that needs time in proportion to the text, whatever the
pattern, after a translation into that engine's syntax. What is not translated means something else there, or needs
backtracking, such as references and lookaround: those patterns are left to the server.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

PATTERN_LIMIT = 500
"""Maximum length in characters of a pattern that is checked."""

REPEATS_LIMIT = 1000
"""Maximum product of the counts in a pattern, such as ``{1,63}``: the time is in proportion to it, too."""

_DIGITS, _WORDS = "0-9", "0-9A-Z_a-z"
_BLANKS = "\\t-\\r \\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000\\ufeff"
_CLASSES = {"d": _DIGITS, "w": _WORDS, "s": _BLANKS}
_CONTROLS = {"t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r"}
_ANY = "[^\\n\\r\\u2028\\u2029]"

_ESCAPE = r"\\(?:x(?P<x>[0-9A-Fa-f]{2})|u(?P<u>[0-9A-Fa-f]{4})|(?P<control>[tnvfr])|(?P<itself>[\^$\\.*+?()[\]{}|/\-]))"
_TOKEN = re.compile(
    rf"{_ESCAPE}|\\(?P<class>[dDwWsS])|\\(?P<border>[bB])|(?P<set>\[\^?)|(?P<open>\((?:\?:|\?<[A-Za-z_]\w*>)?(?!\?))"
    r"|(?P<syntax>[)|^$])|(?P<any>\.)|(?P<repeat>(?:[*+?]|\{(?P<least>\d{1,4})(?:,(?P<most>\d{0,4}))?\})\??)"
    r"|(?P<plain>[^\\^$.*+?()[\]{}|])",
    re.DOTALL,
)
_MEMBER = re.compile(rf"{_ESCAPE}|\\(?P<class>[dDwWsS])|(?P<end>\])|(?P<plain>[^\\\]])", re.DOTALL)


class _Untranslated(Exception):
    """The pattern has something that is not translated."""


@lru_cache(maxsize=64)
def matcher(pattern: str) -> Callable[[str], bool] | None:
    """:returns: whether a pattern matches a text; ``None``: it is not checked here."""
    if len(pattern) > PATTERN_LIMIT:
        return None
    try:
        translated = "".join(_translated(pattern))
    except _Untranslated:
        return None
    from pydantic_core import SchemaError, SchemaValidator, core_schema  # slow to import, and rarely needed

    try:
        found = SchemaValidator(core_schema.str_schema(pattern=translated, regex_engine="rust-regex", strict=True))
    except SchemaError:
        return None
    return found.isinstance_python


def _translated(pattern: str) -> Iterator[str]:
    at, repeats, repeatable = 0, 1, False
    while at < len(pattern):
        token = _TOKEN.match(pattern, at)
        if token is None or (token["repeat"] and not repeatable):
            raise _Untranslated
        at = token.end()
        repeatable = not (token["repeat"] or token["open"] or token["border"] or token[0] in ("|", "^", "$"))
        match token.lastgroup:
            case "class":
                yield f"[{_class(token['class'])}]"
            case "border":
                yield rf"(?-u:\{token['border']})"
            case "set":
                members, at = _members(pattern, at)
                yield f"{token['set']}{members}]"
            case "open":
                yield "(?:"
            case "any":
                yield _ANY
            case "repeat" | "least" | "most":  # Python names the last group that took part
                repeats *= max(int(token["most"] or token["least"] or 1), 1)
                if repeats > REPEATS_LIMIT:
                    raise _Untranslated
                yield token[0]
            case "syntax":
                yield token[0]
            case _:
                yield _character(token)


def _members(pattern: str, at: int) -> tuple[str, int]:
    """:returns: the members of a set, and where it ends."""
    found: list[tuple[str, bool]] = []
    while (member := _MEMBER.match(pattern, at)) is not None:
        at = member.end()
        if member["end"]:
            return _ranges(found), at
        single = member["class"] is None
        found.append((_character(member) if single else f"[{_class(member['class'])}]", single and member[0] == "-"))
    raise _Untranslated


def _ranges(members: list[tuple[str, bool]]) -> str:
    """:param members: each with whether it is a hyphen, which stands for itself at the beginning and at the end."""
    if not members:
        raise _Untranslated
    written = []
    for position, (text, is_hyphen) in enumerate(members):
        if not is_hyphen or position in (0, len(members) - 1):
            written.append(text)
            continue
        around = members[position - 1], members[position + 1]
        if any(each.startswith("[") or hyphen for each, hyphen in around) or "-" in written[-2:]:
            raise _Untranslated
        written.append("-")
    return "".join(written)


def _class(letter: str) -> str:
    return f"{'' if letter.islower() else '^'}{_CLASSES[letter.lower()]}"


def _character(token: re.Match[str]) -> str:
    if number := token["x"] or token["u"]:
        code = int(number, 16)
    else:
        text = token["plain"] or token["itself"] or _CONTROLS[token["control"]]
        code = ord(text)
    if 0xD800 <= code < 0xE000:
        raise _Untranslated
    return f"\\x{{{code:x}}}"
