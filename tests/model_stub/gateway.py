"""A gateway as a server sees it: Anthropic's messages below a path, for a bearer token."""

from __future__ import annotations

from collections.abc import Mapping

from tests.model_stub import anthropic
from tests.model_stub.anthropic import counted as counted
from tests.model_stub.anthropic import error_body as error_body
from tests.model_stub.anthropic import error_event as error_event
from tests.model_stub.anthropic import events as events
from tests.model_stub.anthropic import models as models
from tests.model_stub.anthropic import spoken as spoken
from tests.model_stub.anthropic import whole as whole
from tests.model_stub.dialect import Asked, Invalid
from tests.model_stub.openai import key as key

NAME = anthropic.NAME

BELOW = "/gateway"


def handles(method: str, path: str) -> bool:
    return path.startswith(BELOW) and anthropic.handles(method, path.removeprefix(BELOW))


def check_headers(headers: Mapping[str, str], keys: frozenset[str]) -> None:
    if key(headers) not in keys or "x-api-key" in headers:
        raise Invalid("the gateway wants its bearer token, and nothing else", 401)


def asked(path: str, headers: Mapping[str, str], body: bytes) -> Asked:
    return anthropic.asked(path.removeprefix(BELOW), headers, body)
