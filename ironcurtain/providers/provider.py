"""
The description of a provider that each module of this package gives: host, key header, and formats.

To add a provider, add a module like :mod:`~ironcurtain.providers.anthropic`, and a line in
:mod:`~ironcurtain.providers.registry`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec

from ironcurtain.home.account_sections import AccountName
from ironcurtain.llm.model import TokenUsage

KEY_LIMIT: Final = 64
"""Maximum length in characters of relevant keys in a body; longer ones are ignored."""


class RequestRefusal(msgspec.Struct, frozen=True):
    """
    A request that is not forwarded.

    :ivar status: status of the response; 426 for an upgrade. Never 401, which makes clients ask for another key or
        retry for minutes.
    :ivar code: a stable code for programs.
    :ivar reason: for people: a sentence that says what was wrong, and what to do if possible.
    """

    status: int
    code: str
    reason: str


Check = Callable[[Any], str | None]
"""Takes the value of a key; returns the forbidden action that it would make the provider perform, or ``None``."""


class BodyRules(msgspec.Struct, frozen=True, eq=False):
    """
    :param checks: by folded key, at any depth.
    :param opaque: folded keys whose values never make the provider act: arguments, schemas, labels.
    :param fields: the known fields of the body itself; others are not sent. ``None``: the format is unknown, and all
        are sent.
    :param acting: what other fields would make the provider do, by folded key. A request with one is refused: sent
        without it, its answer would not be what the agent believes.
    """

    checks: Mapping[str, Check]
    opaque: frozenset[str]
    fields: frozenset[str] | None = None
    acting: Mapping[str, str] = msgspec.field(default_factory=dict)

    def check(self, key: str) -> Check | Literal[False] | None:
        """
        :returns: the check for the value of a key; ``None``: no check; ``False``: none for the value and everything in
            it.
        """
        folded = fold(key)
        return False if folded in self.opaque else self.checks.get(folded)


def fold(key: str) -> str:
    """:returns: the normalised spelling by which a key is looked up."""
    return key.casefold().replace("_", "") if len(key) <= KEY_LIMIT else ""


TokenCount = Annotated[int, msgspec.Meta(ge=0)]
"""A number of tokens in a response."""


class CountedTokens(NamedTuple):
    """
    The token counts in one response, or in one event of its stream.

    :param model: the model that answered, as the provider names it; empty if unknown.
    :param usage: all counts so far; ``None`` if there are none.
    :param complete: whether the counts cover the complete response.
    :param cut: whether the model stopped at the limit of output tokens.
    """

    model: str
    usage: TokenUsage | None
    complete: bool
    cut: bool = False


Count = Callable[[bytes | memoryview, TokenUsage], CountedTokens]
"""Reads the token counts from a JSON text; takes the counts so far."""


class ModelProvider(msgspec.Struct, frozen=True, eq=False):
    """
    The built-in facts about a provider, without any settings.

    :ivar name: name of its table in the settings.
    :ivar host: host of its API, in lower case. In ``{}`` are names of settings of its table, without which it cannot be
        used.
    :ivar endpoints: the endpoints that agents may request, as written in settings, with the same names.
    :ivar calls: the rules for bodies of requests to a model, by the ending of the path. A provider of the settings
        whose endpoints all end so uses the same formats.
    :ivar headers: the known headers, in lower case. Others are not sent, except those with a role of their own
        (:mod:`~ironcurtain.providers.headers`).
    :ivar key_header: the header with the key, in lower case.
    :ivar key_prefix: prefix of real keys, and thus of fake ones.
    :ivar key_variables: the default environment variables of the real key; the first that is set counts.
    :ivar models: prefixes of names of its models.
    :ivar other_credentials: other headers that select the account that pays.
    :ivar query: the parameters that its clients send, with their values; each may occur once. ``None``: all except
        those that look like a credential or another method.
    :ivar bodies: the rules for other bodies in JSON; ``None`` if the formats are unknown.
    :ivar error: returns the body of a refusal in the provider's error format, from the refusal and the text for people.
    :ivar count: reads the token counts from a JSON text of a response; takes the counts so far. For an unexpected text
        it may raise what msgspec raises.
    :ivar absent: requests of its agents that nothing needs, written like ``endpoints``; they get 404, which agents take
        better than 403.
    :ivar absent_elsewhere: the same at other hosts, where its token must not be sent: ``GET host/path``,
        with places as in ``host``.
    :ivar account_header: the header with the account's id, in lower case; empty: requests name none.
    :ivar family: name of the provider whose models it serves; empty: its own. One account of a family pays at a time.
    :ivar account: the login that pays for it; ``None``: a key.
    :ivar signed_tokens: whether its tokens are JSON Web Tokens, whose claims agents read.
    """

    name: str
    host: str
    endpoints: tuple[str, ...]
    calls: Mapping[str, BodyRules]
    headers: frozenset[str]
    key_header: str
    key_prefix: str
    key_variables: tuple[str, ...]
    models: re.Pattern[str]
    other_credentials: frozenset[str]
    query: Mapping[str, re.Pattern[str]] | None
    bodies: BodyRules | None
    error: Callable[[RequestRefusal, str], dict[str, Any]]
    count: Count
    absent: tuple[str, ...] = ()
    absent_elsewhere: tuple[str, ...] = ()
    account_header: str = ""
    family: str = ""
    account: AccountName | None = None
    signed_tokens: bool = False

    @property
    def settings(self) -> tuple[str, ...]:
        """Names of the settings that its host and endpoints contain."""
        texts = " ".join((self.host, *self.endpoints))
        return tuple(dict.fromkeys(re.findall(r"\{(\w+)\}", texts)))
