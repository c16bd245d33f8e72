"""What adapters are told, ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ironcurtain.agents.adapter import Facts, File

KEYS = {
    "anthropic": "sk-ant-api03-fake-abcdefghijklmnopqrstuvwxyz",
    "openai": "sk-fake-abcdefghijklmnopqrstuvwxyz",
    "google": "AIzaSyfake-abcdefghijklmnopqrstuvwxyz",
}

ORIENTATION = 'You are in "a container".\nC:\\nowhere \x7f \N{PILE OF POO}\n'
"""With everything that has to be escaped somewhere."""


def facts(
    keys: Mapping[str, str] = KEYS,
    *,
    model: str = "",
    escalation_seconds: float = 300.0,
    resumed: bool = False,
    accounts: Mapping[str, str] | None = None,
    places: Mapping[str, Mapping[str, str]] | None = None,
    conversation: str = "",
) -> Facts:
    """:returns: what an adapter is told."""
    return Facts(
        keys, model, ORIENTATION, escalation_seconds, resumed, accounts or {}, places or {}, conversation=conversation
    )


def content(files: Any, place: str, path: str) -> str:
    """:returns: the content of the one file at a place."""
    [file] = [file for file in files if isinstance(file, File) and (file.place, file.path) == (place, path)]
    return file.content
