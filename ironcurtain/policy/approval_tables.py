"""
The tables ``[approval.vision]``, ``[approval.audio]`` and ``[approval.ui]`` of ``policy.toml``, as rules about the
server ``desktop``.

A table that is there decides about everything that it is about; where it is not, only the written rules do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from msgspec import Struct

from ironcurtain.home.structured import convert
from ironcurtain.policy.desktop import SERVER
from ironcurtain.policy.roles import Role
from ironcurtain.policy.rules import Conditions, ListCondition, Rule
from ironcurtain.policy.verdict import SEVERITY, Decision

Mode = Literal["ask", "allow", "deny"]
"""What happens to an action about which nothing more special is said."""

_THEN: Final[Mapping[Mode, Literal["allow", "escalate", "deny"]]] = {
    "allow": "allow",
    "ask": "escalate",
    "deny": "deny",
}

DECISIONS: Final[Mapping[Mode, Decision]] = {mode: Decision(then) for mode, then in _THEN.items()}
"""What each mode means."""

_SEEN: Final = {
    "screenshot": ("screenshot", "pictures of the screen"),
    "ui_tree": ("tree", "the elements of windows and their texts"),
    "windows": ("windows", "the list of windows"),
    "ocr": ("read_text", "the text in pictures of the screen"),
}
"""By field of ``[approval.vision]``, the tool that it is about, and what that gives."""

_HEARD: Final = {"microphone": "microphone", "system_audio": "system", "application_audio": "app"}
"""By field of ``[approval.audio]``, the source of ``listen`` that it is about."""

_ON_APPS: Final = ("press", "set_value", "select", "click", "drag", "scroll", "key", "type", "window", "open")
"""The tools that operate an application."""

_OTHER_HANDS: Final = ("clipboard_write", "notify")


class Table(Struct, frozen=True, forbid_unknown_fields=True):
    """Base of all tables."""


class VisionTable(Table, frozen=True):
    """``[approval.vision]``: what the agent may see of the screen. ``mode`` also decides about the clipboard."""

    mode: Mode | None = None
    screenshot: Mode | None = None
    ui_tree: Mode | None = None
    windows: Mode | None = None
    ocr: Mode | None = None


class AudioTable(Table, frozen=True):
    """``[approval.audio]``: what the agent may hear and say. Whatever is heard is also written down."""

    mode: Mode | None = None
    microphone: Mode | None = None
    system_audio: Mode | None = None
    application_audio: Mode | None = None
    speech_to_text: Mode | None = None
    speech: Mode | None = None


class UiTable(Table, frozen=True):
    """
    ``[approval.ui]``: which applications the agent may operate.

    :param mode: for applications that are not on the list. With ``allow``, a list that is there limits it: others are
        asked.
    """

    mode: Mode | None = None
    allow_apps: tuple[str, ...] = ()


def desktop_rules(tables: Mapping[str, Any], source: str, text: str) -> tuple[Rule, ...]:
    """
    :param tables: the table ``[approval]``, unparsed.
    :param source: the name of the file, for messages.
    :param text: the text of the file, to find lines for messages.
    :returns: what its tables about the desktop say, as rules that are the first of all.
    :raises ConfigurationError: one of them is wrong.
    """
    default: Mode = convert(source, tables.get("default", "ask"), Mode, text, ("approval", "default"))
    rules: list[Rule] = []
    for name, kind, compiled in (("vision", VisionTable, _vision), ("audio", AudioTable, _audio), ("ui", UiTable, _ui)):
        if name in tables:
            rules += compiled(convert(source, tables[name], kind, text, ("approval", name)), default)
    return tuple(rules)


def _vision(table: VisionTable, default: Mode) -> list[Rule]:
    mode = table.mode or default
    rules = [
        _rule("vision", field, (tool,), getattr(table, field) or mode, f"the agent's model would get {what}")
        for field, (tool, what) in _SEEN.items()
    ]
    return [*rules, _rule("vision", "mode", ("clipboard_read",), mode, "the agent's model would get the clipboard")]


def _audio(table: AudioTable, default: Mode) -> list[Rule]:
    mode = table.mode or default
    written: Mode = table.speech_to_text or mode
    heard = {field: _stricter(getattr(table, field) or mode, written) for field in _HEARD}
    why = "the agent's model would get what is heard"
    rules = [
        _rule("audio", field, ("listen",), heard[field], why, _only("audio-source", source))
        for field, source in _HEARD.items()
    ]
    unknown = _stricter(*heard.values())
    rules.append(_rule("audio", "mode", ("listen",), unknown, "the call does not say what is heard"))
    return [*rules, _rule("audio", "speech", ("speak",), table.speech or mode, "this is heard in the room")]


def _ui(table: UiTable, default: Mode) -> list[Rule]:
    rules: list[Rule] = []
    mode = table.mode or default
    why = "this operates an application that is not in allow_apps"
    if table.allow_apps:
        rules.append(_rule("ui", "allow_apps", _ON_APPS, "allow", "", _only("app", *table.allow_apps)))
        mode = _stricter(mode, "ask")
    return [*rules, _rule("ui", "mode", (*_ON_APPS, *_OTHER_HANDS), mode, why)]


def _stricter(*modes: Mode) -> Mode:
    return max(modes, key=lambda mode: SEVERITY[DECISIONS[mode]])


def _only(role: Role, *values: str) -> tuple[ListCondition, ...]:
    return (ListCondition((role,), values, "identifiers"),)


def _rule(
    table: str, field: str, tools: tuple[str, ...], mode: Mode, why: str, lists: tuple[ListCondition, ...] = ()
) -> Rule:
    conditions = Conditions(server=(SERVER,), tool=tools, lists=lists)
    return Rule(f"approval.{table}.{field}", conditions, _THEN[mode], why if mode == "ask" else "")
