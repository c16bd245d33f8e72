"""Write values as TOML."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_UNQUOTED = re.compile(r'[\x00-\x1f\x7f"\\]')
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_string(text: str) -> str:
    """:returns: a text as a basic string of TOML."""
    return '"' + _UNQUOTED.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + '"'


def toml_value(value: Any) -> str:
    """
    :param value: text, a number, a truth value, or a list or mapping of these.
    :returns: it on one line.
    """
    if isinstance(value, str):
        return toml_string(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        members = (f"{toml_key(name)} = {toml_value(member)}" for name, member in value.items())
        return f"{{ {', '.join(members)} }}" if value else "{}"
    if isinstance(value, Sequence):
        return f"[{', '.join(map(toml_value, value))}]"
    return repr(value)


def toml_key(name: str) -> str:
    """:returns: a name as a key, quoted if it has to be."""
    return name if _BARE.fullmatch(name) else toml_string(name)
