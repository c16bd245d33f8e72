"""The arguments of a call, short for a status line and in full for a decision. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ironcurtain.cli.terminal.lines import Line, Span, wrap
from ironcurtain.display import one_line, paragraphs

LINES = 14
"""Most lines for all arguments of one call (our choice: with the rest of the banner about 20, so it fits 80x24)."""

NAME_LIMIT = 40
"""Most characters of an argument's name that are shown."""

CONSIDERED = 8000
"""Most characters of a value that are broken into lines at all; more than :data:`LINES` wide lines hold."""

_NAME_COLUMN = 12


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
    :param block: whether it has line ends of its own, and starts below its name.
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
    items = list(arguments.items())
    hidden = len(items) - limit + 1 if len(items) > limit else 0
    shown = [_prepare(name, value, width) for name, value in items[: len(items) - hidden]]
    share = _share([_height(argument) for argument in shown], limit - bool(hidden))
    lines = [line for argument in shown for line in _render(argument, share)]
    if hidden:
        lines.append((Span(f"and {hidden} more: 'ironcurtain escalations' shows them all", "warn"),))
    return lines


def _prepare(name: str, value: Any, width: int) -> _Shown:
    whole = value if isinstance(value, str) else paragraphs(_json(value))
    considered = whole[:CONSIDERED]
    block = isinstance(value, str) and "\n" in considered.rstrip("\n")
    room = width - (4 if block else _NAME_COLUMN + 1)
    lines = list(_broken(considered, room, isinstance(value, str), block))
    return _Shown(one_line(name, NAME_LIMIT), whole, lines, block, len(whole) > CONSIDERED)


def _broken(text: str, room: int, is_text: bool, block: bool) -> Iterator[str]:
    if not text:
        yield "(empty)"
    elif block:
        for part in text.split("\n"):
            yield from wrap(paragraphs(part).replace("\t", "    "), room)
    else:
        yield from wrap(one_line(text) if is_text else text, room)


def _height(argument: _Shown) -> int:
    return len(argument.lines) + argument.block + argument.cut_off


def _share(heights: Sequence[int], limit: int) -> int:
    """:returns: the most lines each may have, so that all together have no more than ``limit``."""
    return next((n for n in range(limit, 1, -1) if sum(min(height, n) for height in heights) <= limit), 1)


def _render(argument: _Shown, most: int) -> Iterator[Line]:
    name = Span(f"{argument.name:<{_NAME_COLUMN}} ", "dim")
    if _height(argument) <= most and not argument.cut_off:
        yield from _together(name, argument.lines, argument.block)
        return
    told = Span(f"({_measure(argument.whole)})", "warn")
    if most < 3:
        yield (name, Span(f"{one_line(argument.whole[:30])}… "), told)
        return
    yield from _together(name, argument.lines[: most - 1 - argument.block], argument.block)
    yield (Span(" " * (4 if argument.block else _NAME_COLUMN + 1)), Span("cut here: ", "warn"), told)


def _together(name: Span, lines: Sequence[str], block: bool) -> Iterator[Line]:
    if block:
        yield (name,)
        for line in lines:
            yield (Span("    "), Span(line))
        return
    for index, line in enumerate(lines):
        yield (name if index == 0 else Span(" " * (_NAME_COLUMN + 1)), Span(line))


def _measure(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    lines = text.count("\n") + 1
    return f"{len(text)} characters{f' in {lines} lines' if lines > 1 else ''}, sha256 {digest}"
