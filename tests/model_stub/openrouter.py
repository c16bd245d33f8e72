"""OpenRouter as a server sees it: OpenAI's Chat Completions API at another path, with a parameter of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tests.model_stub import openai_chat
from tests.model_stub.dialect import Asked
from tests.model_stub.openai_chat import check_headers as check_headers
from tests.model_stub.openai_chat import counted as counted
from tests.model_stub.openai_chat import error_body as error_body
from tests.model_stub.openai_chat import error_event as error_event
from tests.model_stub.openai_chat import events as events
from tests.model_stub.openai_chat import key as key
from tests.model_stub.openai_chat import models as models
from tests.model_stub.openai_chat import spoken as spoken
from tests.model_stub.openai_chat import whole as whole

NAME = openai_chat.NAME


def handles(method: str, path: str) -> bool:
    return method == "POST" and path == "/api/v1/chat/completions"


def asked(path: str, headers: Mapping[str, str], body: bytes) -> Asked:
    request = json.loads(body)
    request.pop("usage", None)
    return openai_chat.asked(path, headers, json.dumps(request).encode())
