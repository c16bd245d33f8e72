"""Keep secrets out of what a model is told: live ones, those of the environment, and what looks like one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ironcurtain.secrets.redaction import SHORTEST_EXACT, Redactor, Secret, names_path
from ironcurtain.secrets.rules import is_secret_name

_SECRET_VARIABLE = re.compile(r"(?i).*(?:(?:^|_)(?:API)?KEYS?|SECRETS?|TOKENS?|PASSWORDS?|PASSWD|CREDENTIALS?)")


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
        self._patterns = [re.compile(pattern) for pattern in patterns]
        self.learn(environ)

    def learn(self, environ: Mapping[str, str]) -> None:
        """:param environ: variables of the shell that were set since."""
        for secret in secrets_of(environ):
            self._redactor.add_own(secret)

    def text(self, text: str) -> str:
        """:returns: the text without secrets."""
        text = self._redactor.text(text)
        for pattern in self._patterns:
            text = pattern.sub("[redacted]", text)
        return text
