"""Changes of texts as unified diffs, bounded in size and in the time that they take."""

from __future__ import annotations

from ironcurtain.text import differences
from ironcurtain.text.display import without_breaks

DIFF_LIMIT = 16 * 1024
"""Maximum length in characters of a diff."""

DIFFED = 256 * 1024
"""Maximum length in characters of a text that is compared with another."""


def unified(path: str, before: str, after: str, limit: int = DIFF_LIMIT) -> str:
    """
    :param limit: most characters of the diff.
    :returns: the change of a file as a unified diff, bounded; empty if there is none. Ends of lines in the path are
        escaped: it shall look like no part of the change.
    """
    if before == after:
        return ""
    path = without_breaks(path)
    if len(before) > DIFFED or len(after) > DIFFED:
        return f"--- {path}\n+++ {path}\n@@ {len(before)} characters became {len(after)} @@\n"
    changes = differences.unified(before, after, "").split("\n", 2)[2]
    return bounded(f"--- {path}\n+++ {path}\n{changes}", limit)


def bounded(diff: str, limit: int = DIFF_LIMIT) -> str:
    """:returns: a diff of at most so many characters, about, which says what is left out."""
    if len(diff) <= limit:
        return diff
    kept = diff[:limit].rpartition("\n")[0]
    return f"{kept}\n… ({diff.count(chr(10)) - kept.count(chr(10))} more lines)\n"
