"""
Find letters that look like others, so that ``~/.b\\u0430shrc`` is not taken for ``~/.bashrc``.

Letters of another alphabet count in a word with Latin ones; and in a word of several letters that all look alike, if
the text has Latin letters, and none of that alphabet that would give it away. Words in other languages are left alone.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

_WORD = re.compile(r"\w+")

_ALPHABETS = ("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU")
"""Alphabets with letters that look like Latin ones (Unicode Technical Standard 39, "Confusable Detection")."""

_UNITS = frozenset("\u03bc\u03a9")
"""Greek letters that stand in units, such as kiloohm and microsecond."""

_ALIKE = {
    "CYRILLIC": "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u04bb\u0501\u051b\u051d\u0475\u04cf\u0410"
    "\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u0406\u0408\u0405\u051a\u051c\u0474\u04c0",
    "GREEK": "\u03b1\u03b9\u03ba\u03bd\u03bf\u03c1\u03c5\u03c7\u03b3"
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7",
    "ARMENIAN": "\u0585\u057d\u0578\u0581\u0570\u0566\u0563\u0584\u054d\u0555\u053c",
}
"""Letters that look like Latin ones; all of the other alphabets do."""

_LATIN = frozenset("\u0131\u0237\u0251\u0261\u0269\u026a\u0274\u028f\u1d04\u1d0f\u1d1c\u1d20\u1d21\u1d22\ua731")
"""Latin letters that look like others."""

_SIGNS = frozenset("\u2024\u2044\u2215\u2236\u2571\u29f8\ua4f8\ufe52\uff0e\uff0f\uff5e\u2f02\u3033")
"""Signs that look like a dot, a slash, a colon or a tilde, as paths have them."""


def lookalikes(text: str) -> frozenset[int]:
    """:returns: the positions in a text of characters that look like others."""
    if text.isascii():
        return frozenset()
    latin = any(c.isascii() and c.isalpha() for c in text)
    plain = {alphabet for c in text if not c.isascii() for alphabet in _alphabets(c) if not _is_alike(c, alphabet)}
    found = {n for n, c in enumerate(text) if c in _SIGNS and _beside_ascii(text, n)}
    for word in _WORD.finditer(text):
        found.update(_in_word(word[0], word.start(), latin, plain))
    return frozenset(found)


def _in_word(word: str, start: int, latin: bool, plain: set[str]) -> Iterator[int]:
    """:param plain: alphabets of which the text has other letters than look-alikes."""
    if word.isascii():
        return
    mixed = any(c.isascii() and c.isalpha() for c in word)
    alphabets = [alphabet for c in word for alphabet in _alphabets(c)]
    posing = not mixed and latin and len(alphabets) > 1 and plain.isdisjoint(alphabets)
    for number, c in enumerate(word, start):
        if c in _LATIN or _is_styled(c) or ((mixed or posing) and any(_alphabets(c)) and c not in _UNITS):
            yield number


def _beside_ascii(text: str, number: int) -> bool:
    near = text[max(number - 1, 0) : number] + text[number + 1 : number + 2]
    return any(c.isascii() and c.isprintable() and c != " " for c in near)


@lru_cache(4096)
def _alphabets(character: str) -> tuple[str, ...]:
    name = unicodedata.name(character, "") if character.isalpha() else ""
    return tuple(alphabet for alphabet in _ALPHABETS if name.startswith(f"{alphabet} "))


def _is_alike(character: str, alphabet: str) -> bool:
    return character in _ALIKE.get(alphabet, character)


@lru_cache(4096)
def _is_styled(character: str) -> bool:
    """:returns: whether it is a Latin letter or digit in another style, as mathematics has them."""
    return not character.isascii() and unicodedata.name(character, "").startswith("MATHEMATICAL ")
