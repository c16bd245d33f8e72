"""
Remove the real key from responses, in case a provider repeats it.

A key is overwritten with as many asterisks, so that announced lengths stay correct.
"""

from __future__ import annotations

import base64
import json
import re
from bisect import bisect_right
from operator import itemgetter
from typing import Final

from ironcurtain.secrets.redaction import SHORTEST_EXACT, Secret

_ESCAPE: Final = re.compile(rb"\\u00([2-7][0-9A-Fa-f])|%([2-7][0-9A-Fa-f])|\\(/)")
"""A printable ASCII character, possibly escaped as in JSON or a URL."""

_HALF_ESCAPE: Final = re.compile(rb"(?:\\(?:u(?:0(?:0[2-7]?)?)?)?|%[2-7]?)\Z")
_HALF_ESCAPE_BYTES: Final = b"\\%u0234567"
_LONGEST_HALF: Final = 5
_NO_ESCAPES: Final[list[tuple[int, int]]] = []


class _Forms:
    """
    :ivar all: the byte strings to search for.
    :ivar bytes: the bytes that occur in them.
    """

    __slots__ = ("_pattern", "all", "bytes")

    def __init__(self, forms: list[bytes]) -> None:
        self.all = tuple(forms)
        self.bytes = frozenset(b"".join(forms))
        self._pattern: re.Pattern[bytes] | None = None

    @property
    def pattern(self) -> re.Pattern[bytes]:
        """Matches any of the forms."""
        if self._pattern is None:  # rarely needed, and slow to compile
            self._pattern = re.compile(b"|".join(map(re.escape, self.all)))
        return self._pattern


class KeyForms:
    """
    The forms in which keys can occur in bytes: computed once, for many streams.

    :ivar literal: each key itself, in base64, in hexadecimal and in UTF-16.
    :ivar unescaped: the same without escapes, since a key can itself look escaped.
    """

    __slots__ = ("literal", "unescaped")

    def __init__(self, *secrets: Secret) -> None:
        # Of two forms that begin alike, the longer one is searched first.
        forms = sorted({form for secret in secrets for form in _forms(secret)}, key=len, reverse=True)
        self.literal = _Forms(forms)
        self.unescaped = _Forms([_unescaped(form)[0] for form in forms])


class Scrubber:
    """
    Scrubs one stream of bytes, in any slicing.

    The key is found unchanged, in base64 at any alignment, in hexadecimal of one case, in UTF-16, and with some
    characters escaped. Bytes are held back only while they can be the beginning of the key. Two parts with other bytes
    between them are not found, nor are other encodings. After :meth:`flush`, another stream may follow.
    """

    __slots__ = ("_forms", "_literal", "_unescaped")

    def __init__(self, forms: KeyForms) -> None:
        self._forms = forms
        self._unescaped = _Search(forms.unescaped, unescape=True)
        self._literal: _Search | None = None

    def feed(self, data: bytes, last: bool = False) -> bytes:
        """
        :param last: whether the stream ends with the data.
        :returns: the bytes that can be forwarded now.
        """
        out = self._unescaped.feed(data, last)
        if self._unescaped.found_escape:
            # Its end can be the beginning of an unescaped key: "%4" before a key that begins with "A".
            if self._literal is None:
                self._literal = _Search(self._forms.literal, unescape=False)
            out = self._literal.feed(out, last)
            if last:
                self._unescaped.found_escape = False
        return out

    def flush(self) -> bytes:
        """
        End the stream.

        :returns: the bytes that were held back.
        """
        return self.feed(b"", last=True)


class _Search:
    """
    Overwrites a key in one stream of bytes.

    :param unescape: whether to decode escapes before the search.
    :ivar found_escape: whether there was an escape so far.
    """

    __slots__ = ("_forms", "_held", "_unescape", "found_escape")

    def __init__(self, forms: _Forms, unescape: bool) -> None:
        self._forms, self._unescape = forms, unescape
        self._held = b""
        self.found_escape = False

    def feed(self, data: bytes, last: bool) -> bytes:
        """See :meth:`Scrubber.feed`."""
        if self._held:
            data = self._held + data
        text, escapes = data, _NO_ESCAPES
        if self._unescape:
            text, escapes = _unescaped(data if last else data[: _last_whole(data)])
        keep = len(text) if last else self._first_open(text, 0)
        found: list[tuple[int, int]] = []
        for form in self._forms.all:
            if form in text:
                found, keep = self._find(text, keep, last)
                break
        if escapes:
            self.found_escape = True
            found = [(_place(start, escapes), _place(stop, escapes)) for start, stop in found]
            keep = _place(keep, escapes)
        self._held = data[keep:]
        return _overwritten(data[:keep], found)

    def _find(self, text: bytes, keep: int, final: bool) -> tuple[list[tuple[int, int]], int]:
        pattern = self._forms.pattern
        found: list[tuple[int, int]] = []
        start = 0
        # The bytes from `keep` on can be the beginning of the key: decide when more bytes arrive.
        while (match := pattern.search(text, start)) is not None and match.start() < keep:
            found.append(match.span())
            start = match.end()
            if start > keep:
                keep = len(text) if final else self._first_open(text, start)
        return found, keep

    def _first_open(self, text: bytes, start: int) -> int:
        """
        :returns: where the first form that the end of the text cuts off begins; the text's length if there is none.
        """
        first = len(text)
        if not text or text[-1] not in self._forms.bytes:
            return first
        for form in self._forms.all:
            at = text.find(form[:1], max(start, len(text) - len(form) + 1), first)
            while at >= 0:
                if form.startswith(text[at:]):
                    first = at
                    break
                at = text.find(form[:1], at + 1, first)
        return first


def _overwritten(data: bytes, places: list[tuple[int, int]]) -> bytes:
    if not places:
        return data
    written = bytearray(data)
    for start, stop in places:
        written[start:stop] = b"*" * (stop - start)
    return bytes(written)


def _last_whole(data: bytes) -> int:
    """:returns: where an escape that the end of the data cuts off begins; the data's length if there is none."""
    if not data or data[-1] not in _HALF_ESCAPE_BYTES:
        return len(data)
    half = _HALF_ESCAPE.search(data, max(0, len(data) - _LONGEST_HALF))
    return half.start() if half else len(data)


def _unescaped(data: bytes) -> tuple[bytes, list[tuple[int, int]]]:
    """
    :returns: the data without escapes; and for each escape, the position where its character ends there, and the number
        of bytes removed so far.
    """
    if b"\\u00" not in data and b"%" not in data and b"\\/" not in data:
        return data, _NO_ESCAPES
    pieces: list[bytes] = []
    escapes: list[tuple[int, int]] = []
    done = gone = 0
    for escape in _ESCAPE.finditer(data):
        start, stop = escape.span()
        digits = escape[1] or escape[2]
        pieces += data[done:start], b"/" if digits is None else bytes((int(digits, 16),))
        gone += stop - start - 1
        escapes.append((stop - gone, gone))
        done = stop
    return b"".join((*pieces, data[done:])), escapes


def _place(at: int, escapes: list[tuple[int, int]]) -> int:
    """:returns: the position in the escaped text of a byte of the text without escapes."""
    before = bisect_right(escapes, at, key=itemgetter(0))
    return at + (escapes[before - 1][1] if before else 0)


def _forms(secret: Secret) -> list[bytes]:
    """:returns: the forms of the key in bytes, apart from escapes."""
    raw = secret.reveal().encode()
    forms = [raw] if _PLAIN.fullmatch(raw) else [raw, json.dumps(secret.reveal()).encode()[1:-1]]
    # In UTF-16 of either byte order, up to the zero byte at one of its ends
    forms += [raw.hex().encode(), raw.hex().upper().encode(), b"\0".join(raw[at : at + 1] for at in range(len(raw)))]
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + raw)
        # The characters at both ends also encode bits of neighbouring bytes, which are unknown.
        inside = encoded[(shift * 8 + 5) // 6 : (shift + len(raw)) * 8 // 6]
        if len(inside) >= SHORTEST_EXACT:
            forms.append(inside)
            if b"+" in inside or b"/" in inside:
                forms.append(inside.translate(_URL_SAFE))
    return forms


_PLAIN: Final = re.compile(rb"[A-Za-z0-9_.~-]*")
_URL_SAFE: Final = bytes.maketrans(b"+/", b"-_")
