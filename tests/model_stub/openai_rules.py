"""The rules of OpenAI's Responses API for requests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.model_stub.dialect import Invalid

_PARAMETERS = frozenset(
    (
        *("model", "input", "instructions", "stream", "stream_options", "tools", "tool_choice", "parallel_tool_calls"),
        *(
            "max_tool_calls",
            "max_output_tokens",
            "temperature",
            "top_p",
            "top_logprobs",
            "text",
            "reasoning",
            "truncation",
        ),
        *("include", "store", "metadata", "previous_response_id", "conversation", "prompt", "prompt_cache_key"),
        *("prompt_cache_retention", "safety_identifier", "service_tier", "user", "background", "client_metadata"),
        "context_management",
    )
)
_ITEMS = frozenset(
    (
        *(
            "message",
            "reasoning",
            "function_call",
            "function_call_output",
            "custom_tool_call",
            "custom_tool_call_output",
        ),
        *("item_reference", "web_search_call", "local_shell_call", "local_shell_call_output", "compaction"),
        *("tool_search_call", "tool_search_output"),
        *("additional_tools", "configuration_update", "compaction_trigger"),  # Codex only
    )
)
_PARTS = {
    "user": frozenset(("input_text", "input_image", "input_file", "input_audio")),
    "assistant": frozenset(("output_text", "refusal")),
    "system": frozenset(("input_text",)),
    "developer": frozenset(("input_text", "input_image")),
}
_CALLS = {"function_call": "function", "custom_tool_call": "custom tool"}
_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,128}$")


def check_body(body: bytes) -> dict[str, Any]:
    """
    :returns: the request.
    :raises Invalid: it breaks a rule of the API.
    """
    try:
        request = json.loads(body)
    except ValueError:
        raise Invalid("We could not parse the JSON body of your request.") from None
    if not isinstance(request, dict):
        raise Invalid("Invalid type: expected an object.")
    if unknown := set(request) - _PARAMETERS:
        raise Invalid(f"Unknown parameter: '{min(unknown)}'.")
    if not isinstance(request.get("model"), str):
        raise Invalid("Missing required parameter: 'model'.")
    if not request.get("input"):
        raise Invalid("Missing required parameter: 'input'.")
    if request.get("previous_response_id"):
        raise Invalid(f"Previous response with id '{request['previous_response_id']}' not found.")
    items = request["input"] if isinstance(request["input"], list) else []
    for place, tool in _all_tools(request.get("tools", []), items):
        _check_tool(place, tool)
    for index, item in enumerate(items):
        _check_item(f"input[{index}]", item)
    _check_calls(items)
    return request


def _all_tools(tools: list[Any], items: list[Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for index, tool in enumerate(tools):
        yield f"tools[{index}]", tool
    for item in items:
        if item.get("type") == "additional_tools":
            yield from _all_tools(item.get("tools", []), [])


def _check_tool(place: str, tool: Mapping[str, Any]) -> None:
    kind = tool.get("type")
    if not isinstance(kind, str):
        raise Invalid(f"Missing required parameter: '{place}.type'.")
    if kind in ("function", "custom", "namespace") and not _NAME.match(tool.get("name", "")):
        raise Invalid(f"Invalid '{place}.name': string does not match pattern.")
    if kind == "function" and tool.get("parameters", {}).get("type", "object") != "object":
        raise Invalid(f"Invalid schema for function '{tool['name']}': schema must be of type 'object'.")
    if kind == "namespace":
        for index, inner in enumerate(tool.get("tools", [])):
            _check_tool(f"{place}.tools[{index}]", inner)


def _check_item(place: str, item: Any) -> None:
    kind = item.get("type", "message") if isinstance(item, dict) else None
    if kind not in _ITEMS:
        raise Invalid(f"Invalid value: '{kind}' for '{place}.type'. Supported values are: {', '.join(sorted(_ITEMS))}.")
    if kind == "message":
        _check_message(place, item)
    if kind in _CALLS and not (item.get("call_id") and item.get("name")):
        raise Invalid(f"Missing required parameter: '{place}.call_id'.")
    if kind == "function_call" and not isinstance(item.get("arguments"), str):
        raise Invalid(f"Missing required parameter: '{place}.arguments'.")
    if kind == "custom_tool_call" and not isinstance(item.get("input"), str):
        raise Invalid(f"Missing required parameter: '{place}.input'.")
    if kind in ("function_call_output", "custom_tool_call_output") and not isinstance(item.get("output"), str | list):
        raise Invalid(f"Missing required parameter: '{place}.output'.")


def _check_message(place: str, item: Mapping[str, Any]) -> None:
    role, content = item.get("role"), item.get("content")
    if role not in _PARTS:
        raise Invalid(f"Invalid value: '{role}' for '{place}.role'. Supported values are: {', '.join(_PARTS)}.")
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        raise Invalid(f"Missing required parameter: '{place}.content'.")
    for index, part in enumerate(content):
        if part.get("type") not in _PARTS[role]:
            supported = ", ".join(sorted(_PARTS[role]))
            raise Invalid(
                f"Invalid value: '{part.get('type')}' for '{place}.content[{index}].type'. "
                f"Supported values are: {supported}."
            )


def _check_calls(items: list[Any]) -> None:
    for call, name in _CALLS.items():
        made = {item["call_id"] for item in items if item.get("type") == call}
        answered = {item.get("call_id") for item in items if item.get("type") == f"{call}_output"}
        if missing := made - answered:
            raise Invalid(f"No tool output found for {name} call {min(missing)}.")
        if unknown := answered - made:
            raise Invalid(f"No tool call found for {name} call output with call_id {min(unknown)}.")
