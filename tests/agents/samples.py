"""What adapters are told, and what agents print, cut down from what the real programs printed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ironcurtain.agents.adapter import Facts, File, TurnFailed, TurnOutcome

KEYS = {
    "anthropic": "sk-ant-api03-fake-abcdefghijklmnopqrstuvwxyz",
    "openai": "sk-fake-abcdefghijklmnopqrstuvwxyz",
    "google": "AIzaSyfake-abcdefghijklmnopqrstuvwxyz",
}

ORIENTATION = 'You are in "a container".\nC:\\nowhere \x7f \N{PILE OF POO}\n'
"""With everything that has to be escaped somewhere."""

BROKEN_TEXT = b'{"type": "text", "part": {"messageID": "m", "text": "cut \\ud83d"}}'
"""A line whose text ends in half a character, as JavaScript programs write it."""


def facts(
    keys: Mapping[str, str] = KEYS,
    *,
    model: str = "",
    escalation_seconds: float = 300.0,
    resumed: bool = False,
    accounts: Mapping[str, str] | None = None,
    places: Mapping[str, Mapping[str, str]] | None = None,
) -> Facts:
    """:returns: what an adapter is told."""
    return Facts(keys, model, ORIENTATION, escalation_seconds, resumed, accounts or {}, places or {})


def lines(*events: Any) -> bytes:
    """:returns: events as an agent prints them, between lines that are none."""
    printed = [event.encode() if isinstance(event, str) else json.dumps(event).encode() for event in events]
    return b"\n".join([b"npm warn something", b"", *printed, b"[1, 2]", b'{"type": "resu'])


def outcome(*events: Any, exit_code: int = 0, stderr: str = "") -> TurnOutcome:
    """:returns: the end of a turn that printed these events."""
    return TurnOutcome(exit_code, lines(*events), stderr.encode())


def content(files: Any, place: str, path: str) -> str:
    """:returns: the content of the one file at a place."""
    [file] = [file for file in files if isinstance(file, File) and (file.place, file.path) == (place, path)]
    return file.content


def failed(adapter: Any, ended: TurnOutcome) -> TurnFailed:
    """:returns: how the turn failed."""
    try:
        answer = adapter.answer(ended)
    except TurnFailed as e:
        return e
    raise AssertionError(f"there is an answer: {answer}")
