"""Show changes of files as diffs, safe for a terminal."""

from __future__ import annotations

from ironcurtain.text.columns import Line, Span, Style
from ironcurtain.text.display import paragraphs


def diff_lines(diff: str, most: int | None = None, *, indent: str = "") -> list[Line]:
    """
    :param diff: a unified diff; may be untrusted.
    :param most: maximum number of lines; ``None``: all.
    :returns: its lines, escaped and coloured, without the first name of the file if both are the same.
    """
    lines = diff.removesuffix("\n").split("\n") if diff else []
    if len(lines) > 1 and lines[0].startswith("--- ") and lines[1][4:] == lines[0][4:]:
        del lines[0]  # and no other: "--- x" is also how it looks if the line "-- x" is deleted
    shown = lines if most is None or len(lines) <= most else lines[:most]
    found: list[Line] = [(Span(f"{indent}{paragraphs(line).expandtabs(4)}", _style(line)),) for line in shown]
    if len(shown) < len(lines):
        found.append((Span(f"{indent}… ({len(lines) - len(shown)} more lines)", "dim"),))
    return found


def _style(line: str) -> Style:
    if line.startswith(("+++", "---", "@@")):
        return "dim"
    return "new" if line.startswith("+") else "old" if line.startswith("-") else "dim"
