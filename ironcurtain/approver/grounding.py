"""
Check, without a model, whether a user's words name everything that a call uses.

A value counts as named only as a whole word, in a form that leaves no doubt: a path from the root or from ``~``, an
address with everything but its scheme, a repository with its owner. Text that the user cites, rejects, or does not
plainly ask for does not count.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise

import msgspec

from ironcurtain.approver.requests import NEGATION, SENTENCE_END, requests_in
from ironcurtain.policy.paths import Root
from ironcurtain.policy.roles import PATH_ROLES
from ironcurtain.policy.targets import is_certain_remote, web_origin
from ironcurtain.policy.verdict import Resource
from ironcurtain.text.display import has_hidden_text

VALUE_LIMIT = 200
"""Maximum length of a value in characters. A longer one is for a person."""

QUOTE_LIMIT = 2000
"""Maximum length of a quote in characters: a paragraph."""

_WORD = r"\w/~@%+=#\\*{$-"
"""What continues a name, besides the signs of a sentence in it (a set of a regular expression)."""

_QUOTED = re.compile(r'"([^"\n]*)"|“([^”\n]*)”|«([^»\n]*)»|`([^`\n]*)`')
_CITED = re.compile(r"(?ms)^[ \t]*```.*?(?:^[ \t]*```|\Z)|^[ \t]*>[^\n]*$")
"""Blocks between fences, and lines that begin with ``>``."""


class KnownDirectories(msgspec.Struct, frozen=True):
    """
    Real paths in a session.

    :param home: the user's home directory.
    :param workspace: the workspace, in which no path needs to be named.
    """

    home: str
    workspace: str


def quote_problem(
    quote: str, words: Sequence[str], resources: Sequence[Resource], known: KnownDirectories, others: Sequence[str] = ()
) -> str:
    """
    :param quote: what the model quotes.
    :param words: the user's own words, one text for each message or line, oldest first.
    :param resources: what the call uses.
    :param others: what the user sent besides, such as pasted text: it can reject, and asks for nothing.
    :returns: why the quote does not ask for the call; empty if it may.
    """
    if not quote.strip() or len(quote) > QUOTE_LIMIT or has_hidden_text(quote):
        return "the quote is empty, too long, or has hidden characters"
    found = [(text, text.rindex(quote)) for text in words if quote in text]
    if not found:
        return "the quote is not in the user's words"
    text, at = found[-1]
    first, last = _sentences(text, at, at + len(quote))
    if NEGATION.search(text[first:last]) or any(_rejects(each, resources, known) for each in (*words, *others)):
        return "a sentence of the user may say the opposite"
    if any(_mentions(each, resources, known) for each in words):
        return "the user names it without plainly asking for it, too"
    return unnamed(resources, requests_in(own_words(text)[first:last]), known)


def unnamed(resources: Sequence[Resource], text: str, known: KnownDirectories) -> str:
    """:returns: which of the resources the text does not name; empty if it names all."""
    for resource in resources:
        if resource.written or has_hidden_text(resource.value) or not 0 < len(resource.value) <= VALUE_LIMIT:
            return f"{resource.role} is reached by a link, has hidden characters, or is too long"
    needed = _needed(resources, known)
    if all(resource.role == "branch-name" for resource in needed):
        return "the call uses nothing that the user could have named"
    missing = sorted({each.role for each in needed if not _is_named(each, resources, text, known)})
    return f"the user does not name its {', '.join(missing)}" if missing else ""


def own_words(text: str) -> str:
    """
    :returns: the text, in which spaces stand for what the user cites: quotations of several words, blocks and lines of
        others. Its length is the same.
    """

    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", match[0])

    def quotation(match: re.Match[str]) -> str:
        inside = next(part for part in match.groups() if part is not None)
        return f" {inside} " if inside and not re.search(r"\s", inside) else blank(match)

    return _QUOTED.sub(quotation, _CITED.sub(blank, text))


def _needed(resources: Sequence[Resource], known: KnownDirectories) -> list[Resource]:
    workspace = Root(known.workspace)
    return [each for each in resources if each.role not in PATH_ROLES or not workspace.holds(each.value)]


def _rejects(text: str, resources: Sequence[Resource], known: KnownDirectories) -> bool:
    """Whether a sentence with a negation names one of the resources."""
    bounds = [0, *(match.end() for match in SENTENCE_END.finditer(text)), len(text)]
    sentences = (text[start:end] for start, end in pairwise(bounds))
    needed = _needed(resources, known)
    return any(
        NEGATION.search(sentence) and any(_is_named(each, resources, sentence, known) for each in needed)
        for sentence in sentences
    )


def _mentions(text: str, resources: Sequence[Resource], known: KnownDirectories) -> bool:
    """Whether a text names one of the resources otherwise than by a request for it."""
    own = own_words(text)
    rest = "".join(" " if asked != " " else letter for letter, asked in zip(own, requests_in(own), strict=True))
    return any(_is_named(each, resources, rest, known) for each in _needed(resources, known))


def _sentences(text: str, start: int, end: int) -> tuple[int, int]:
    """:returns: where the sentences that a part of the text touches begin and end."""
    ends = [match.end() for match in SENTENCE_END.finditer(text)]
    return max((at for at in ends if at <= start), default=0), min((at for at in ends if at >= end), default=len(text))


def _is_named(resource: Resource, resources: Sequence[Resource], text: str, known: KnownDirectories) -> bool:
    role, value = resource.role, resource.value
    if role in PATH_ROLES:
        return any(_has(text, re.escape(form) + "/?") for form in _path_forms(value, known.home))
    match role:
        case "fetch-url":
            return _has_address(text, value)
        case "git-remote-url":
            return _has_remote(text, value)
        case "github-owner":
            repositories = [each.value for each in resources if each.role == "github-repo"]
            return bool(repositories) and all(_has_repository(text, value, name) for name in repositories)
        case "github-repo":
            owners = [each.value for each in resources if each.role == "github-owner"]
            return bool(owners) and all(_has_repository(text, owner, value) for owner in owners)
        case "proxy-domain":
            return "." in value and _has(text, f"(?ai:{re.escape(value)})")
        case "email-address":
            return "@" in value and _has(text, f"(?ai:{re.escape(value)})")
        case "branch-name" | "share-permission":
            return _has(text, re.escape(value))
        case _:
            return False


def _path_forms(value: str, home: str) -> list[str]:
    inside = value.startswith(f"{home.rstrip('/')}/")
    return [value, f"~{value[len(home.rstrip('/')) :]}"] if inside else [value]


def _has_address(text: str, value: str) -> bool:
    if web_origin(value) is None:
        return False
    scheme, _, rest = value.partition("://")
    authority, path = re.fullmatch(r"([^/?#]*)(.*)", rest, re.DOTALL).groups()  # type: ignore[union-attr]
    if "@" in authority:
        return False
    end = "/?" if path in ("", "/") else re.escape(path)
    return _has(text, f"(?:(?ai:{re.escape(scheme)})://)?(?ai:{re.escape(authority)}){end}")


def _has_repository(text: str, owner: str, name: str) -> bool:
    return _has(text, rf"(?:(?:https://)?github\.com/)?{re.escape(owner)}/{re.escape(name)}(?:\.git)?")


def _has_remote(text: str, value: str) -> bool:
    if not is_certain_remote(value):
        return False
    short = value.removesuffix(".git")
    scheme = "(?:https://)?" if short.startswith("https://") else ""
    return _has(text, rf"{scheme}{re.escape(short.removeprefix('https://'))}(?:\.git)?")


def _has(text: str, pattern: str) -> bool:
    """Whether a pattern is in the text as a whole word: no letter, sign of a path or accent continues it."""
    for match in re.finditer(rf"(?<![.:&?{_WORD}])(?:{pattern})(?![.:&?]*[{_WORD}])", text):
        following = text[match.end() : match.end() + 1]
        if not following or not unicodedata.category(following).startswith("M"):
            return True
    return False
