"""Write functions down: as declarations that programs are checked against, and as text that the model reads."""

from __future__ import annotations

from ironcurtain.codemode.functions import Function, Module, Parameter
from ironcurtain.text.display import shorten

DESCRIPTION_LIMIT = 600
"""Most characters of a tool's description in what the model reads."""


def declarations(module: Module) -> str:
    """The ``.pyi`` file of a module: nothing but signatures, so that no server's text gets into it."""
    lines = [f"def {each.identifier}({_checked(each)}) -> Any: ..." for each in module.functions]
    return "\n".join(["from typing import Any", *lines, ""])


def _checked(function: Function) -> str:
    parts = [
        f"{each.identifier}: {each.checked}" if each.required else f"{each.identifier}: {each.checked} | None = None"
        for each in function.parameters
    ]
    return ", ".join([*parts, "**extra: Any"] if function.open else parts)


def signature(module: Module, function: Function) -> str:
    """One line such as ``filesystem.read_text_file(path: str, tail: float = ..., head: float = ...)``."""
    parts = [f"{each.identifier}: {each.shape}{'' if each.required else ' = ...'}" for each in function.parameters]
    return f"{module.identifier}.{function.identifier}({', '.join([*parts, '**extra'] if function.open else parts)})"


def documentation(module: Module, function: Function) -> str:
    """A signature with the tool's description and notes on its arguments."""
    lines = [signature(module, function)]
    if function.description:
        lines.append(f"    {shorten(function.description, DESCRIPTION_LIMIT)}")
    lines += [f"    {_noted(each)}" for each in function.parameters if each.note or each.name != each.identifier]
    return "\n".join(lines)


def _noted(parameter: Parameter) -> str:
    called = "" if parameter.name == parameter.identifier else f" (the tool calls it {shorten(parameter.name, 80)!r})"
    return f"{parameter.identifier}{called}: {parameter.note}".rstrip(": ")


def first_sentence(function: Function, limit: int = 100) -> str:
    """The beginning of a tool's description, for lists."""
    return shorten(function.description.partition(". ")[0], limit)
