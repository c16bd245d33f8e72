"""Write rules and annotations as ``policy.toml`` has them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.parsing import parse_toml
from ironcurtain.policy.annotations import Annotations, ToolAnnotation
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


def extended(source: str, text: str, annotations: Annotations, rules: Sequence[Rule]) -> str:
    """
    Add annotations and rules at the end of a policy file; everything else stays as it is.

    :param source: the file's name, for messages.
    :param text: a ``policy.toml``.
    :param annotations: those of tools that have none yet.
    :raises ConfigurationError: the file has its rules or annotations in another form, or what is added is there.
    """
    old = parse_toml(source, text)
    tools = [(server, tool) for (server, _), tool in annotations.table().items()]
    added = [*(annotation_toml(server, tool) for server, tool in tools), *map(rule_toml, rules)]
    result = "\n".join([text.rstrip("\n"), "", *added]) if added else text
    by_hand = ConfigurationError(source, "it cannot be changed: its rules or tools are written in another form")
    try:
        new = parse_toml(source, result)
    except ConfigurationError:
        raise by_hand from None
    for server, tool in tools:
        named = new.get("tools", {})[server].pop(tool.name, None)
        if named is None or tool.name in old.get("tools", {}).get(server, {}):
            raise by_hand
    if rules:
        new["rules"] = new["rules"][: -len(rules)]
    if _filled(old) != _filled(new):
        raise by_hand
    return result


def _filled(document: dict[str, Any]) -> dict[str, Any]:
    """:returns: a document without empty tables of tools and rules."""
    tools = {server: each for server, each in document.get("tools", {}).items() if each}
    return {**document, "tools": tools, "rules": document.get("rules", [])}


def _present(value: Any) -> Any:
    """:returns: the value without members that are not set."""
    if isinstance(value, dict):
        unset = {name for name, member in value.items() if member is None or (name == "lists" and not member)}
        return {name: _present(member) for name, member in value.items() if name not in unset}
    return [_present(item) for item in value] if isinstance(value, list | tuple) else value
