"""
Regular expressions that every client can compile: those of ECMAScript with the flag ``u``, as JSON Schema has them.

Servers in Python send theirs, of which JavaScript refuses some. What is accepted here is a part of both languages.
"""

from __future__ import annotations

import re
import warnings

LONGEST = 10_000
"""Maximum number of characters of an expression that is examined."""

_ESCAPED = r"[dDwWsSfnrtv0^$\\.*+?()\[\]{}|/]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}"
_FAR = r"\\(?:u\{[0-9a-fA-F]{1,6}\}|[pP]\{[A-Za-z_]+(?:=[A-Za-z_]+)?\})"
"""Characters that Python writes otherwise."""

_TOKEN = re.compile(
    rf"(?P<far>{_FAR})"
    rf"|(?P<near>\\(?:{_ESCAPED}|[bB1-9])|\[\^?(?:{_FAR}|\\(?:{_ESCAPED}|[-b])|[^\]\\\[])*\]|[^\\()\[\]{{}}*+?|])"
    r"|(?P<name>\(\?<(?=[A-Za-z_]))"
    r"|(?P<looking>\(\?<?[=!])"
    r"|(?P<open>\((?:\?:|(?!\?)))"
    r"|(?P<close>\))"
    r"|(?P<repeat>(?:[*+?]|\{\d+(?:,\d*)?\})\??)"
    r"|(?P<other>\|)",
    re.DOTALL,
)


def is_portable(expression: str) -> bool:
    """Whether an expression has the same meaning to Python and to JavaScript."""
    if len(expression) > LONGEST:
        return False
    position, before, python, groups = 0, "", list[str](), list[str]()
    while position < len(expression):
        if (token := _TOKEN.match(expression, position)) is None:
            return False
        kind, text = str(token.lastgroup), token[0]
        if kind == "repeat" and before not in ("far", "near", "close"):
            return False
        if kind in ("name", "looking", "open"):
            groups.append(kind)
        elif kind == "close" and groups and groups.pop() == "looking":
            kind = "looked"
        python.append("(?P<" if kind == "name" else re.sub(_FAR, "a", text))
        position, before = token.end(), kind
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile("".join(python))
    except (re.error, RecursionError, OverflowError):
        return False
    return True
