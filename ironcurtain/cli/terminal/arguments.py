"""The arguments of a call, short for a status line and in full for a decision. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ironcurtain.cli.terminal.lines import cells, cut, wrap
from ironcurtain.text.columns import Line, Span
from ironcurtain.text.display import one_line, paragraphs

INDENT = 4
"""Columns before the lines of a value that starts below its name."""

LINES = 14
"""Most lines for all arguments of one call (our choice: with the rest of the banner about 20, so it fits 80x24)."""

NAME_LIMIT = 40
"""Most characters of an argument's name that are shown."""

CONSIDERED = 8000
"""Most characters of a value that are broken into lines at all; more than :data:`LINES` wide lines hold."""

NAME_COLUMNS = (12, 20)
"""Least and most columns for the names; below a longer one its value starts on a line of its own."""


def brief(text: str) -> str:
    """
    :param text: arguments as an event carries them: a JSON object, perhaps cut short.
    :returns: ``name=value`` pairs on one line, escaped; what is no JSON object as it is.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return one_line(text)
    if not isinstance(value, dict):
        return one_line(text)
    return " ".join(f"{one_line(name)}={_short(part)}" for name, part in value.items())


def _short(value: Any) -> str:
    return one_line(value) if isinstance(value, str) else paragraphs(_json(value))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "), default=str)


@dataclass(frozen=True, slots=True)
class _Shown:
    """
    An argument made ready.

    :param whole: the text of the value, of which length and digest are told.
    :param lines: it, escaped and broken.
    :param block: whether it starts below its name.
    :param cut_off: whether ``lines`` stop before its end.
    """

    name: str
    whole: str
    lines: Sequence[str]
    block: bool
    cut_off: bool


def full(arguments: Mapping[str, Any], width: int, limit: int = LINES) -> list[Line]:
    """
    All arguments of a call, in at most ``limit`` lines.

    What is too long is cut, and its length and SHA-256 digest are told; what finds no line at all is counted.

    :param width: columns.
    """
    if not arguments:
        return [(Span("no arguments", "dim"),)]
    shown, column, share, hidden = _laid_out(arguments, width, limit)
    lines = [line for argument in shown for line in _render(argument, share, column, width)]
    if hidden:
        lines.append((Span(f"and {hidden} more", "warn"),))
    return lines


def is_whole(arguments: Mapping[str, Any], width: int, limit: int = LINES) -> bool:
    """Whether :func:`full` shows everything."""
    shown, _, share, hidden = _laid_out(arguments, width, limit)
    names = all(len(one_line(name)) <= NAME_LIMIT for name in arguments)
    return names and not hidden and not any(each.cut_off or _height(each) > share for each in shown)


def _laid_out(arguments: Mapping[str, Any], width: int, limit: int) -> tuple[list[_Shown], int, int, int]:
    """:returns: the arguments made ready, the columns for names, the most lines of each, and how many are hidden."""
    items = [(one_line(name, NAME_LIMIT), value) for name, value in arguments.items()]
    hidden = len(items) - limit + 1 if len(items) > limit else 0
    least, most = NAME_COLUMNS
    column = max([least, *(cells(name) for name, _ in items if cells(name) <= most)])
    shown = [_prepare(name, value, column, width) for name, value in items[: len(items) - hidden]]
    share = _share([_height(argument) for argument in shown], limit - bool(hidden))
    return shown, column, share, hidden


def _prepare(name: str, value: Any, column: int, width: int) -> _Shown:
    is_text = isinstance(value, str)
    whole = value if is_text else paragraphs(_json(value))
    considered = whole[:CONSIDERED]
    has_lines = is_text and "\n" in considered.rstrip("\n")
    block = has_lines or cells(name) > column
    parts = considered.split("\n") if has_lines else [one_line(considered) if is_text else considered]
    room = width - (INDENT if block else column + 1)
    lines = [line for part in parts for line in wrap(paragraphs(part).replace("\t", "    "), room)]
    return _Shown(name, whole, lines if whole else ["(empty)"], block, len(whole) > CONSIDERED)


def _height(argument: _Shown) -> int:
    return len(argument.lines) + argument.block + argument.cut_off


def _share(heights: Sequence[int], limit: int) -> int:
    """:returns: the most lines each may have, so that all together have no more than ``limit``."""
    return next((n for n in range(limit, 1, -1) if sum(min(height, n) for height in heights) <= limit), 1)


def _render(argument: _Shown, most: int, column: int, width: int) -> Iterator[Line]:
    name = Span(f"{argument.name}{' ' * (column - cells(argument.name))} ", "dim")
    told = _measure(argument.whole)
    if _height(argument) <= most and not argument.cut_off:
        yield from _together(name, argument.lines, argument.block)
    elif most < 3:
        name = Span(cut(name.text, max(width - len(told) - 1, column)), "dim")
        yield (name, Span(f"{told} ", "warn"), Span(cut(argument.lines[0], width - cells(name.text) - len(told) - 1)))
    else:
        yield from _together(name, argument.lines[: most - 1 - argument.block], argument.block)
        indent = INDENT if argument.block else cells(name.text)
        yield (Span(" " * indent), Span(f"cut here: {told}", "warn"))


def _together(name: Span, lines: Sequence[str], block: bool) -> Iterator[Line]:
    if block:
        yield (name,)
    for index, line in enumerate(lines):
        before = Span(" " * INDENT) if block else name if index == 0 else Span(" " * cells(name.text))
        yield (before, Span(line))


def _measure(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    lines = text.count("\n") + 1
    return f"({len(text)} characters{f' in {lines} lines' if lines > 1 else ''}, sha256 {digest})"
