"""
Secrets that hide themselves, and the redactor that keeps them out of everything that is written.

Two nets, since each has holes: the exact values of live secrets, in the forms they take on the wire (plain, JSON, URL,
base64), and patterns for credentials that we never held, such as a key that an agent found in a file.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any
from urllib.parse import quote, quote_plus
from weakref import WeakSet

import msgspec

SHORTEST_EXACT = 8
"""Secrets shorter than this are not searched by value: they would blank out ordinary words (our choice)."""

LONG_NUMBER = 10**12
"""Integers from here on can be card numbers, which have 13 digits or more (ISO/IEC 7812)."""

REMEMBERED_LENGTH, REMEMBERED = 160, 1024
"""Texts up to this many characters are remembered once they were found to be without a secret, so many of them."""

CUT_MARGIN = 4096
"""Characters beyond a cut that are searched for secrets all the same."""

# What credentials look like, each with texts of which one must stand in it (in lower case), since looking for those is
# far faster. An agent chooses the text: a pattern gives up within a bounded number of characters, wherever it starts.
_PATTERNS: tuple[tuple[str, tuple[str, ...], re.Pattern[str]], ...] = tuple(
    (name, needles, re.compile(pattern, re.DOTALL))
    for name, needles, pattern in (
        (
            "private-key",
            ("private key-----",),
            r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)",
        ),
        ("api-key", ("sk-",), r"\bsk-(?:[A-Za-z]+[0-9]*-)*[A-Za-z0-9_-]{16,}"),
        ("github-token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"\bgh[pousr]_[A-Za-z0-9]{20,}"),
        ("github-token", ("github_pat_",), r"\bgithub_pat_[A-Za-z0-9_]{20,}"),
        ("gitlab-token", ("glpat-",), r"\bglpat-[A-Za-z0-9_-]{20,}"),
        ("slack-token", ("xox",), r"\bxox[abeprs]-[A-Za-z0-9-]{10,}"),
        ("aws-key-id", ("akia", "asia", "agpa", "aida", "aroa"), r"\bA(?:KIA|SIA|GPA|IDA|ROA)[A-Z0-9]{16}\b"),
        ("google-key", ("aiza",), r"\bAIza[A-Za-z0-9_-]{30,}"),
        ("google-token", ("ya29.",), r"\bya29\.[A-Za-z0-9_-]{20,}"),
        ("stripe-key", ("_live_", "_test_"), r"\b[srp]k_(?:live|test)_[A-Za-z0-9]{16,}"),
        ("npm-token", ("npm_",), r"\bnpm_[A-Za-z0-9]{30,}"),
        ("pypi-token", ("pypi-",), r"\bpypi-[A-Za-z0-9_-]{32,}"),
        ("huggingface-token", ("hf_",), r"\bhf_[A-Za-z0-9]{20,}"),
        ("json-web-token", ("eyj",), r"\beyJ[A-Za-z0-9_-]{8,1024}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
        ("authorization", ("bearer", "basic"), r"(?i:\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{12,}"),
        ("password-in-url", ("://",), r"(?<=://)[^\s/:@\"']{0,256}:[^\s/@\"']{1,256}(?=@)"),
        (
            "assigned-secret",
            ("secret", "token", "passw", "api_key", "apikey", "access_key", "accesskey", "private_key", "privatekey"),
            r"(?i:(?:SECRET|TOKEN|PASSWORD|PASSWD|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY)[A-Z0-9_]{0,64}"
            r"[\"']?\s{0,4}[=:]\s{0,4}[\"']?)(?P<assigned>[^\s\"',;&<>\[\]{}]{8,})",
        ),
    )
)
_NUMBERS = re.compile(
    r"(?<![\w.-])\d(?:[ -]?\d){12,18}(?![\w-]|\.\d)"  # a card's; digits beside letters are part of something else
    r"|(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])"  # a social security number
)
_WORDS = {needle for _, needles, _ in _PATTERNS for needle in needles} | {"passphrase", "api-key", "authorization"}
_NEEDLES = tuple(
    word for word in _WORDS | {"key", "pass"} if not any(stem in word for stem in ("key", "pass") if stem != word)
)
"""
If none of these stands in a text in lower case, none of the patterns fits it, nor is a key the name of a secret: all
their words, where those with a common part are represented by it.
"""

_DIGITS = re.compile(r"\d(?:(?:[ -]?\d){12}|\d\d-\d\d-\d{4})")
"""Faster than :data:`_NUMBERS`, and found wherever that is."""
_encoder = msgspec.json.Encoder()
_ESCAPE = re.compile(r"%[0-9A-F]{2}")
_SECRET_NAME = re.compile(
    r"(?i)(?:^|[_-])(?:secret|token|password|passwd|passphrase|api[_-]?key|authorization)(?:$|[_-])|apikey"
)


class Secret:
    """
    A value that must never be shown.

    :param value: the secret itself.
    :param origin: where it came from, in words for people ("environment variable X"); never the value.
    """

    __slots__ = ("_value", "origin")

    def __init__(self, value: str, origin: str = "") -> None:
        self._value, self.origin = value, origin

    def reveal(self) -> str:
        """:returns: the secret; call this only where it goes on the wire."""
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


class Redactor:
    """
    Replace secrets in text and in JSON values by a word that says what stood there.

    :param secrets: the live secrets known from the start; more are added with :meth:`add`.
    :param base: another one, whose secrets are replaced too, and which learns those that are added here.
    :ivar plain: short texts that were found to be without any secret, until there is a new one.
    """

    def __init__(self, secrets: Iterable[Secret] = (), base: Redactor | None = None) -> None:
        self._base = base
        self._based: WeakSet[Redactor] = WeakSet()
        if base is not None:
            base._based.add(self)
        self._forms: set[str] = set()
        self._exact: re.Pattern[str] | None = None
        self.plain: set[str] = set()
        for secret in secrets:
            self.add(secret)

    def add(self, secret: Secret) -> None:
        """Search for this secret too, in every form in which it could appear."""
        if self._base is not None:
            self._base.add(secret)
        else:
            self.add_own(secret)

    def add_own(self, secret: Secret) -> None:
        """Search for this secret here, and not in what this is based on: for one that ends together with this."""
        if len(secret.reveal()) < SHORTEST_EXACT:
            return
        self._forget()
        self._forms |= _forms(secret.reveal())
        longest_first = sorted(self._forms, key=len, reverse=True)
        self._exact = re.compile("|".join(map(re.escape, longest_first)))

    def _forget(self) -> None:
        self.plain.clear()
        for each in self._based:
            each._forget()

    def live(self, text: str) -> str:
        """:returns: the text with the live secrets replaced, and nothing that only resembles one."""
        if self._base is not None:
            text = self._base.live(text)
        return text if self._exact is None else self._exact.sub("[redacted]", text)

    def text(self, text: str) -> str:
        """:returns: the text with every secret replaced."""
        text = self.live(text)
        if len(text) < SHORTEST_EXACT:
            return text
        lower = text.lower()
        for name, needles, pattern in _PATTERNS:
            if any(needle in lower for needle in needles):
                text = pattern.sub(partial(_credential, name), text)
        return _NUMBERS.sub(_number, text) if _DIGITS.search(text) else text

    def is_plain(self, value: object) -> bool:
        """
        For words that come again and again, such as the names of tools and rules.

        :returns: whether a value is a short text without any secret; quick if it was asked before.
        """
        if type(value) is not str or len(value) > REMEMBERED_LENGTH:
            return False
        if value in self.plain:
            return True
        if self.text(value) != value:
            return False
        if len(self.plain) >= REMEMBERED:
            self.plain.clear()
        self.plain.add(value)
        return True

    def value(self, value: Any, limit: int | None = None) -> Any:
        """
        :param limit: most characters of one text in it; longer ones are cut, and say so at their end.
        :returns: a JSON value with every secret in its strings, keys and long numbers replaced.
        """
        return value if self._is_harmless(value, limit) else self._clean(value, limit)

    def _is_harmless(self, value: Any, limit: int | None) -> bool:
        # Most values hold nothing that even resembles a secret, and one look at their JSON tells: a live secret has its
        # JSON form among those searched, and no escape can stand inside what _NEEDLES and _DIGITS look for. _NUMBERS
        # would not do: it looks at what stands beside, and in JSON a line end is the letter n.
        try:
            text = _encoder.encode(value).decode()
        except (TypeError, ValueError, RecursionError, OverflowError):
            return False
        lower = text.lower()
        return (
            (limit is None or len(text) <= limit)
            and not any(map(lower.__contains__, _NEEDLES))
            and not self._finds(text)
            and not _DIGITS.search(text)
        )

    def _finds(self, text: str) -> bool:
        if self._exact is not None and self._exact.search(text):
            return True
        return self._base is not None and self._base._finds(text)

    def _clean(self, value: Any, limit: int | None) -> Any:
        if isinstance(value, str):
            return self.text(value) if limit is None or len(value) <= limit else self._cut(value, limit)
        if isinstance(value, dict):
            return self._members(value, limit)
        if isinstance(value, (list, tuple)):
            return [self._clean(member, limit) for member in value]
        if isinstance(value, int) and value >= LONG_NUMBER:
            written = str(value)
            return value if (redacted := self.text(written)) == written else redacted
        return value

    def _members(self, members: dict[Any, Any], limit: int | None) -> dict[str, Any]:
        clean: dict[str, Any] = {}
        for key, member in members.items():
            name = self.text(str(key))
            while name in clean:  # two keys were redacted to the same word
                name += "'"
            clean[name] = self._member(str(key), member, limit)
        return clean

    def _cut(self, text: str, limit: int) -> str:
        # The margin lets a secret that lies across the cut be recognised before it is cut in two. What then stands in
        # the margin is never shown, even where replacements made the text before it shorter: it may end in half of one.
        searched = text[: limit + CUT_MARGIN]
        redacted = self.text(searched)
        end = limit if len(searched) == len(text) else min(limit, max(0, len(redacted) - CUT_MARGIN))
        return f"{redacted[:end]}[{len(text) - limit} more characters]"

    def _member(self, key: str, member: Any, limit: int | None) -> Any:
        if isinstance(member, str) and len(member) >= SHORTEST_EXACT and _SECRET_NAME.search(key):
            return "[redacted]"
        return self._clean(member, limit)


def _forms(value: str) -> set[str]:
    raw = value.encode("utf-8", "surrogatepass")
    forms = {value, quote(value, safe=""), quote(value), quote_plus(value)}
    forms |= {_ESCAPE.sub(lambda escape: escape.group().lower(), form) for form in forms}
    forms |= {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], value.replace("/", "\\/")}
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        forms |= {part for shift in range(3) if (part := _inside(encode, raw, shift))}
    forms |= {raw.hex(), raw.hex().upper()}
    forms |= {json.dumps(form, ensure_ascii=False)[1:-1] for form in forms}  # as each stands inside a JSON text
    return {form for form in forms if len(form) >= SHORTEST_EXACT}


def _inside(encode: Callable[[bytes], bytes], raw: bytes, shift: int) -> str:
    # Where a secret stands inside a longer text, base64 has three alignments, and the characters at both ends mix with
    # its neighbours: keep only those that depend on the secret alone.
    encoded = encode(b"\0" * shift + raw).rstrip(b"=").decode()
    start = (shift * 8 + 5) // 6
    end = ((shift + len(raw)) * 8) // 6
    return encoded[start:end] if end - start >= SHORTEST_EXACT else ""


def _credential(name: str, match: re.Match[str]) -> str:
    if name == "assigned-secret":  # keep the name of what is assigned
        return f"{match.group()[: match.start('assigned') - match.start()]}[redacted]"
    return f"[redacted {name}]"


def _number(match: re.Match[str]) -> str:
    digits = re.sub(r"\D", "", match.group())
    if len(digits) == 9:
        return f"[redacted ssn {digits[-4:]}]"
    return f"[redacted card {digits[-4:]}]" if _luhn(digits) else match.group()


def _luhn(digits: str) -> bool:
    doubled = [int(d) * 2 if i % 2 else int(d) for i, d in enumerate(reversed(digits))]
    return sum(d - 9 if d > 9 else d for d in doubled) % 10 == 0
