"""Turn the names of servers, tools and arguments into names that Python accepts, without two becoming one. Pure."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable

NAME_LIMIT = 64
"""Most characters of a name made here, before what keeps it apart from others (our choice)."""

STANDARD_MODULES = frozenset(
    [
        "asyncio",
        "base64",
        "binascii",
        "bisect",
        "builtins",
        "collections",
        "copy",
        "csv",
        "dataclasses",
        "datetime",
        "decimal",
        "functools",
        "hashlib",
        "itertools",
        "json",
        "math",
        "os",
        "pathlib",
        "posixpath",
        "random",
        "re",
        "sys",
        "time",
        "tomllib",
        "types",
        "typing",
        "unicodedata",
    ]
)
"""Modules that the interpreter has itself (pydantic-monty 1.4); a server must not hide one."""

KEYWORDS = frozenset([*keyword.kwlist, *keyword.softkwlist])

MODULE_NAMES = KEYWORDS | STANDARD_MODULES | frozenset(dir(builtins))
"""What a server must not be called."""

FUNCTION_NAMES = KEYWORDS | frozenset({"Any", "bool", "dict", "float", "int", "list", "str", "tuple"})
"""What a tool must not be called, because the declarations use these names for types."""


def identifiers(names: Iterable[str], taken: frozenset[str], word: str, suffix: str = "_") -> dict[str, str]:
    """
    Make one identifier for each name.

    The result does not depend on the order of the names, so that the same tools always have the same names.

    :param taken: identifiers that must not be used.
    :param word: stands before a name that begins with a digit, and for one that has no usable character.
    :param suffix: is appended to a name that is taken.
    :returns: the identifier of each name; no two are equal, none begins with an underscore.
    """
    made: dict[str, str] = {}
    used = set(taken)
    for name in sorted(set(names), key=lambda each: (each != _plain(each, word), each)):
        wanted = identifier = _plain(name, word)
        if identifier in taken:
            wanted = identifier = f"{identifier}{suffix}"
        number = 2
        while identifier in used:
            identifier, number = f"{wanted}_{number}", number + 1
        used.add(identifier)
        made[name] = identifier
    return made


def _plain(name: str, word: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_")[:NAME_LIMIT]
    return f"{word}_{plain}".rstrip("_") if not plain or plain[0].isdigit() else plain
