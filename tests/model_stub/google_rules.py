"""The rules of Google's Gemini API for requests."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from tests.model_stub.dialect import Invalid

_FIELDS = frozenset(
    (
        *(
            "contents",
            "systemInstruction",
            "tools",
            "toolConfig",
            "generationConfig",
            "safetySettings",
            "cachedContent",
        ),
        *("labels", "model", "store", "serviceTier", "generateContentRequest"),
    )
)
_DATA = frozenset(
    (
        *("text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode"),
        *("codeExecutionResult", "toolCall", "toolResponse"),
    )
)
_BESIDES = frozenset(("thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata"))
_NAME = re.compile(r"^[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}$")


def check_body(body: bytes) -> dict[str, Any]:
    """
    :returns: the request.
    :raises Invalid: it breaks a rule of the API.
    """
    try:
        request = json.loads(body)
    except ValueError:
        raise Invalid("Invalid JSON payload received. Unexpected token.") from None
    if not isinstance(request, dict):
        raise Invalid("Invalid value at '' (type.googleapis.com/google.ai.generativelanguage), not an object")
    _check_fields("", request, _FIELDS)
    contents = request.get("contents")
    if not isinstance(contents, list) or not contents:
        raise Invalid("* GenerateContentRequest.contents: contents is not specified")
    for index, content in enumerate(contents):
        _check_content(f"contents[{index}]", content)
    _check_calls(contents)
    for tool in request.get("tools", []):
        for declaration in tool.get("functionDeclarations", []):
            _check_declaration(declaration)
    return request


def _check_fields(place: str, value: Mapping[str, Any], known: frozenset[str]) -> None:
    if unknown := set(value) - known:
        where = f" at '{place}'" if place else ""
        raise Invalid(f'Invalid JSON payload received. Unknown name "{min(unknown)}"{where}: Cannot find field.')


def _check_content(place: str, content: Any) -> None:
    if not isinstance(content, dict):
        raise Invalid(f"Invalid value at '{place}'")
    _check_fields(place, content, frozenset(("role", "parts")))
    if content.get("role", "user") not in ("user", "model", "function"):
        raise Invalid("Please use a valid role: user, model.")
    if not content.get("parts"):
        raise Invalid(f"* GenerateContentRequest.{place}.parts: contents.parts must not be empty.")
    for index, part in enumerate(content["parts"]):
        _check_fields(f"{place}.parts[{index}]", part, _DATA | _BESIDES)
        if len(set(part) & _DATA) != 1:
            raise Invalid(
                f"* GenerateContentRequest.{place}.parts[{index}].data: required oneof field 'data' must have one"
            )


def _check_calls(contents: list[Any]) -> None:
    asked: list[str] = []
    for index, content in enumerate(contents):
        answered = _answered(content["parts"])
        if len(answered) != len(asked):
            raise Invalid(
                "Please ensure that the number of function response parts is equal to the number of function call "
                "parts of the function call turn."
            )
        if sorted(answered) != sorted(asked):
            raise Invalid(f"contents[{index}]: function responses {answered} do not fit the calls {asked}")
        asked = [part["functionCall"]["name"] for part in content["parts"] if "functionCall" in part]
        if asked and (not index or contents[index - 1].get("role") == "model"):
            raise Invalid(
                "Please ensure that function call turn comes immediately after a user turn or after a function "
                "response turn."
            )
    if asked:
        raise Invalid("Please ensure that function call turns are followed by function response turns.")


def _answered(parts: list[dict[str, Any]]) -> list[str]:
    # Gemini CLI 0.61.0 sends each response twice after --resume, with one id: whether the real API minds is not known.
    responses = [part["functionResponse"] for part in parts if "functionResponse" in part]
    once = {response.get("id", place): response["name"] for place, response in enumerate(responses)}
    return list(once.values())


def _check_declaration(declaration: Mapping[str, Any]) -> None:
    if not _NAME.match(declaration.get("name", "")):
        raise Invalid(
            "Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), "
            "underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 128."
        )
