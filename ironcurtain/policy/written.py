"""Write rules and annotations as ``policy.toml`` has them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from ironcurtain.policy.annotations import ToolAnnotation
from ironcurtain.policy.rules import Rule
from ironcurtain.text.toml import toml_key, toml_string, toml_value


def rule_toml(rule: Rule, comments: Iterable[str] = ()) -> str:
    """
    :param comments: one line each, without control characters; written above the rule.
    :returns: a rule as a table of the list ``rules``.
    """
    lines = [*(f"# {comment}" for comment in comments), "[[rules]]", f"name = {toml_string(rule.name)}"]
    texts = (("description", rule.description), ("principle", rule.principle))
    lines += [f"{name} = {toml_string(text)}" for name, text in texts if text]
    lines += [f"if = {toml_value(_present(msgspec.to_builtins(rule.conditions)))}", f"then = {toml_string(rule.then)}"]
    lines += [f"reason = {toml_string(rule.reason)}"] if rule.reason else []
    asking = (("approvals", rule.approvals, 1), ("auto", rule.auto, False))
    lines += [f"{name} = {toml_value(value)}" for name, value, default in asking if value != default]
    return "\n".join([*lines, ""])


def annotation_toml(server: str, tool: ToolAnnotation) -> str:
    """:returns: the annotation of a server's tool as a table."""
    lines = [f"[tools.{toml_key(server)}.{toml_key(tool.name)}]"]
    lines += [f"comment = {toml_string(tool.comment)}"] if tool.comment else []
    return "\n".join([*lines, f"args = {toml_value(msgspec.to_builtins(tool.args))}", ""])


def _present(value: Any) -> Any:
    """:returns: the value without members that are not set."""
    if isinstance(value, dict):
        unset = {name for name, member in value.items() if member is None or (name == "lists" and not member)}
        return {name: _present(member) for name, member in value.items() if name not in unset}
    return [_present(item) for item in value] if isinstance(value, list | tuple) else value
