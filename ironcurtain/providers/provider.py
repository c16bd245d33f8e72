"""
What the modules of this package say of a provider each: where it is, how its key is carried, and the shapes it uses.

Another provider is a module like :mod:`~ironcurtain.providers.anthropic`, and a line in
:mod:`~ironcurtain.providers.registry`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec

from ironcurtain.llm.model import TokenUsage

KEY_LIMIT: Final = 64
"""Keys of a body's objects with more characters are none that matter here."""


@dataclass(frozen=True, slots=True)
class RequestRefusal:
    """
    A request that is not passed on.

    :ivar status: of the answer; 426 for an upgrade. It is never 401, which makes clients ask for another key, or try
        again for minutes.
    :ivar code: a stable word for programs.
    :ivar reason: for people; one sentence that says what was wrong, and what to do where something can be done.
    """

    status: int
    code: str
    reason: str


Check = Callable[[Any], str | None]
"""Takes the value of a key; gives what the provider would do that it must not do, or nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class BodyRules:
    """
    :param checks: by folded key, wherever it stands.
    :param opaque: folded keys below which the provider acts on nothing: arguments, schemas, labels.
    """

    checks: Mapping[str, Check]
    opaque: frozenset[str]

    def check(self, key: str) -> Check | Literal[False] | None:
        """:returns: what the value of a key has to pass; ``None``: nothing; ``False``: neither has what is in it."""
        folded = fold(key)
        return False if folded in self.opaque else self.checks.get(folded)


def fold(key: str) -> str:
    """:returns: the one spelling under which a key is looked up."""
    return key.casefold().replace("_", "") if len(key) <= KEY_LIMIT else ""


TokenCount = Annotated[int, msgspec.Meta(ge=0)]
"""A number of tokens in an answer."""


class CountedTokens(NamedTuple):
    """
    What one answer, or one event of its stream, says of tokens.

    :param model: that answered, as the provider names it; empty if it does not say.
    :param usage: all that was counted so far; ``None`` if it counts nothing.
    :param complete: whether these are the counts of the whole answer.
    """

    model: str
    usage: TokenUsage | None
    complete: bool


Count = Callable[[bytes | memoryview, TokenUsage], CountedTokens]
"""Reads the tokens out of one JSON text; gets what was counted before."""


@dataclass(frozen=True, slots=True, eq=False)
class ModelProvider:
    """
    One provider as it is known without any settings.

    :ivar name: of its table in the settings.
    :ivar host: of its API, in lower case.
    :ivar endpoints: that agents may ask for, as in the settings.
    :ivar calls: how the paths of requests to a model end. Their bodies are inspected, and a provider of the settings
        whose endpoints all end so uses these shapes.
    :ivar key_header: the header with the key, in lower case.
    :ivar key_prefix: what real keys, and so fake ones, begin with.
    :ivar key_variable: the environment variable in which the real key is looked for.
    :ivar models: how names of its models begin.
    :ivar other_credentials: headers besides the key's by which it chooses whose account pays.
    :ivar query: the parameters that its clients send, with their values; each may stand once. ``None``: all but those
        that look like a credential or another method.
    :ivar bodies: what a request's body must not ask for; ``None`` if its shape is not known.
    :ivar error: the body of a refusal in the shape of its own errors, from the refusal and the words for people.
    :ivar count: reads the tokens out of one JSON text of an answer; gets what was counted before. It may raise what
        msgspec raises for a text that is not as expected.
    """

    name: str
    host: str
    endpoints: tuple[str, ...]
    calls: tuple[str, ...]
    key_header: str
    key_prefix: str
    key_variable: str
    models: re.Pattern[str]
    other_credentials: frozenset[str]
    query: Mapping[str, re.Pattern[str]] | None
    bodies: BodyRules | None
    error: Callable[[RequestRefusal, str], dict[str, Any]]
    count: Count
