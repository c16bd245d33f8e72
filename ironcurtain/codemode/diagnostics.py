"""
Decide which findings of the type checker prevent a program from running.

The checker (ty, inside pydantic-monty 1.4) is stricter than Python: it reports correct programs, and does not know
names that a failed program defined. Only certain errors count: tools, arguments and modules that do not exist, wrong
arguments, undefined names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from difflib import get_close_matches

from ironcurtain.codemode.functions import Function, Module
from ironcurtain.codemode.prelude import signature

BUILTINS = """\
from typing import Any
class FileExistsError(OSError): ...
class FileNotFoundError(OSError): ...
class IsADirectoryError(OSError): ...
class NotADirectoryError(OSError): ...
class PermissionError(OSError): ...
class ImportError(Exception): ...
class ModuleNotFoundError(ImportError): ...
class UnboundLocalError(NameError): ...
class UnicodeDecodeError(ValueError): ...
class UnicodeEncodeError(ValueError): ...
def filter(function: Any, items: Any) -> Any: ...
def format(value: Any, spec: str = "") -> str: ...
def getattr(value: Any, name: str, default: Any = None) -> Any: ...
def hasattr(value: Any, name: str) -> bool: ...
def map(function: Any, *items: Any) -> Any: ...
def setattr(value: Any, name: str, new: Any) -> None: ...
"""
"""Declares builtins of the interpreter that its checker does not know (compared name by name, 1.4.0)."""

_ARGUMENTS = {
    "invalid-argument-type",
    "missing-argument",
    "parameter-already-assigned",
    "too-many-positional-arguments",
    "unknown-argument",
}

SHOWN = 10
"""Maximum number of findings reported at once."""


def names_in(code: str) -> set[str]:
    """:returns: every word of a program that could be a name it defines."""
    return set(re.findall(r"[^\W\d]\w*", code))


def fatal(report: str, modules: Sequence[Module], uncertain: Collection[str]) -> str | None:
    """
    Read the checker's report.

    :param report: its findings as JSON.
    :param uncertain: names that may be defined although the checker does not know them.
    :returns: a message for the model on why the program cannot run; ``None`` if it can.
    """
    findings: list[str] = []
    for each in json.loads(report):
        text = _fatal(str(each["code"]), str(each["message"]), modules, uncertain)
        if text is not None:
            findings.append(f"line {each['location']['row']}: {text}")
    if not findings:
        return None
    more = [f"and {len(findings) - SHOWN} more"] if len(findings) > SHOWN else []
    return "\n".join(["Nothing was run, because this cannot work:", *findings[:SHOWN], *more])


def _fatal(code: str, message: str, modules: Sequence[Module], uncertain: Collection[str]) -> str | None:
    quoted: list[str] = re.findall(r"`([^`]*)`", message)
    if not quoted:
        return None
    if code == "unresolved-reference":
        return None if quoted[0] in uncertain else f"{message}{_instead(quoted[0], [m.identifier for m in modules])}"
    if code == "unresolved-import":
        return f"{message}; there are no other modules than those listed"
    if code == "unresolved-attribute" and message.startswith("Module "):
        module = next((each for each in modules if each.identifier == quoted[0]), None)
        if module is not None:
            return f"{message}{_instead(quoted[1], [each.identifier for each in module.functions])}"
    if code in _ARGUMENTS and (found := _function(message, modules)) is not None:
        return f"{message}. It is {signature(*found)}"
    return None


def _function(message: str, modules: Sequence[Module]) -> tuple[Module, Function] | None:
    named = re.search(r"function `(\w+)`", message)
    found = [(m, each) for m in modules for each in m.functions if named and each.identifier == named[1]]
    return found[0] if found else None


def _instead(name: str, known: Sequence[str]) -> str:
    close = get_close_matches(name[:100], known, n=3)
    return f". Did you mean {' or '.join(close)}?" if close else ""
