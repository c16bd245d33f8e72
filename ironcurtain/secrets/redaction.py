"""
A type for secrets, and the redactor that removes them from everything that is written.

It combines two methods, since each is incomplete: the exact values of live secrets, in all encodings (plain, JSON, URL,
base64), and :mod:`rules <ironcurtain.secrets.rules>` for unknown credentials, such as a key that an agent found in a
file.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import quote, quote_plus

from ironcurtain.secrets.rules import Found, any_of, find, is_secret_name, is_secret_option

SHORTEST_EXACT = 8
"""Shorter secrets are not searched by value: they would hide ordinary words."""

SHORTEST_NAMED = 4
"""Values under the name of a secret are hidden from this length on."""

LONG_NUMBER = 10**12
"""Integers from here on can be card numbers, which have 13 digits or more (ISO/IEC 7812)."""

CUT_MARGIN = 4096
"""Number of characters beyond a cut that are searched for secrets."""

LEVELS = 100
"""
Most lists and objects inside each other in a record (useful ones have fewer than twenty). Redaction itself would fail
from some 480 on.
"""

TOO_DEEP = "[more lists or objects inside each other]"
"""What stands in a record for those that are too deep."""

_PATH_STARTS = ("/", "~/", "./", "../")
_PATH_NAME = r"(?>\.?[A-Za-z]?[a-z]*[0-9]{0,5}(?:[._@-][a-z]*[0-9]{0,5})*(?=/|\Z)|[A-Z_]{1,31}(?=/|\Z))"
_PATH = re.compile(rf"(?:~|\.{{1,2}})?(?:/{_PATH_NAME})++")
"""A path of ordinary names: letters and digits do not alternate as they do in a key that begins with a slash."""
_ESCAPE = re.compile(r"%[0-9A-F]{2}")
_PLAIN = re.compile(
    r"[A-Za-z]{1,11}"  # "production"
    r"|(?:~|\.{1,2}|\$\w{1,32})?(?:/[\w .@~-]{0,31})+(?::(?:/[\w .@~-]{0,31})+)*"  # paths
    r"|[a-z]+://[A-Za-z0-9.-]+(?::[0-9]+)?(?:/[A-Za-z._~-]{0,20}|/v[0-9]{1,3})*"
)
"""Values that are not secrets unless their name says so: a word, paths, a URL."""


class Secret:
    """
    A value that must never be shown.

    :param value: the secret itself.
    :param origin: its source, in words for people ("environment variable X"); never the value.
    """

    __slots__ = ("_value", "origin")

    def __init__(self, value: str, origin: str = "") -> None:
        self._value, self.origin = value, origin

    def reveal(self) -> str:
        """:returns: the secret; call this only to send it."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(...)"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __reduce__(self) -> str:
        raise TypeError("a secret is never pickled or copied")


def may_be_secret(name: str, value: str) -> bool:
    """
    :param name: name of a configured variable.
    :returns: whether to keep its value out of records: its name says so, or it is more than a word, paths or a URL.
    """
    if names_path(value):
        return False
    return is_secret_name(name) or not (_PLAIN.fullmatch(value) or _are_paths(value))


def names_path(value: str) -> bool:
    """:returns: whether a value is the path of something that exists, or several of them: that is no secret."""
    paths = [path for path in value.split(":") if path]
    return bool(paths) and all(path.startswith(_PATH_STARTS) and _exists(path) for path in paths)


def looks_like_path(value: str) -> bool:
    """:returns: whether a value is a path with at least two names, by its looks or since it exists: no secret."""
    if len(value) > CUT_MARGIN or not (value.count("/") > 1 or value.startswith(("~/", "./"))):
        return False
    return _PATH.fullmatch(value) is not None or names_path(value)


def _are_paths(value: str) -> bool:
    """:returns: whether a value is a list of paths, each of which exists or looks plain: it may be out of date."""
    paths = [path for path in value.split(":") if path]
    return len(paths) > 1 and all(names_path(path) or (path[0] == "/" and _PLAIN.fullmatch(path)) for path in paths)


def _exists(path: str) -> bool:
    try:
        return os.path.lexists(os.path.expanduser(path))
    except ValueError:  # a NUL byte, or a character that no file name has
        return False


class Redactor:
    """
    Replaces secrets in text and in JSON values by a word that names what was there.

    :param secrets: the live secrets known from the start; :meth:`add` adds more.
    :param base: another redactor, whose secrets are replaced, too, and which learns those that are added here.
    """

    def __init__(self, secrets: Iterable[Secret] = (), base: Redactor | None = None) -> None:
        self._base = base
        self._forms: set[str] = set()
        self._exact: re.Pattern[str] | None = None
        for secret in secrets:
            self.add(secret)

    def add(self, secret: Secret) -> None:
        """Search for this secret, too, in all encodings."""
        if self._base is not None:
            self._base.add(secret)
        else:
            self.add_own(secret)

    def add_own(self, secret: Secret) -> None:
        """Search for this secret here, but not in the base: for one that ends with this redactor."""
        if len(secret.reveal()) >= SHORTEST_EXACT:
            self._forms |= _forms(secret.reveal())
            self._exact = re.compile(any_of(self._forms))

    def live(self, text: str) -> str:
        """:returns: the text with the live secrets replaced, without applying the rules."""
        if self._base is not None:
            text = self._base.live(text)
        return text if self._exact is None else self._exact.sub("[redacted]", text)

    def text(self, text: str) -> str:
        """:returns: the text with every secret replaced."""
        text = self.live(text)
        if not (found := find(text)):
            return text
        secrets = [each for each in found if each.name or not looks_like_path(text[each.start : each.end])]
        return _replaced(text, secrets) if secrets else text

    def value(self, value: Any, limit: int | None = None, levels: int = LEVELS) -> Any:
        """
        :param limit: maximum length in characters of a text; longer ones are cut, with a note at their end.
        :param levels: how many lists and objects may be inside each other; a note takes the place of further ones.
        :returns: a JSON value with every secret in its strings, keys and long numbers replaced.
        """
        if isinstance(value, str):
            return self.text(value) if limit is None or len(value) <= limit else self._cut(value, limit)
        if isinstance(value, dict):
            return self._members(value, limit, levels - 1) if levels else TOO_DEEP
        if isinstance(value, (list, tuple)):
            return self._items(value, limit, levels - 1) if levels else TOO_DEEP
        if isinstance(value, int) and value >= LONG_NUMBER:
            written = str(value)
            return value if (redacted := self.text(written)) == written else redacted
        return value

    def _members(self, members: dict[Any, Any], limit: int | None, levels: int) -> dict[str, Any]:
        clean: dict[str, Any] = {}
        for key, member in members.items():
            name = self.text(str(key))
            while name in clean:  # two keys were redacted to the same word
                name += "'"
            named = _is_named(is_secret_name, key, member)
            clean[name] = "[redacted]" if named else self.value(member, limit, levels)
        return clean

    def _items(self, items: Iterable[Any], limit: int | None, levels: int) -> list[Any]:
        clean: list[Any] = []
        before: Any = ""
        for item in items:
            named = _is_named(is_secret_option, before, item)  # ["--password", "..."]
            clean.append("[redacted]" if named else self.value(item, limit, levels))
            before = item
        return clean

    def _cut(self, text: str, limit: int) -> str:
        # The margin lets a secret that spans the cut be recognised. The text in the margin is never shown, even if
        # replacements made the text before it shorter: it may end in a part of a secret.
        searched = text[: limit + CUT_MARGIN]
        redacted = self.text(searched)
        end = limit if len(searched) == len(text) else min(limit, max(0, len(redacted) - CUT_MARGIN))
        return f"{redacted[:end]}[{len(text) - limit} more characters]"


def _is_named(says_so: Callable[[str], bool], name: object, value: object) -> bool:
    if not isinstance(value, str) or len(value) < SHORTEST_NAMED or not isinstance(name, str):
        return False
    return says_so(name) and not names_path(value)


def _replaced(text: str, found: Iterable[Found]) -> str:
    parts, shown = list[str](), 0
    for start, end, name in sorted(found):
        if end > shown:
            if start >= shown or not parts:
                parts += (text[shown:start], f"[redacted {name}]" if name else "[redacted]")
            shown = end  # overlapping ones are replaced as one
    return "".join((*parts, text[shown:]))


def _forms(value: str) -> set[str]:
    raw = value.encode("utf-8", "surrogatepass")
    forms = {value, quote(value, safe=""), quote(value), quote_plus(value)}
    forms |= {_ESCAPE.sub(lambda escape: escape.group().lower(), form) for form in forms}
    forms |= {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], value.replace("/", "\\/")}
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        forms |= {part for shift in range(3) if (part := _inside(encode, raw, shift))}
    forms |= {raw.hex(), raw.hex().upper()}
    forms |= {json.dumps(form, ensure_ascii=False)[1:-1] for form in forms}  # as encoded inside a JSON text
    return {form for form in forms if len(form) >= SHORTEST_EXACT}


def _inside(encode: Callable[[bytes], bytes], raw: bytes, shift: int) -> str:
    # Inside a longer text, base64 has three alignments, and the characters at both ends depend on neighbouring bytes:
    # keep only those that depend on the secret alone.
    encoded = encode(b"\0" * shift + raw).rstrip(b"=").decode()
    start = (shift * 8 + 5) // 6
    end = ((shift + len(raw)) * 8) // 6
    return encoded[start:end] if end - start >= SHORTEST_EXACT else ""
