"""GitHub Copilot as a server sees it: OpenAI's Responses API at another path, paid for by GitHub's token itself."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tests.model_stub import openai
from tests.model_stub.dialect import Invalid
from tests.model_stub.openai import asked as asked
from tests.model_stub.openai import counted as counted
from tests.model_stub.openai import error_body as error_body
from tests.model_stub.openai import error_event as error_event
from tests.model_stub.openai import events as events
from tests.model_stub.openai import key as key
from tests.model_stub.openai import spoken as spoken
from tests.model_stub.openai import whole as whole

NAME = "copilot"

MODEL = "gpt-6.1-stub"
"""The only one: none that a client knows without asking."""


def handles(method: str, path: str) -> bool:
    return method == "POST" and path == "/responses"


def check_headers(headers: Mapping[str, str], keys: frozenset[str]) -> None:
    openai.check_headers(headers, keys)
    if headers.get("x-initiator") not in ("agent", "user"):
        raise Invalid("bad request: X-Initiator has to say who began: agent or user")
    if not headers.get("openai-intent"):
        raise Invalid("bad request: Openai-Intent is missing")


def models() -> bytes:
    limits = {"max_context_window_tokens": 128_000, "max_prompt_tokens": 64_000, "max_output_tokens": 16_000}
    model = {
        **{
            "id": MODEL,
            "name": "GPT of the stub",
            "object": "model",
            "vendor": "Stub",
            "version": f"{MODEL}-2026-11-01",
        },
        "capabilities": {
            **{"family": MODEL, "type": "chat", "limits": limits},
            "supports": {"streaming": True, "tool_calls": True},
        },
        **{"model_picker_enabled": True, "policy": {"state": "enabled"}, "supported_endpoints": ["/responses"]},
    }
    return json.dumps({"data": [model], "object": "list"}).encode()
