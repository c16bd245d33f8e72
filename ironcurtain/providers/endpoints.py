"""
Which paths of a provider may be asked for.

Programs differ in what they take ``/v1/x/../messages``, ``/v1//messages``, ``/v1/messages;x=1`` or ``/v1%2fmessages``
to be. Such a path is refused, never mended; what remains has one meaning, and is passed on in one spelling.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote_to_bytes

from ironcurtain.errors import ProtocolViolation

PATTERN_LIMIT = 512
"""Most patterns with a ``*`` that stay compiled; configurations have a handful."""

_PLAIN = re.compile(r"(?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9._~!$&'()*+,=:@-]+)+/?")
"""Segments that are neither empty nor dots, of the characters of RFC 3986 section 3.3 but ``;``."""

_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_METHOD = re.compile(r"[A-Z]{1,16}")


class BadPath(ProtocolViolation):
    """A path that two programs could understand differently. Answer with 400."""

    def __init__(self, detail: str) -> None:
        super().__init__("http path", detail)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """
    One kind of request that is allowed.

    :ivar path: canonical. ``*`` stands for one or more characters of one segment, up to the next character of the
        pattern: ``/v1beta/models/*:countTokens`` takes no second colon.
    """

    method: str
    path: str

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    def matches(self, method: str, path: str) -> bool:
        """
        :param method: as it stands in the request; ``get`` is not ``GET``.
        :param path: canonical, without the query.
        """
        if method != self.method:
            return False
        return path == self.path if "*" not in self.path else _pattern(self.path).fullmatch(path) is not None


def canonical(path: str) -> str:
    """
    :param path: of a request, without the query.
    :returns: the one way to write it: nothing is percent-encoded.
    :raises BadPath: the path could be understood differently by another program.
    """
    if "%" in path:
        path = _decoded(path)
    if _PLAIN.fullmatch(path) is None:
        raise BadPath("it must begin with a slash and hold no empty or dot segments, semicolons or unusual characters")
    return path


def parse_endpoint(text: str) -> Endpoint:
    """
    :param text: as it stands in the settings: ``POST /v1/messages``.
    :raises BadPath: it is no method in capitals, a space and a canonical path.
    """
    method, _, path = text.partition(" ")
    if not _METHOD.fullmatch(method):
        raise BadPath(f"{text!r} does not begin with a method in capitals and one space")
    if "%" in path or "?" in path or "**" in path:
        raise BadPath(f"{text!r}: a path is written without %, without a query, and with * only alone")
    return Endpoint(method, canonical(path))


def find(endpoints: Iterable[Endpoint], method: str, path: str) -> Endpoint | None:
    """
    :param path: canonical, without the query.
    :returns: the first endpoint that allows the request.
    """
    for endpoint in endpoints:
        if endpoint.matches(method, path):
            return endpoint
    return None


def _decoded(path: str) -> str:
    if _ESCAPE.search(path):
        raise BadPath("a percent sign that begins no escape")
    if "%2f" in path.lower():
        raise BadPath("an encoded slash")
    # Whatever else must not stand in a path, an encoded percent sign or line end too, is seen when this is checked.
    return unquote_to_bytes(path).decode("latin-1")


@lru_cache(PATTERN_LIMIT)
def _pattern(path: str) -> re.Pattern[str]:
    first, *others = path.split("*")
    # Without the character that follows, no part of the pattern can match in two ways, so matching takes linear time.
    parts = (f"[^/{re.escape(other[:1])}]+{re.escape(other)}" for other in others)
    return re.compile(re.escape(first) + "".join(parts))
