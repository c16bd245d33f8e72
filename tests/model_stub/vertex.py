"""Claude in Google's Vertex AI as a server sees it: Anthropic's messages at another path."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tests.model_stub import anthropic
from tests.model_stub.anthropic import counted as counted
from tests.model_stub.anthropic import error_body as error_body
from tests.model_stub.anthropic import error_event as error_event
from tests.model_stub.anthropic import events as events
from tests.model_stub.anthropic import models as models
from tests.model_stub.anthropic import spoken as spoken
from tests.model_stub.anthropic import whole as whole
from tests.model_stub.bedrock import in_cloud
from tests.model_stub.dialect import Asked, Invalid
from tests.model_stub.openai import key as key

NAME = anthropic.NAME

_PATH = re.compile(
    r"/v1/projects/my-project/locations/europe-west1/publishers/anthropic/models/([^/:]+):(streamRawPredict|rawPredict)"
)


def handles(method: str, path: str) -> bool:
    return method == "POST" and _PATH.fullmatch(path) is not None


def check_headers(headers: Mapping[str, str], keys: frozenset[str]) -> None:
    if key(headers) not in keys:
        raise Invalid("Request had invalid authentication credentials.", 401)


def asked(path: str, headers: Mapping[str, str], body: bytes) -> Asked:
    matched = _PATH.fullmatch(path)
    assert matched is not None, path
    return in_cloud(matched[1], matched[2] == "streamRawPredict", headers, body, "vertex-2023-10-16")
