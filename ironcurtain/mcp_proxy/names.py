"""The names of servers, and the names under which agents see their tools and prompts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container

from ironcurtain.policy import network

SEPARATOR = "__"

NAME_LIMIT = 46
"""
Maximum length in characters of a public name: model APIs allow 64, of which agents use 18 for their own prefix
(``mcp__ironcurtain__``).
"""

DIGEST_LENGTH = 8
"""Number of hexadecimal characters that distinguish shortened names: 32 bits, for a few thousand names."""

BACKEND_NAME_LIMIT = 32
"""Maximum length in characters of a backend's name."""

BACKEND_NAME = re.compile(rf"[a-zA-Z0-9](?:[a-zA-Z0-9-]|_(?=[a-zA-Z0-9-])){{0,{BACKEND_NAME_LIMIT - 1}}}\Z")
"""Names of backends: no two adjacent underscores and none at the end, so that the separator is unambiguous."""

_BETWEEN = re.compile(r"[^a-zA-Z0-9_-]+|__+")
_ALLOWED = re.compile(rf"[a-zA-Z0-9_-]{{1,{NAME_LIMIT}}}\Z")
_ODD = re.compile(r"[^a-zA-Z0-9_-]")
_LOOKS_SHORTENED = re.compile(rf"_[0-9a-f]{{{DIGEST_LENGTH}}}\Z")


def taken(name: str, names: Container[str]) -> str:
    """
    :param names: those of the other backends.
    :returns: why a backend cannot have a name; empty if it can.
    """
    if name == network.SERVER:
        return f"the name {name} is that of IronCurtain's own server, which judges connections: choose another one"
    return f"there is a server {name!r} already" if name in names else ""


def usable_name(name: str) -> str:
    """:returns: a backend's name that is like a name which a person wrote; the same if that can be one."""
    if BACKEND_NAME.match(name):
        return name
    return _BETWEEN.sub("-", name).strip("-_")[:BACKEND_NAME_LIMIT].rstrip("-_") or "server"


def public_name(backend: str, name: str) -> str:
    """
    :param backend: the backend's name.
    :param name: the backend's name of its tool or prompt.
    :returns: the public name. If the plain name is too long, ambiguous, or has characters that agents do not accept, it
        is cut and ends in a digest of both names.
    """
    plain = f"{backend}{SEPARATOR}{name}"
    if _ALLOWED.match(plain) and BACKEND_NAME.match(backend) and not _LOOKS_SHORTENED.search(plain):
        return plain
    digest = hashlib.sha256(f"{backend}\0{name}".encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_LENGTH]
    return f"{_ODD.sub('_', plain)[: NAME_LIMIT - DIGEST_LENGTH - 1]}_{digest}"
