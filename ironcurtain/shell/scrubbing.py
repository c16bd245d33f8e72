"""
Keep secrets out of what a model is told: live ones, those of the environment, and what looks like one. What was taken
for one in one place is one wherever it stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ironcurtain.secrets.redaction import (
    SHORTEST_EXACT,
    Redactor,
    Secret,
    looks_like_path,
    may_be_secret,
    names_path,
)
from ironcurtain.secrets.rules import find, is_secret_name

_SECRET_VARIABLE = re.compile(
    r"(?i).*(?:(?:^|_)(?:(?:API)?KEYS?|PATS?)|SECRETS?|TOKENS?|PASSWORDS?|PASSWD|CREDENTIALS?)"
)

_VALUE = (
    r"(?:\"(?P<double>(?:[^\"\\\n]|\\.){4,4096})\"|'(?P<single>[^'\n]{4,4096})'|(?P<bare>[^\s\"'`;&|<>()$]{4,4096}))"
)
_ASSIGNED = re.compile(rf"(?<![\w$-])(?P<name>[A-Za-z_]\w{{0,99}})={_VALUE}", re.ASCII)
_SET = re.compile(
    r"(?<![\w-])set(?:env)?[ \t]{1,8}(?:-{1,2}\w{1,16}[ \t]{1,8}){0,6}"
    rf"(?P<name>[A-Za-z_]\w{{0,99}})[ \t]{{1,8}}{_VALUE}",
    re.ASCII,
)
_HEX = re.compile(r"(?<![\w:/@.-])(?P<bare>[0-9a-fA-F]{64})(?![\w/-]|\.\w| [ *]\S)", re.ASCII)
"""32 bytes that nothing says to be a digest: no ``sha256:`` before them, no file behind them, and not in a path."""

LEARNED = 200
"""Most values that are remembered."""

LONGEST = 4096
"""Most characters of one."""


_DIRECTORIES = ("PWD", "OLDPWD")
"""Shells keep directories in them, of which the second may have been removed."""


def is_secret_variable(name: str) -> bool:
    """:returns: whether a variable's name says that its value is secret."""
    if name in _DIRECTORIES:
        return False
    return _SECRET_VARIABLE.fullmatch(name) is not None or is_secret_name(name)


def secrets_of(environ: Mapping[str, str]) -> list[Secret]:
    """:returns: the values of secret variables."""
    return [
        Secret(value, f"environment variable {name}")
        for name, value in environ.items()
        if len(value) >= SHORTEST_EXACT and is_secret_variable(name) and not names_path(value)
    ]


def environment(environ: Mapping[str, str | None], include: Iterable[str]) -> dict[str, str]:
    """
    :param environ: ``None`` is the value of a variable that is not set.
    :param include: names of variables.
    :returns: those that are set, without those whose names say that they are secret, unless they are paths.
    """
    found = ((name, environ.get(name)) for name in include)
    return {
        name: value
        for name, value in found
        if value is not None and (not is_secret_variable(name) or names_path(value))
    }


class Scrubber:
    """
    Replaces secrets in text that leaves the machine. Give it whole texts without escape sequences: half a secret, or
    one with a sequence inside, is not found.

    :param redactor: knows the live secrets.
    :param environ: of the shell; the values of its secret variables are replaced wherever they stand.
    :param patterns: regular expressions, whose matches are replaced.
    """

    def __init__(self, redactor: Redactor, environ: Mapping[str, str], patterns: Iterable[str] = ()) -> None:
        self._redactor = Redactor(base=redactor)
        self._learned = set[str]()
        self._patterns = [re.compile(pattern) for pattern in patterns]
        self.learn(environ)

    def learn(self, environ: Mapping[str, str]) -> None:
        """:param environ: variables of the shell that were set since."""
        for secret in secrets_of(environ):
            self._redactor.add_own(secret)

    def text(self, text: str) -> str:
        """:returns: the text without secrets."""
        for each in find(text):
            self._remember(text[each.start : each.end], each.name)
        for match in _HEX.finditer(text):
            self._remember(match["bare"])
        text = self._redactor.text(text)
        for pattern in (_ASSIGNED, _SET):
            text = pattern.sub(self._without_value, text)
        for pattern in self._patterns:
            text = pattern.sub("[redacted]", text)
        return text

    def _without_value(self, assigned: re.Match[str]) -> str:
        """:returns: an assignment; to the variable of a secret, without its value."""
        kind = next(kind for kind in ("double", "single", "bare") if assigned[kind] is not None)
        value, start = assigned[kind], assigned.start()
        if not is_secret_variable(assigned["name"]) or looks_like_path(value) or value.startswith("[redacted"):
            return assigned[0]
        self._remember(value)
        return f"{assigned[0][: assigned.start(kind) - start]}[redacted]{assigned[0][assigned.end(kind) - start :]}"

    def _remember(self, value: str, kind: str = "") -> None:
        """
        From now on a value is replaced wherever it stands, but for ordinary words and paths. Not in the audit log:
        what a program prints must not hide anything there.
        """
        if not SHORTEST_EXACT <= len(value) <= LONGEST or value in self._learned or len(self._learned) >= LEARNED:
            return
        if not kind.startswith(("card", "ssn")) and may_be_secret("", value) and not looks_like_path(value):
            self._learned.add(value)
            self._redactor.add_own(Secret(value, "text of the shell"))
