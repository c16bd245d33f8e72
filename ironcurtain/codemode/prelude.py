"""
Declarations of tools for programs, and small text functions that the interpreter's own library lacks.

The functions run in this process, so each is bounded in input size and time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ironcurtain.codemode.functions import Function, Module, Parameter
from ironcurtain.servers.files import globs
from ironcurtain.text import differences
from ironcurtain.text.display import shorten
from ironcurtain.text.quantities import counted

DESCRIPTION_LIMIT = 600
"""Maximum length in characters of a tool's description for the model."""


def declarations(module: Module) -> str:
    """:returns: the ``.pyi`` file of a module. It has only signatures, so that no text of a server gets into it."""
    lines = [f"def {each.identifier}({_checked(each)}) -> Any: ..." for each in module.functions]
    return "\n".join(["from typing import Any", *lines, ""])


def _checked(function: Function) -> str:
    parts = [
        f"{each.identifier}: {each.checked}" if each.required else f"{each.identifier}: {each.checked} | None = None"
        for each in function.parameters
    ]
    return ", ".join([*parts, "**extra: Any"] if function.open else parts)


def signature(module: Module, function: Function) -> str:
    """:returns: one line such as ``filesystem.read_text_file(path: str, tail: float = ..., head: float = ...)``."""
    parts = [f"{each.identifier}: {each.shape}{'' if each.required else ' = ...'}" for each in function.parameters]
    return f"{module.identifier}.{function.identifier}({', '.join([*parts, '**extra'] if function.open else parts)})"


def documentation(module: Module, function: Function) -> str:
    """:returns: a signature with the tool's description and notes on its arguments."""
    lines = [signature(module, function)]
    if function.description:
        lines.append(f"    {shorten(function.description, DESCRIPTION_LIMIT)}")
    lines += [f"    {_noted(each)}" for each in function.parameters if each.note or each.name != each.identifier]
    return "\n".join(lines)


def _noted(parameter: Parameter) -> str:
    called = "" if parameter.name == parameter.identifier else f" (the tool calls it {shorten(parameter.name, 80)!r})"
    return f"{parameter.identifier}{called}: {parameter.note}".rstrip(": ")


def first_sentence(function: Function, limit: int = 100) -> str:
    """:returns: the beginning of a tool's description, for lists."""
    return shorten(function.description.partition(". ")[0], limit)


TEXT_LIMIT = 200_000
"""Maximum length in characters of a text to compare."""

NAMES_LIMIT = 20_000
"""Maximum number of names to match."""

NAME_LIMIT = 4096
"""Maximum length in characters of a name, as for paths on Linux (PATH_MAX)."""

STUBS = {
    "text": """\
from typing import Any
def diff(old: str, new: str, name: str = "text") -> str: ...
def glob(pattern: str, names: Any) -> list[str]: ...
""",
    "url": """\
from typing import Any
def parse(url: str) -> dict[str, Any]: ...
""",
    "tools": """\
from typing import Any
def help(name: str = "") -> str: ...
def show(picture: Any) -> None: ...
""",
}
"""The ``.pyi`` file of each module."""

SUMMARY = """\
text.diff(old: str, new: str, name: str = "text") -> str
    The unified diff of two texts.
text.glob(pattern: str, names: list[str]) -> list[str]
    The names (paths) that match a pattern with *, ?, [abc] and ** for any directories.
url.parse(url: str) -> dict
    scheme, host, port, path, query (a dict of lists) and fragment.
tools.help(name: str = "") -> str
    The full description of a server ("filesystem") or of one tool ("filesystem.edit_file").
tools.show(picture: dict), also show(picture)
    Show you a picture that a tool returned as {"id", "media_type", "width", "height"}, after the program has ended. It
    costs about a thousand tokens; at most 8 a program. The id holds for the session; there is no way to its bytes."""
"""The description of these functions for the model."""


def functions(
    modules: Sequence[Module], show: Callable[[Any], None] = lambda picture: None
) -> dict[str, Callable[..., Any]]:
    """
    :returns: the functions by the names in programs. They raise ``TypeError`` and ``ValueError`` only.

    :param modules: the tools that ``tools.help`` describes.
    :param show: shows the model a picture.
    """

    def describe(name: str = "") -> str:
        return _help(modules, _text(name, "name", NAME_LIMIT))

    return {"text.diff": _diff, "text.glob": _glob, "url.parse": _parse, "tools.help": describe, "tools.show": show}


def _text(value: Any, name: str, limit: int) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {type(value).__name__}")
    if len(value) > limit:
        raise ValueError(f"{name} has {len(value)} characters, over the limit of {limit}")
    return value


def _diff(old: Any, new: Any, name: Any = "text") -> str:
    return differences.unified(_text(old, "old", TEXT_LIMIT), _text(new, "new", TEXT_LIMIT), _text(name, "name", 200))


def _glob(pattern: Any, names: Any) -> list[str]:
    if not isinstance(names, list | tuple | set | frozenset) or len(names) > NAMES_LIMIT:
        raise ValueError(f"names must be a list of at most {NAMES_LIMIT} strings")
    matches = globs.matcher(_text(pattern, "pattern", globs.PATTERN_LIMIT))
    return [name for name in names if matches(_text(name, "a name", NAME_LIMIT).strip("/").split("/"))]


def _parse(url: Any) -> dict[str, Any]:
    parts = urlsplit(_text(url, "url", NAME_LIMIT))
    query = parse_qs(parts.query, keep_blank_values=True)
    return {
        "scheme": parts.scheme,
        "host": parts.hostname or "",
        "port": parts.port,
        "path": parts.path,
        "query": query,
        "fragment": parts.fragment,
    }


def _help(modules: Sequence[Module], name: str) -> str:
    wanted, _, tool = name.partition(".")
    if not wanted:
        return (
            "\n".join(f"{module.identifier}: {counted(len(module.functions), 'tool')}" for module in modules)
            or "no tools"
        )
    for module in modules:
        if module.identifier == wanted and not tool:
            return "\n".join(
                f"{module.identifier}.{each.identifier}: {first_sentence(each)}" for each in module.functions
            )
        for each in module.functions:
            if (module.identifier, each.identifier) == (wanted, tool):
                return documentation(module, each)
    raise ValueError(f"there is no function {name!r}; tools.help() lists the servers")
