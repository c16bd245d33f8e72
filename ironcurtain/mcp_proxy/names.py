"""
The public names of tools and prompts: ``backend__tool``.

A name depends on nothing but the backend's name and the tool's own, so that it is the same in every session. Names are
matched exactly: another case, a space at the end or ``..`` make another name, and so an unknown one.
"""

from __future__ import annotations

import hashlib
import re

SEPARATOR = "__"

NAME_LIMIT = 46
"""
Most characters of a public name: model APIs allow 64, of which agents take 18 for their own prefix
(``mcp__ironcurtain__``).
"""

DIGEST_LENGTH = 8
"""Hexadecimal characters that tell shortened names apart: 32 bits, among a few thousand names."""

BACKEND_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9-]|_(?=[a-zA-Z0-9-])){0,31}\Z")
"""What a backend may be called: no two underscores together and none at the end, so that the separator is found."""

_ALLOWED = re.compile(rf"[a-zA-Z0-9_-]{{1,{NAME_LIMIT}}}\Z")
_ODD = re.compile(r"[^a-zA-Z0-9_-]")
_LOOKS_SHORTENED = re.compile(rf"_[0-9a-f]{{{DIGEST_LENGTH}}}\Z")


def public_name(backend: str, name: str) -> str:
    """
    :param backend: the backend's name.
    :param name: what the backend calls its tool or prompt.
    :returns: the name that agents see. Where the plain one is too long, has characters that agents do not take, or
        could be read in two ways, it is cut and ends in a digest of both names.
    """
    plain = f"{backend}{SEPARATOR}{name}"
    if _ALLOWED.match(plain) and BACKEND_NAME.match(backend) and not _LOOKS_SHORTENED.search(plain):
        return plain
    digest = hashlib.sha256(f"{backend}\0{name}".encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_LENGTH]
    return f"{_ODD.sub('_', plain)[: NAME_LIMIT - DIGEST_LENGTH - 1]}_{digest}"
