"""Changes of texts as unified diffs, bounded in size and in the time that they take."""

from __future__ import annotations

import difflib

DIFF_LIMIT = 16 * 1024
"""Maximum length in characters of a diff."""

DIFFED = 256 * 1024
"""Maximum length in characters of a text that is compared with another, since that takes quadratic time."""


def unified(path: str, before: str, after: str, limit: int = DIFF_LIMIT) -> str:
    """
    :param limit: most characters of the diff.
    :returns: the change of a file as a unified diff, bounded; empty if there is none.
    """
    if before == after:
        return ""
    if len(before) > DIFFED or len(after) > DIFFED:
        return f"--- {path}\n+++ {path}\n@@ {len(before)} characters became {len(after)} @@\n"
    _, _, *lines = difflib.unified_diff(_lines(before), _lines(after))
    return bounded(f"--- {path}\n+++ {path}\n{''.join(lines)}", limit)


def _lines(text: str) -> list[str]:
    return [line if line.endswith("\n") else f"{line}\n" for line in text.splitlines(keepends=True)]


def bounded(diff: str, limit: int = DIFF_LIMIT) -> str:
    """:returns: a diff of at most so many characters, about, which says what is left out."""
    if len(diff) <= limit:
        return diff
    kept = diff[:limit].rpartition("\n")[0]
    return f"{kept}\n… ({diff.count(chr(10)) - kept.count(chr(10))} more lines)\n"
