"""Apply edits to a text: each replaces one passage that must occur exactly once."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ironcurtain.servers.files.failures import FileError

EDIT_LIMIT = 500
"""Maximum number of edits of one call (write a complete file for larger changes)."""


class Edit(msgspec.Struct, frozen=True):
    """Replace ``old`` by ``new``."""

    old: str
    new: str


def apply(text: str, edits: Sequence[Edit]) -> str:
    """
    Apply edits in order, each to the result of the previous ones.

    If the text has CRLF line ends throughout and an edit has LF ones, the edit is applied with CRLF.

    :raises FileError: a passage is empty, missing or ambiguous; then no edit is applied.
    """
    if not 1 <= len(edits) <= EDIT_LIMIT:
        raise FileError(f"edits: between 1 and {EDIT_LIMIT} are accepted at once, not {len(edits)}")
    windows = "\r\n" in text and text.count("\n") == text.count("\r\n")
    for number, edit in enumerate(edits, start=1):
        old, new = (_with_crlf(edit.old), _with_crlf(edit.new)) if windows else (edit.old, edit.new)
        _require_once(text, old, f"edit {number}" if len(edits) > 1 else "the edit")
        text = text.replace(old, new)
    return text


def _with_crlf(passage: str) -> str:
    return passage.replace("\r\n", "\n").replace("\n", "\r\n")


def _require_once(text: str, old: str, which: str) -> None:
    if not old:
        raise FileError(f"{which}: oldText is empty; write_file replaces a whole file")
    first = text.find(old)
    if first < 0:
        raise FileError(f"{which}: oldText does not occur{_hint(text, old)}")
    if text.find(old, first + 1) >= 0:
        lines = _occurrences(text, old, first)
        raise FileError(f"{which}: oldText occurs {lines}; add lines around it until it is unique")


def _occurrences(text: str, old: str, first: int) -> str:
    places: list[int] = []
    while first >= 0 and len(places) < 100:
        places.append(text.count("\n", 0, first) + 1)
        first = text.find(old, first + 1)
    count = "100 times or more" if len(places) == 100 else f"{len(places)} times"
    return f"{count} (first at lines {', '.join(map(str, places[:5]))})"


def _hint(text: str, old: str) -> str:
    wanted = [line.strip() for line in old.strip().splitlines()]
    have = [line.strip() for line in text.splitlines()]
    for start in range(len(have) - len(wanted) + 1 if wanted else 0):
        if have[start] == wanted[0] and have[start : start + len(wanted)] == wanted:
            return f"; line {start + 1} differs from it only in white space: copy it exactly"
    return "; read the file again and copy the passage exactly"
