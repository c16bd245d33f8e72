"""
The paths of a provider that may be requested.

Programs interpret ``/v1/x/../messages``, ``/v1//messages``, ``/v1/messages;x=1`` and ``/v1%2fmessages`` differently.
Such a path is refused, never corrected. Any other path has one meaning, and is forwarded in one spelling.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import unquote_to_bytes

import msgspec

from ironcurtain.errors import ProtocolViolation

PATTERN_LIMIT = 512
"""Maximum number of compiled patterns with a ``*``; configurations have a handful."""

_PLAIN = re.compile(r"(?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9._~!$&'()*+,=:@-]+)+/?")
"""Path segments: neither empty nor dots, of the characters of RFC 3986 section 3.3 except ``;``."""

_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_METHOD = re.compile(r"[A-Z]{1,16}")


class BadPath(ProtocolViolation):
    """A path that two programs can interpret differently. Answer with 400."""

    def __init__(self, detail: str) -> None:
        super().__init__("http path", detail)


class Endpoint(msgspec.Struct, frozen=True):
    """
    One kind of allowed request.

    :ivar path: canonical. ``*`` stands for one or more characters of one segment, up to the next character of the
        pattern: ``/v1beta/models/*:countTokens`` allows no second colon.
    """

    method: str
    path: str

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    def matches(self, method: str, path: str) -> bool:
        """
        :param method: as in the request; ``get`` is not ``GET``.
        :param path: canonical, without the query.
        """
        if method != self.method:
            return False
        return path == self.path if "*" not in self.path else _pattern(self.path).fullmatch(path) is not None


def canonical(path: str) -> str:
    """
    :param path: path of a request, without the query.
    :returns: its canonical spelling, without percent-encoding.
    :raises BadPath: another program could interpret the path differently.
    """
    if "%" in path:
        path = _decoded(path)
    if _PLAIN.fullmatch(path) is None:
        raise BadPath(
            "it must begin with a slash and contain no empty or dot segments, semicolons or unusual characters"
        )
    return path


def parse_endpoint(text: str) -> Endpoint:
    """
    :param text: as written in the settings: ``POST /v1/messages``.
    :raises BadPath: it is not a method in capitals, a space and a canonical path.
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
        raise BadPath("a percent sign that does not begin an escape")
    if "%2f" in path.lower():
        raise BadPath("an encoded slash")
    # The check of the result refuses all other characters that are forbidden in a path, such as an encoded percent sign
    # or line end.
    return unquote_to_bytes(path).decode("latin-1")


@lru_cache(PATTERN_LIMIT)
def _pattern(path: str) -> re.Pattern[str]:
    first, *others = path.split("*")
    # Because of the character that follows, each part of the pattern matches in one way only, so matching takes linear
    # time.
    parts = (f"[^/{re.escape(other[:1])}]+{re.escape(other)}" for other in others)
    return re.compile(re.escape(first) + "".join(parts))
