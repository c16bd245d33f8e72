"""
Render the arguments of a call: in short for a row, completely for a decision, and edits as diffs.

Every front end uses these functions, so that a person reads the same wherever a call can be approved.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from itertools import groupby
from typing import Any

from ironcurtain.text.columns import Line, Span, Style, cells, clip, cut, cut_left, wrap
from ironcurtain.text.display import json_line, one_line, paragraphs
from ironcurtain.text.quantities import counted

SHOWN = 65536
"""Maximum number of characters shown of one argument (some thousand lines); the digest covers all of it."""

BRIEF = 200
"""Maximum number of characters of a value processed for a row."""

SHOWN_IN_ALL = 2 * SHOWN
"""Maximum number of characters shown of all changes of one argument: as many as one change may have."""

COMPARED = 20_000
"""
Budget for line-by-line comparison of all changes of one argument, in lines of the one text times lines of the other
(some 0.05 s at worst); beyond it, both texts are shown one after the other.
"""

NAME = 40
"""Maximum number of characters of an argument's name in its short form."""

LINE = 100
"""Maximum width of the short form of a value that is shown completely below."""

KEYS = 4
"""Maximum number of arguments listed in short form."""

REPEATED = 4
"""Number of repetitions from which a repeated line is shown once, so that differences cannot hide among them."""

NESTED = 4
"""Maximum number of levels of an object or list that are shown below each other."""

_CHANGES = (
    ("oldText", "newText"),
    ("old_text", "new_text"),
    ("oldString", "newString"),
    ("old_string", "new_string"),
    ("old_str", "new_str"),
    ("search", "replace"),
)
"""Names that tools use for the two sides of a change."""


def brief(arguments: Mapping[str, Any]) -> str:
    """:returns: ``name=value`` pairs on one line, escaped and shortened."""
    return " ".join(f"{one_line(name, NAME)}={value_line(value, BRIEF)}" for name, value in list(arguments.items())[:8])


def distinguishing(arguments: Mapping[str, Any], others: Iterable[Mapping[str, Any]], width: int) -> str:
    """
    :param others: arguments of other calls of the same tool in the same list.
    :param width: columns.
    :returns: ``name=value`` pairs on one line; those come first that tell it from the others, and of the first one
        the end if not all of it fits.
    """
    known = list(others)
    differing = [name for name in arguments if any(other.get(name) != arguments[name] for other in known)]
    names = [*differing, *(name for name in arguments if name not in differing)]
    if not names:
        return ""
    first = arguments[names[0]]
    label = f"{one_line(names[0], NAME)}="
    room = max(width - cells(label), 0)
    value = value_line(first[-BRIEF:] if isinstance(first, str) else first, BRIEF)
    is_cut = isinstance(first, str) and (len(first) > BRIEF or cells(value) > room)
    if is_cut:
        return f"{label}{cut_left(value if len(first) <= BRIEF else f'…{value}', room)}"
    return cut(f"{label}{value} {brief({name: arguments[name] for name in names[1:]})}".rstrip(), width)


def brief_json(text: str) -> str:
    """
    :param text: arguments of an event: a JSON object, possibly cut.
    :returns: the same as :func:`brief`; text that is not a JSON object is only escaped.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return one_line(text)
    return brief(value) if isinstance(value, dict) else one_line(text)


def key_lines(arguments: Mapping[str, Any], width: int) -> list[Line]:
    """:returns: one line per argument: its value, or its beginning with its length."""
    if not arguments:
        return [(Span("no arguments", "dim"),)]
    lines = [clip(_key_line(name, value, width), width) for name, value in list(arguments.items())[:KEYS]]
    if (more := len(arguments) - KEYS) > 0:
        lines.append((Span(f"and {more} more arguments, below", "warn"),))
    return lines


def full_lines(arguments: Mapping[str, Any], width: int, limit: int | None = SHOWN) -> list[Line]:
    """:returns: the arguments that do not fit into :func:`key_lines`, completely; may be empty."""
    long = [name for i, (name, value) in enumerate(arguments.items()) if i >= KEYS or not _fits(name, value, width)]
    lines: list[Line] = []
    for old, new in _sides(arguments):
        if old in long or new in long:
            edit = (arguments[old], arguments[new])
            lines += _wrapped(f"{old}, {new}: {sum(map(len, edit)):,} characters", "", "bold", width)
            lines += _changes_of([edit], width, limit)
            long = [name for name in long if name not in (old, new)]
    for name in long:
        lines += _argument(name, arguments[name], width, limit)
    return lines


def is_complete(arguments: Mapping[str, Any]) -> bool:
    """Whether :func:`key_lines` and :func:`full_lines` show everything."""
    return all(_is_all_shown(value) for value in arguments.values())


def _is_all_shown(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= SHOWN
    if edits := _edits(value):
        sides = [len(side) for edit in edits for side in edit]
        return max(sides) <= SHOWN and sum(sides) <= SHOWN_IN_ALL
    return size(value) <= SHOWN and len(json_line(value)) <= SHOWN


def size(value: Any) -> int:
    """:returns: length in characters of a value as JSON."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str))


def value_line(value: Any, limit: int | None = None) -> str:
    """:returns: a value on one line, escaped; with ``limit``, at most so many characters of it."""
    return one_line(value, limit) if isinstance(value, str) else json_line(value, limit)


def _length(value: Any) -> int:
    return len(value) if isinstance(value, str) else size(value)


def _fits(name: str, value: Any, width: int) -> bool:
    # Lines are read as lines, never as one line with escapes only.
    if _has_lines(value) or len(one_line(name)) > NAME or _length(value) > min(width, BRIEF) or _edits(value):
        return False
    shown = value_line(value)
    return len(shown) <= BRIEF and cells(shown) + len(_label(name)) <= width


def _has_lines(value: Any) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(map(_has_lines, inner)) or (isinstance(value, str) and "\n" in value.rstrip("\n"))


def _label(name: str) -> str:
    return f"{one_line(name, NAME)} = "


def _key_line(name: str, value: Any, width: int) -> Line:
    label = Span(_label(name), "bold")
    if value == "":
        return (label, Span("an empty text", "warn"))
    if _fits(name, value, width):
        return (label, Span(value_line(value, BRIEF)))
    suffix = f" ({_length(value):,} characters, below)"
    room = max(min(width, LINE) - cells(label.text) - len(suffix), 0)
    edits = _edits(value)
    text = counted(len(edits), "change") if edits else value_line(value, room)
    return (label, Span(cut(text, room)), Span(suffix, "warn"))


def _argument(name: str, value: Any, width: int, limit: int | None) -> Iterator[Line]:
    for part in wrap(f"{one_line(name)}: {_length(value):,} characters", width):
        yield (Span(part, "bold"),)
    if isinstance(value, str):
        yield from _block(value, "  ", "new" if name == "content" else "", width, limit)
    elif edits := _edits(value):
        yield from _changes_of(edits, width, limit)
    elif isinstance(value, dict | list) and (limit is None or _is_all_shown(value)):
        yield from _members(value, "  ", width, NESTED)
    else:
        yield from _wrapped(json_line(value, limit), "  ", "", width)


def _members(value: Any, indent: str, width: int, levels: int) -> Iterator[Line]:
    """:returns: the members of an object or list, each below the other; texts with line ends as lines."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value, 1)
    for name, member in pairs:
        label = f"{json_line(name)}:" if isinstance(value, dict) else f"{name}."
        line = f"{label} {json_line(member)}"
        is_long = (cells(line) + len(indent) > width and levels) or (_has_lines(member) and len(indent) * 2 < width)
        if isinstance(member, str) and "\n" in member.rstrip("\n"):
            yield from _wrapped(label, indent, "bold", width, "      ")
            yield from _block(member, f"{indent}| ", "", width, None)
        elif is_long and isinstance(member, dict | list):
            yield from _wrapped(label, indent, "bold", width, "      ")
            yield from _members(member, f"{indent}  ", width, levels - 1)
        else:
            yield from _wrapped(line, indent, "", width, "      ")


def _edits(value: Any) -> list[tuple[str, str]]:
    """:returns: the two sides of each change, if the value consists only of changes."""
    found: list[tuple[str, str]] = []
    for part in value if isinstance(value, list) else [value]:
        if not isinstance(part, dict) or len(part) != 2 or not (sides := _sides(part)):
            return []
        [(old, new)] = sides
        found.append((part[old], part[new]))
    return found


def _sides(arguments: Mapping[str, Any]) -> list[tuple[str, str]]:
    """:returns: the names of those arguments that are the two sides of a change."""
    return [names for names in _CHANGES if all(isinstance(arguments.get(name), str) for name in names)]


def _changes_of(edits: list[tuple[str, str]], width: int, limit: int | None) -> Iterator[Line]:
    room, comparable = SHOWN_IN_ALL, COMPARED
    for number, (old, new) in enumerate(edits, 1):
        room -= min(len(old), SHOWN) + min(len(new), SHOWN)
        if room < 0 and limit is not None:
            left = len(edits) - number + 1
            yield (Span(f"… {left:,} more changes: 'ironcurtain escalations show' has all", "warn"),)
            return
        yield (Span(f"  change {number} of {len(edits)}", "dim"),)
        cost = (old.count("\n") + 1) * (new.count("\n") + 1)
        if cost > comparable or len(old) > SHOWN or len(new) > SHOWN:
            yield from _block(old, "- ", "old", width, limit)
            yield from _block(new, "+ ", "new", width, limit)
        else:
            comparable -= cost
            yield from _change(old, new, width)


def _change(old: str, new: str, width: int) -> Iterator[Line]:
    before, after = old.split("\n"), new.split("\n")
    for tag, i, end, j, stop in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            yield from _lines(before[i:end], "  ", "", width)
        else:
            yield from _lines(before[i:end], "- ", "old", width)
            yield from _lines(after[j:stop], "+ ", "new", width)


def _block(text: str, mark: str, style: Style, width: int, limit: int | None) -> Iterator[Line]:
    yield from _lines(text[:limit].split("\n"), mark, style, width)
    if limit is not None and (more := len(text) - limit) > 0:
        yield (Span(f"… {more:,} more characters: 'ironcurtain escalations show' has all", "warn"),)


def _lines(texts: list[str], mark: str, style: Style, width: int) -> Iterator[Line]:
    for text, same in groupby(texts):
        count = len(list(same))
        for _ in range(count if count < REPEATED else 1):
            yield from _wrapped(one_line(text), mark, style, width)
        if count >= REPEATED:
            yield (Span(f"… that line {count:,} times", "warn"),)


def _wrapped(text: str, mark: str, style: Style, width: int, later: str = "  ") -> Iterator[Line]:
    """Continuation lines are indented by ``later``, so that a value cannot imitate another line."""
    for index, part in enumerate(wrap(text, width - len(mark) - len(later))):
        yield (Span(mark if index == 0 else f"{mark}{later}", style or "dim"), Span(part, style))


def diff_lines(diff: str, most: int | None = None, *, indent: str = "") -> list[Line]:
    """
    :param diff: a unified diff; may be untrusted.
    :param most: maximum number of lines; ``None``: all.
    :returns: its lines, escaped and coloured, without the first name of the file if both are the same.
    """
    lines = diff.removesuffix("\n").split("\n") if diff else []
    if len(lines) > 1 and lines[0].startswith("--- ") and lines[1][4:] == lines[0][4:]:
        del lines[0]  # and no other: "--- x" is also how it looks if the line "-- x" is deleted
    found: list[Line] = [(Span(f"{indent}{paragraphs(line).expandtabs(4)}", _style(line)),) for line in lines[:most]]
    if (more := len(lines) - len(found)) > 0:
        found.append((Span(f"{indent}… ({more} more lines)", "dim"),))
    return found


def _style(line: str) -> Style:
    if line.startswith(("+++", "---", "@@")):
        return "dim"
    return "new" if line.startswith("+") else "old" if line.startswith("-") else "dim"
