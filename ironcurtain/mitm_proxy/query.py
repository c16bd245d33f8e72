"""
Which query parameters a request may have.

Google's APIs take keys there, other methods, and filters that leave the token counts out of an answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote_plus

from ironcurtain.mitm_proxy.headers import names_credential
from ironcurtain.mitm_proxy.refusals import Dialect

_QUERIES: Final[Mapping[Dialect, Mapping[str, re.Pattern[str]]]] = {
    "anthropic": {"beta": re.compile("true|false")},
    "openai": {"api-version": re.compile(r"[0-9A-Za-z-]{1,32}")},
    "google": {"alt": re.compile("sse|json")},
}
"""Those that clients send, with their values; each may stand once."""

_METHOD_NAME: Final = re.compile(r"[^a-z]*(?:x-)?(?:http)?[^a-z]*method(?:[^a-z]*override)?")
"""Names of query parameters that some servers take the method from."""


def unwanted(query: str, dialect: Dialect) -> str | None:
    """
    :param query: as it was sent, without the question mark.
    :returns: the name of a parameter that is not allowed, or ``None``.
    """
    if not query:
        return None
    known = _QUERIES.get(dialect)
    seen: set[str] = set()
    for parameter in query.split("&"):
        name, _, value = parameter.partition("=")
        if known is None:
            allowed = _is_harmless(parameter)
        else:
            allowed = name in known and name not in seen and known[name].fullmatch(value) is not None
            seen.add(name)
        if not allowed:
            return name
    return None


def _is_harmless(parameter: str) -> bool:
    names = (part.partition("=")[0].casefold() for part in re.split("[&;]", unquote_plus(parameter)))
    return not any(names_credential(name) or _METHOD_NAME.fullmatch(name) for name in names)
