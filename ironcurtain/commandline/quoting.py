"""Quotes, escapes and braces of shell words, on text alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

from ironcurtain.commandline.model import UNKNOWN, quoted

BRACES_LIMIT = 256
"""Most words that the braces of one word may expand to."""

BRACES_DEPTH = 16
"""Most pairs of braces within each other."""

_ANSI_C = re.compile(
    r"\\(?:x(?P<hex>[0-9a-fA-F]{1,2})|u(?P<u>[0-9a-fA-F]{1,4})|U(?P<U>[0-9a-fA-F]{1,8})"
    r"|(?P<octal>[0-7]{1,3})|c(?P<control>.)|(?P<one>.))",
    re.DOTALL,
)
_ANSI_C_NAMES = {"a": 7, "b": 8, "e": 27, "E": 27, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_ANSI_C_SAME = frozenset("\\'\"?")
_BARE = re.compile(r"\\(.)|([`;&|<>()\s'\"]|\$(?=[\w@*#?$!{('\"\[~^=-]))", re.DOTALL)
_BRACES = re.compile(r"[{},]|(?:\\.|[^{},\\])+", re.DOTALL)
_NEWLINE = "\\\n"
_RANGE = re.compile(r"(-?[0-9]+)\.\.(-?[0-9]+)(?:\.\.-?[0-9]+)?|([a-zA-Z])\.\.([a-zA-Z])(?:\.\.-?[0-9]+)?")


def bare(text: str) -> str | None:
    """
    :param text: a word, or a part of one, that is not in quotes.
    :returns: its pattern; ``None`` if it has characters that end a word or that the shell expands.
    """
    text = text.replace(_NEWLINE, "")
    if any(special for _, special in _BARE.findall(text)) or (text.endswith("\\") and not text.endswith("\\\\")):
        return None
    return re.sub(r"\\(.)", lambda escape: quoted(escape[1]), text, flags=re.DOTALL)


def double_quoted(text: str) -> str:
    """:returns: the pattern of a text between double quotes, without expansions."""
    return quoted(re.sub(r"\\([$`\"\\\n])", lambda escape: escape[1].strip("\n"), text))


def ansi_c(text: str) -> str | None:
    """
    :param text: what stands between ``$'`` and ``'``.
    :returns: the text that it stands for; ``None`` if the shells do not agree on it.
    """
    found, end = bytearray(), 0
    for escape in _ANSI_C.finditer(text):
        found += text[end : escape.start()].encode(errors="surrogatepass")
        decoded = _ansi_c_escape(escape)
        if not decoded or b"\0" in decoded:
            return None
        found += decoded
        end = escape.end()
    found += text[end:].encode(errors="surrogatepass")
    try:
        return found.decode()
    except UnicodeDecodeError:
        return None


def _ansi_c_escape(escape: re.Match[str]) -> bytes | None:
    if number := escape["hex"]:
        return bytes([int(number, 16)])
    if number := escape["octal"]:
        return bytes([int(number, 8) & 0xFF])
    if number := escape["u"] or escape["U"]:
        code = int(number, 16)
        return chr(code).encode() if code < 0xD800 or 0xDFFF < code < 0x110000 else None
    if escape["control"]:
        return bytes([ord(escape["control"][0]) & 0x1F]) if escape["control"].isascii() else None
    one = escape["one"]
    if one in _ANSI_C_NAMES:
        return bytes([_ANSI_C_NAMES[one]])
    return one.encode() if one in _ANSI_C_SAME else None


def braces(pattern: str) -> list[str] | None:
    """
    Expand the braces of a word, as in ``{a,b}c``.

    :param pattern: of a word.
    :returns: the patterns of the words that it stands for; ``None`` if they are too many, or the braces are not paired.
    """
    if "{" not in pattern and "}" not in pattern:
        return [pattern]
    return _branches(_BRACES.finditer(pattern), 0)


def _branches(tokens: Iterator[re.Match[str]], depth: int) -> list[str] | None:
    """:returns: the words up to the end of this pair of braces."""
    branches: list[list[str]] = []
    words, literal = [""], ""
    for token in tokens:
        text = token[0]
        if text == "}":
            return _closed([*branches, words], literal) if depth else None
        if text == "," and depth:
            branches.append(words)
            words = [""]
            continue
        inner = [text]
        if text == "{":
            found = _branches(tokens, depth + 1) if depth < BRACES_DEPTH else None
            if found is None or len(words) * len(found) > BRACES_LIMIT:
                return None
            inner = found
        literal += text
        words = ["".join(pair) for pair in product(words, inner)]
    return None if depth else words


def _closed(branches: list[list[str]], literal: str) -> list[str]:
    if len(branches) > 1:
        return [word for branch in branches for word in branch]
    if (ends := _RANGE.fullmatch(literal)) is not None:
        return list(_range(ends))
    return [f"\\{{{word}\\}}" for word in branches[0]]


def _range(ends: re.Match[str]) -> Iterator[str]:
    if ends[3]:
        first, last = sorted((ord(ends[3]), ord(ends[4])))
        names = [chr(code) for code in range(first, last + 1)]
    else:
        first, last = sorted((int(ends[1]), int(ends[2])))
        names = [UNKNOWN] if last - first > BRACES_LIMIT else [str(number) for number in range(first, last + 1)]
    yield from names
