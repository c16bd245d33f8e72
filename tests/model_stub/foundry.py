"""Claude in Microsoft Foundry as a server sees it: Anthropic's messages below another path."""

from __future__ import annotations

from collections.abc import Mapping

from tests.model_stub import anthropic
from tests.model_stub.anthropic import check_headers as check_headers
from tests.model_stub.anthropic import counted as counted
from tests.model_stub.anthropic import error_body as error_body
from tests.model_stub.anthropic import error_event as error_event
from tests.model_stub.anthropic import events as events
from tests.model_stub.anthropic import key as key
from tests.model_stub.anthropic import models as models
from tests.model_stub.anthropic import spoken as spoken
from tests.model_stub.anthropic import whole as whole
from tests.model_stub.dialect import Asked

NAME = anthropic.NAME

_BELOW = "/anthropic"


def handles(method: str, path: str) -> bool:
    return path.startswith(_BELOW) and anthropic.handles(method, path.removeprefix(_BELOW))


def asked(path: str, headers: Mapping[str, str], body: bytes) -> Asked:
    return anthropic.asked(path.removeprefix(_BELOW), headers, body)
