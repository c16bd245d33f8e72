"""Google's Code Assist API as a server sees it: the Gemini API in envelopes, for those who log in with Google."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from tests.model_stub import google
from tests.model_stub.dialect import Asked, Invalid
from tests.model_stub.google import counted as counted
from tests.model_stub.google import error_body as error_body
from tests.model_stub.google import error_event as error_event
from tests.model_stub.google import models as models
from tests.model_stub.google import spoken as spoken
from tests.model_stub.openai import key as key
from tests.model_stub.replies import Answer

NAME = google.NAME

PROJECT = "project-of-the-stub"
"""What the account uses, as :data:`LOADED` says."""

LOADED = json.dumps({"currentTier": {"id": "free-tier", "name": "Free"}, "cloudaicompanionProject": PROJECT})
"""The answer to the question for the account's plan, which comes first."""

_PATH = re.compile(r"/v1internal:(streamGenerateContent|generateContent|countTokens)")
_FIELDS = frozenset(("model", "project", "request", "user_prompt_id"))
_INNER = frozenset(("model", "session_id"))
"""What the inner request may have besides the Gemini API's own fields."""


def handles(method: str, path: str) -> bool:
    return method == "POST" and _PATH.fullmatch(path) is not None


def check_headers(headers: Mapping[str, str], keys: frozenset[str]) -> None:
    if key(headers) not in keys:
        raise Invalid("Request had invalid authentication credentials.", 401)
    if not headers.get("content-type", "").startswith("application/json"):
        raise Invalid("Invalid content type: it has to be application/json.")


def asked(path: str, headers: Mapping[str, str], body: bytes) -> Asked:
    matched = _PATH.fullmatch(path)
    assert matched is not None, path
    outer = json.loads(body)
    if unknown := set(outer) - _FIELDS:
        raise Invalid(f'Invalid JSON payload received. Unknown name "{min(unknown)}": Cannot find field.')
    counting = matched[1] == "countTokens"
    if not counting and outer.get("project") != PROJECT:
        raise Invalid(f"Permission denied on resource project {outer.get('project')}.", 403)
    inner = {name: value for name, value in outer.get("request", {}).items() if name not in _INNER}
    model = outer["request"].get("model", "").removeprefix("models/") if counting else outer["model"]
    return google.asked(f"/v1beta/models/{model}:{matched[1]}", headers, json.dumps(inner).encode())


def events(answer: Answer, model: str, number: int) -> list[bytes]:
    made = (event.removeprefix(b"data: ").strip() for event in google.events(answer, model, number))
    return [b"data: " + _enveloped(event, number) + b"\r\n\r\n" for event in made]


def whole(answer: Answer, model: str, number: int) -> bytes:
    return _enveloped(google.whole(answer, model, number), number)


def _enveloped(response: bytes, number: int) -> bytes:
    return json.dumps({"response": json.loads(response), "traceId": f"stub{number:08d}"}).encode()
