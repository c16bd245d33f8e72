"""
Find credentials by their format, with the rules in ``data/secret-rules.toml``.

Each kind of credential has a fixed beginning. Wherever it occurs, the rule's expression is tried, and no expression
searches more than a bounded number of characters without a match. Since an agent chooses the text, the time must be
linear in its length.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

DATA = Path(__file__).parent / "data" / "secret-rules.toml"
"""The rules."""

BEFORE = r"(?:(?<![A-Za-z0-9])|(?<=\\[abfnrtv])|(?<=%[0-9A-Fa-f]{2}))"
"""What may precede a credential, unless its rule says otherwise: no letter or digit except of an escape."""

SHORT, REMEMBERED = 160, 1024
"""
Maximum length and number of texts whose results are cached: the names of tools, rules and members are repeated in every
record.
"""

_NUMBER = re.compile(
    r"\d(?=[ -]?\d[ -]?\d[ -]?\d)(?:"
    r"(?<![\w.-]\d)(?:[ -]?\d){12,18}(?![\w-]|\.\d)"  # a card number; digits beside letters belong to something else
    r"|(?<![\w-]\d)\d\d-\d{2}-\d{4}(?![\w-]))"  # a social security number
)


class Found(NamedTuple):
    """
    A credential in a text.

    :param start: its start, in characters.
    :param end: its end, exclusive.
    :param name: the rule's name; empty if the text itself names it.
    """

    start: int
    end: int
    name: str


class _Rule:
    """
    One kind of credential, from an entry of the file.

    :param starts: its possible beginnings.
    :param rest: the expression of the rest. Its groups, from the first to the last, are the secret; without groups, all
        of it.
    :param name: shown in place of the secret.
    :param before: the expression of what may precede it.
    """

    def __init__(
        self, starts: Sequence[str], rest: str, name: str = "", before: str = BEFORE, ignore_case: bool = False
    ) -> None:
        self.name, self.starts = name, [start.lower() for start in starts]
        flags = "(?asi)" if ignore_case else "(?as)"
        self._expression = f"{flags}{before}(?:{'|'.join(map(re.escape, starts))}){rest}"

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(self._expression)  # compiled lazily, since most rules are never tried

    def at(self, text: str, start: int) -> Found | None:
        """:returns: the credential that starts at a position of a text."""
        match = self._pattern.match(text, start)
        if match is None:
            return None
        groups = range(1, self._pattern.groups + 1)
        spans = [match.span(group) for group in groups if match.start(group) >= 0] or [match.span()]
        return Found(min(start for start, _ in spans), max(end for _, end in spans), self.name)


class Rules:
    """
    The rules of a file.

    :param document: the parsed file.
    """

    def __init__(self, document: dict[str, Any]) -> None:
        self.names = _Names(document)
        rules = [*self.names.rules(), *(_Rule(**entry) for entry in document["rules"])]
        self.starts = frozenset(start for rule in rules for start in rule.starts)
        """The beginnings of credentials, in lower case."""
        self._start = re.compile(any_of(self.starts))
        self._tried = _tried(rules)

    def find(self, text: str) -> list[Found]:
        """:returns: the credentials in a text, in no order; some may overlap."""
        lower = text.replace("\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}", "i").lower()  # as long as the text
        found, at = list[Found](), -1
        last: dict[_Rule, Found] = {}
        while (start := self._start.search(lower, at + 1)) is not None:
            at = start.start()
            for rule in self._tried[start.group()]:
                if rule in last and last[rule].start <= at < last[rule].end:
                    continue  # this position was found already
                if (one := rule.at(text, at)) is not None:
                    last[rule] = one
                    found.append(one)
        for number in _NUMBER.finditer(text):
            if (name := _number(number.group())) is not None:
                found.append(Found(*number.span(), name))
        return found


class _Names:
    """The names whose values are secret: the document's lists, as rules and as tests of a name."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._passwords, self._others = _spelled(document["passwords"]), _spelled(document["names"])
        self._short, self._document = document["short_names"], document
        ends = "|".join(document["harmless_ends"])
        self._harmless_end = rf"(?![_-]?(?:{ends})s?(?-i:(?![a-z])))"
        inside = "|".join((*self._passwords, *self._others))
        alone = "|".join((*self._short, *_spelled(document["member_names"])))
        self._member = re.compile(
            rf"(?ai)(?:(?<![a-z0-9])|(?-i:(?<=[a-z0-9])(?=[A-Z])))(?:{inside}|{alone})(?![a-z0-9]){self._harmless_end}"
        )
        self._option = re.compile(rf"(?ai)-[a-z0-9_-]{{0,64}}{self._option_end()}")

    def is_secret_name(self, name: str) -> bool:
        """Whether the value under a name in a JSON object is secret."""
        return self._member.search(name) is not None

    def is_secret_option(self, text: str) -> bool:
        """Whether a text is a command's option whose next argument is a secret."""
        return self._option.fullmatch(text) is not None

    def _option_end(self) -> str:
        ends = (*self._passwords, *self._others, *(f"-{name}" for name in self._short))
        return f"(?:{'|'.join(f'(?<={end})' for end in ends)})"

    def rules(self) -> Iterator[_Rule]:
        """The rules for values assigned to the names in a text."""
        harmless = "|".join(self._document["harmless_values"])
        none = rf"(?![\"'`\\]{{0,4}}(?:(?:{harmless})(?![a-z0-9_-])|(?-i:\$\{{?[A-Z_][A-Z0-9_]*\}}?)(?![^\s\"'`,;&)])))"
        # A word after a colon and before another word is prose. A quoted value ends with the quote; after an escaped
        # quote, with the next of either kind, since it is JSON inside JSON.
        value = (
            r"(?:\\{1,3}[\"']([^\"'\\\n]{6,}+)|\"((?:[^\"\\\n]|\\.){6,}+)|'((?:[^'\\\n]|\\.){6,}+)"
            r"|(?!(?<=[ \t])[a-z]{1,32}[.,!]?[ ]+[a-z])`?([^\s\"'`,;&<>\[\]{}]{6,}+))"
        )
        equals = r"(?:\\{0,3}[\"'`])?\]?[ \t]{0,8}(?:=>|:=|={1,3}|:|%3[da])[ \t]{0,8}"
        tail = rf"s?(?-i:(?![a-z])){self._harmless_end}[a-z0-9_-]{{0,64}}+{equals}{none}"
        yield _Rule(self._passwords, tail + value, before="", ignore_case=True)
        yield _Rule(
            self._others,
            rf"{tail}(?![\"'`\\]{{0,4}}[0-9.]{{1,15}}(?![^\s\"'`,;&)\]}}])){value}",
            before="",
            ignore_case=True,
        )
        yield _Rule(self._short, rf"(?![a-z0-9_-]){equals}{none}(?![/~.]){value}", ignore_case=True)
        words = "|".join(self._document["words_after_options"])
        given = r"(?:\"([^\"\n$][^\"\n]*+)\"|'([^'\n]++)'|([^\s\"'`$|&;<>-][^\s\"'`]*+))"
        rest = rf"[a-z0-9_-]{{0,64}}+{self._option_end()}(?:[ \t]{{1,4}}|=)(?!(?:{words})(?![a-z0-9_-])){given}"
        yield _Rule(["--"], rest, before=r"(?<![a-z0-9-])", ignore_case=True)


def any_of(words: Collection[str]) -> str:
    """
    :returns: the expression that matches any of some words, the longest if several match. It is a trie, since ``re``
        tries alternatives one after the other.
    """
    first, last = min(words), max(words)
    common = first[: next((at for at, pair in enumerate(zip(first, last, strict=False)) if len({*pair}) > 1), None)]
    branches: dict[str, set[str]] = {}
    for word in words:
        if rest := word[len(common) :]:
            branches.setdefault(rest[0], set()).add(rest)
    if not branches:
        return re.escape(common)
    return f"{re.escape(common)}(?:{'|'.join(map(any_of, branches.values()))}){'?' if common in words else ''}"


def _tried(rules: Iterable[_Rule]) -> dict[str, list[_Rule]]:
    """
    :returns: for each beginning the rules that are tried where it is the longest in a text: those with it or with a
        prefix of it.
    """
    rules_of: dict[str, list[_Rule]] = {}
    for rule in rules:
        for start in rule.starts:
            rules_of.setdefault(start, []).append(rule)
    return {
        start: list(dict.fromkeys(rule for end in range(len(start)) for rule in rules_of.get(start[: end + 1], ())))
        for start in rules_of
    }


def _spelled(names: Iterable[str]) -> list[str]:
    """:returns: each name with its underscores unchanged, as hyphens, and removed."""
    return list(dict.fromkeys(name.replace("_", joint) for name in names for joint in ("_", "-", "")))


def _number(written: str) -> str | None:
    """:returns: the kind of a number that is confidential; ``None`` for any other."""
    digits = re.sub(r"\D", "", written)
    if len(digits) == 9:
        return f"ssn {digits[-4:]}"
    return f"card {digits[-4:]}" if _luhn(digits) else None


def _luhn(digits: str) -> bool:
    doubled = [int(d) * 2 if i % 2 else int(d) for i, d in enumerate(reversed(digits))]
    return sum(d - 9 if d > 9 else d for d in doubled) % 10 == 0


@cache
def rules() -> Rules:
    """:returns: the built-in rules, read on first use."""
    return Rules(tomllib.loads(DATA.read_text()))


def find(text: str) -> Sequence[Found]:
    """:returns: the result of :meth:`Rules.find` with the built-in rules."""
    return _find(text) if len(text) <= SHORT else rules().find(text)


@lru_cache(REMEMBERED)
def _find(text: str) -> Sequence[Found]:
    return rules().find(text)


@lru_cache(REMEMBERED)
def is_secret_name(name: str) -> bool:
    """:returns: whether the value under a name in a JSON object is secret."""
    return rules().names.is_secret_name(name)


def is_secret_option(text: str) -> bool:
    """:returns: whether a text is a command's option whose next argument is a secret."""
    return rules().names.is_secret_option(text)
