"""What each header of an agent's request is to us."""

from __future__ import annotations

import re
from enum import Enum, auto
from functools import lru_cache
from typing import Final

from ironcurtain.providers.registry import KNOWN_PROVIDERS

ROLES_KEPT: Final = 512
"""Most header names whose role is remembered; a client uses about thirty."""


class HeaderRole(Enum):
    """What is done with a header."""

    KEEP = auto()
    """Passed on as it is."""
    DROP = auto()
    """Not passed on: it is between the agent and us, or made anew."""
    CREDENTIAL = auto()
    """It could carry a key, or choose whose account pays. Only the provider's own key header may be there."""
    OVERRIDE = auto()
    """It makes some servers take the request for another one."""
    HOST = auto()
    CONNECTION = auto()
    UPGRADE = auto()
    CONTENT_TYPE = auto()
    CONTENT_ENCODING = auto()


_NAMED: Final = {
    HeaderRole.HOST: ("host",),
    HeaderRole.CONNECTION: ("connection",),
    HeaderRole.UPGRADE: ("upgrade",),
    HeaderRole.CONTENT_TYPE: ("content-type",),
    HeaderRole.CONTENT_ENCODING: ("content-encoding",),
    HeaderRole.DROP: (
        # between two neighbours (RFC 9110 section 7.6.1)
        "http2-settings",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        # made anew
        "accept-encoding",
        "content-length",
        "expect",
        # half an answer can hold half a key, which nobody would recognise
        "if-range",
        "range",
        # about the agent's own network
        "alt-used",
        "cookie",
        "cookie2",
        "forwarded",
        "via",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-port",
        "x-forwarded-prefix",
        "x-forwarded-proto",
        "x-real-ip",
    ),
    HeaderRole.CREDENTIAL: tuple(name for known in KNOWN_PROVIDERS.values() for name in known.other_credentials),
    HeaderRole.OVERRIDE: (
        "x-http-method",
        "x-http-method-override",
        "x-method-override",
        "x-original-method",
        "x-original-uri",
        "x-original-url",
        "x-rewrite-url",
    ),
}
_BY_NAME: Final = {name: found for found, names in _NAMED.items() for name in names}
_CREDENTIAL: Final = re.compile(
    r"auth(?!or(?!i[sz]))|apikey|bearer|credential|passw|secret|signature|token(?!s)|^sig$"
    r"|(?<!idempotency)(?:^|[^a-z])key$"  # an idempotency-key is a random number
)
"""What stands in the name of a header, or of a query parameter, that carries a credential."""


@lru_cache(ROLES_KEPT)
def role(name: str) -> HeaderRole:
    """:param name: in lower case."""
    if (found := _BY_NAME.get(name)) is not None:
        return found
    return HeaderRole.CREDENTIAL if names_credential(name) else HeaderRole.KEEP


def names_credential(name: str) -> bool:
    """
    :param name: of a header or of a query parameter, in lower case.
    :returns: whether the name says that the value is a key, a token or a password.
    """
    return _CREDENTIAL.search(name) is not None
