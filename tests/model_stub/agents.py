"""
Which agent asks, and for what: its real turn, which the script answers, or something on the side.

Side requests are recognised by what they hold, and answered with something that their sender can use. What was seen of
Claude Code 2.1.329, Codex 0.169.0, OpenCode 1.18.33 and Gemini CLI 0.61.0 is named where it is looked for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from tests.model_stub.dialect import Asked
from tests.model_stub.replies import Answer, Block, Raw, Text, Tool

TURN = "turn"
"""The purpose of a request that the script answers."""

_AGENTS = (
    ("claude-cli/", "claude-code"),  # the model calls
    ("claude-code/", "claude-code"),  # all others
    ("codex", "codex"),
    ("opencode/", "opencode"),
    ("GeminiCLI", "gemini-cli"),
)
_TURNS = frozenset(("main", "subagent", "workflow", "turn"))
"""What agents themselves call requests of the main conversation, or of one that the model began by a tool."""

_SOURCES = frozenset(("thread_title", "memory_consolidation"))
"""Conversations that Codex has with itself, though it calls their requests turns."""

_FIELDS = {
    "complexity_score": "routing",
    "model_choice": "routing",
    "next_speaker": "next-speaker",
    "title": "title",
}
"""What a side request is for, by a field of the JSON that it wants."""

_WORDS = (("title", "title"), ("summar", "summary"), ("snapshot", "summary"))
"""What a side request is for, by words in its instructions."""

_RUNNING = re.compile(r"^Script running with cell ID (\S+)", re.MULTILINE)
"""What Codex's code mode says of a script that is not over; the model has to ask again."""


def agent(headers: Mapping[str, str]) -> str:
    """:returns: the agent that sends these headers (names in lower case), empty if it is none that is known."""
    sender = headers.get("user-agent", "")
    return next((name for beginning, name in _AGENTS if sender.startswith(beginning)), "")


def side(asked: Asked, headers: Mapping[str, str]) -> tuple[str, Answer] | None:
    """
    Tell a side request from a turn.

    :returns: what it is for, and the answer; ``None`` for a turn, and for whatever is no agent that is known.
    """
    if (asked.body.get("max_tokens"), asked.said) == (1, "."):  # Claude Code asks Bedrock which models there are
        return "probe", Answer((Text((".",)),))
    if not agent(headers):
        return None
    if running := [found[1] for result in asked.results if (found := _RUNNING.search(result))]:
        return "wait", Answer(tuple(Tool("wait", {"cell_id": cell}) for cell in running))
    kind = _kind(headers)
    if kind in _TURNS or (asked.tools and not kind):
        return None
    purpose = _purpose(asked, kind)
    return purpose, Answer((_said(asked, purpose),))


def _kind(headers: Mapping[str, str]) -> str:
    """:returns: what an agent itself says of its request: Claude Code in a header, Codex in a header's fields."""
    if kind := headers.get("x-claude-code-request-class"):
        return kind
    try:
        told = json.loads(headers.get("x-codex-turn-metadata", "{}"))
    except ValueError:
        return ""
    kind, source = str(told.get("request_kind", "")), str(told.get("thread_source", ""))
    return source if kind in _TURNS and source in _SOURCES else kind


def _purpose(asked: Asked, kind: str) -> str:
    names = (asked.schema or {}).get("properties", {})
    if known := next((purpose for name, purpose in _FIELDS.items() if name in names), ""):
        return known
    if kind not in ("", "auxiliary"):
        return kind
    instructions = (asked.system + asked.said).lower()
    return next((purpose for word, purpose in _WORDS if word in instructions), kind or "aside")


def _said(asked: Asked, purpose: str) -> Block:
    if asked.schema is not None:
        return Text((json.dumps(instance(asked.schema)),))
    items = asked.body.get("input")
    if isinstance(items, list) and items[-1].get("type") == "compaction_trigger":  # Codex
        return Raw({"id": "cmp_1", "type": "compaction", "encrypted_content": "c3VtbWFyeQ=="})
    return Text(("A task" if purpose == "title" else "<summary>A task was given.</summary>",))


def instance(schema: Mapping[str, Any]) -> Any:
    """:returns: a value that fits a JSON Schema, as plain as may be."""
    if "const" in schema:
        return schema["const"]
    if choices := schema.get("enum"):
        return choices[0]
    for name in ("anyOf", "oneOf", "allOf"):
        if name in schema:
            return instance(schema[name][0])
    kind = schema.get("type", "object")
    match str(kind[0] if isinstance(kind, list) else kind).lower():
        case "object":
            return {name: instance(inner) for name, inner in schema.get("properties", {}).items()}
        case "array":
            return [instance(schema["items"]) for _ in range(schema.get("minItems", 0))]
        case "integer":
            return schema.get("minimum", 1)
        case "number":  # mostly a share of one: how sure something is
            return schema.get("minimum", 0)
        case "boolean":
            return False
        case "null":
            return None
    return "A task"
