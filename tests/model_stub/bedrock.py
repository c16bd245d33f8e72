"""Claude in Amazon Bedrock as a server sees it: Anthropic's messages at another path, and streams of Amazon's kind."""

from __future__ import annotations

import base64
import json
import re
import struct
import zlib
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import unquote

from tests.model_stub import anthropic
from tests.model_stub.anthropic import counted as counted
from tests.model_stub.anthropic import models as models
from tests.model_stub.anthropic import spoken as spoken
from tests.model_stub.anthropic import whole as whole
from tests.model_stub.dialect import Asked, Invalid
from tests.model_stub.openai import key as key
from tests.model_stub.replies import Answer

NAME = anthropic.NAME
STREAM = "application/vnd.amazon.eventstream"

_PATH = re.compile(r"/model/([^/]+)/(invoke|invoke-with-response-stream)")
_STRING = 7
"""The type of a header's value (Amazon Transcribe's developer guide, "Event stream encoding")."""


def handles(method: str, path: str) -> bool:
    return method == "POST" and _PATH.fullmatch(path) is not None


def check_headers(headers: Mapping[str, str], keys: frozenset[str]) -> None:
    if key(headers) not in keys:
        raise Invalid("Invalid API Key format: Must start with pre-defined prefix", 403)


def asked(path: str, headers: Mapping[str, str], body: bytes) -> Asked:
    matched = _PATH.fullmatch(path)
    assert matched is not None, path
    return in_cloud(unquote(matched[1]), matched[2] != "invoke", headers, body, "bedrock-2023-05-31")


def in_cloud(model: str, stream: bool, headers: Mapping[str, str], body: bytes, version: str) -> Asked:
    """
    :param version: of the messages, as the cloud names it.
    :returns: a request whose model stands in its path.
    """
    request = json.loads(body)
    if request.pop("anthropic_version", "") != version:
        raise Invalid(f"anthropic_version: Input should be '{version}'")
    if "model" in request:
        raise Invalid("model: Extra inputs are not permitted")
    betas = ",".join((*request.pop("anthropic_beta", ()), headers.get("anthropic-beta", "")))
    whole_request = json.dumps({**request, "model": model}).encode()
    return replace(anthropic.asked("/v1/messages", {**headers, "anthropic-beta": betas}, whole_request), stream=stream)


def events(answer: Answer, model: str, number: int) -> list[bytes]:
    made = (event.partition(b"data: ")[2].strip() for event in anthropic.events(answer, model, number))
    return [_frame("event", "chunk", {"bytes": base64.b64encode(event).decode()}) for event in made]


def error_event(answer: Answer) -> bytes:
    return _frame("exception", "internalServerException", {"message": answer.error[1]})


def error_body(status: int, message: str, type: str = "", *, retry_after: str = "") -> bytes:
    return json.dumps({"message": message}).encode()


def _frame(kind: str, name: str, payload: Mapping[str, str]) -> bytes:
    """:returns: one message of a stream."""
    fields = {":message-type": kind, f":{kind}-type": name, ":content-type": "application/json"}
    heads = b"".join(
        bytes((len(field),)) + field.encode() + struct.pack(">BH", _STRING, len(value)) + value.encode()
        for field, value in fields.items()
    )
    body = json.dumps(payload).encode()
    prelude = struct.pack(">II", 16 + len(heads) + len(body), len(heads))
    message = prelude + struct.pack(">I", zlib.crc32(prelude)) + heads + body
    return message + struct.pack(">I", zlib.crc32(message))
