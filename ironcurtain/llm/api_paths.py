"""The path of a request below a ``base_url``, which may end with a version or an endpoint, or neither."""

from __future__ import annotations

import re
from typing import Final

_VERSION: Final = r"/v[0-9]+[a-z0-9]*"
_VERSIONED: Final = re.compile(rf"({_VERSION})(/.*)")
_ENDS_VERSIONED: Final = re.compile(rf"{_VERSION}\Z")
_HAS_VERSION: Final = re.compile(rf"{_VERSION}(?=/|\Z)")
_OPENAI: Final = r"/(?:(?:chat/)?completions|responses(?:/compact)?)"
_OPENAI_ENDPOINT: Final = re.compile(_OPENAI)
_ENDPOINT: Final = re.compile(rf"(?:{_OPENAI}|/messages(?:/count_tokens)?|/models/[^/]*:[A-Za-z]+)\Z")
_MODELS: Final = re.compile(r"(?<=/)(v[0-9]+[a-z0-9]*)/models\Z")


def request_path(base: str, path: str) -> str:
    """
    Join the path of a ``base_url`` and that of a request, so that the version occurs once.

    A base that ends with a version, such as ``/v1``, replaces the request's; so does one that is an endpoint itself, as
    copied from a provider's documentation. For OpenAI's endpoints, a version anywhere in it does, since OpenAI's
    clients add none: ``/v1beta/openai``. Any other base is put before the path.

    :param base: path of the ``base_url``; may be empty.
    :param path: as the provider itself has it, with the version, and possibly a query: ``/v1/messages?beta=true``.
    """
    if not base:
        return path
    base = base.rstrip("/")
    versioned = _VERSIONED.fullmatch(path)
    if versioned is None:
        return _without_endpoint(base) + path
    version, rest = versioned.groups()
    endpoint = rest.partition("?")[0]
    begun = _without_endpoint(base)
    if begun != base or base.endswith(version):
        return begun + rest
    of_openai = _OPENAI_ENDPOINT.fullmatch(endpoint) is not None
    known = _ENDPOINT.fullmatch(endpoint) is not None
    replaced = (_HAS_VERSION if of_openai else _ENDS_VERSIONED).search(base) if known else None
    return base + (rest if replaced else path)


def _without_endpoint(base: str) -> str:
    return _MODELS.sub(r"\1", _ENDPOINT.sub("", base))
