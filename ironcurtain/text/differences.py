"""
The difference between two texts as a unified diff, in bounded time.

``difflib`` alone can take minutes for two long texts. Here, lines that occur once in both texts are fixed points (Bram
Cohen's patience diff), and only the stretches between them are compared line by line, within a budget. Beyond it, a
stretch is shown as completely replaced, which is still a correct diff.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

Block = tuple[int, int, int, int]
"""A stretch that differs: lines ``a:b`` of the old text became lines ``c:d`` of the new one; counted from 0."""

CONTEXT = 3
"""Number of equal lines shown around a change, as in ``diff -u``."""

GAP_LIMIT = 40_000
"""
Maximum size of a stretch compared line by line, in lines of the one times lines of the other (about 30 ms at worst).
"""

BUDGET = 400_000
"""Maximum total size of these stretches, in the same unit (about 0.3 s at worst)."""


def unified(old: str, new: str, name: str) -> str:
    """
    :returns: the unified diff from ``old`` to ``new``; empty if they are equal.

    :param name: the file's name for both headers.
    """
    before, after = lines_of(old), lines_of(new)
    changes = list(blocks(before, after))
    if not changes:
        return ""
    lines = [f"--- a/{name.lstrip('/')}\n", f"+++ b/{name.lstrip('/')}\n"]
    for group in _groups(changes):
        lines += _hunk(before, after, group)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def lines_of(text: str) -> list[str]:
    """:returns: lines with their ends; only LF ends a line."""
    *whole, rest = text.split("\n")
    return [f"{line}\n" for line in whole] + ([rest] if rest else [])


def blocks(before: Sequence[str], after: Sequence[str]) -> Iterator[Block]:
    """:returns: the stretches that differ, in order, each as small as possible."""
    head = _common(before, after)
    tail = _common(before[head:][::-1], after[head:][::-1])
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    budget = BUDGET
    start_old = start_new = 0
    for old_at, new_at in [*_anchors(old, new), (len(old), len(new))]:
        gap_old, gap_new = old[start_old:old_at], new[start_new:new_at]
        cost = len(gap_old) * len(gap_new)
        exact = cost <= min(GAP_LIMIT, budget)
        budget -= cost if exact else 0
        for a, b, c, d in _gap(gap_old, gap_new, exact):
            shift_old, shift_new = head + start_old, head + start_new
            yield shift_old + a, shift_old + b, shift_new + c, shift_new + d
        start_old, start_new = old_at + 1, new_at + 1


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    length = min(len(one), len(other))
    return next((i for i in range(length) if one[i] != other[i]), length)


def _gap(old: Sequence[str], new: Sequence[str], exact: bool) -> list[Block]:
    if not old and not new:
        return []
    if not exact or not old or not new:
        return [] if old == new else [(0, len(old), 0, len(new))]
    opcodes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [(a, b, c, d) for tag, a, b, c, d in opcodes if tag != "equal"]


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    once_old, once_new = _once(old), _once(new)
    pairs = sorted((at, once_new[line]) for line, at in once_old.items() if line in once_new)
    return _rising(pairs)


def _once(lines: Sequence[str]) -> dict[str, int]:
    counts = Counter(lines)
    return {line: at for at, line in enumerate(lines) if counts[line] == 1}


def _rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    # The longest run of pairs with rising second numbers (patience sorting).
    tops: list[int] = []
    ends: list[int] = []
    previous: list[int] = []
    for index, (_, at) in enumerate(pairs):
        pile = bisect_left(tops, at)
        previous.append(ends[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [at]
        ends[pile : pile + 1] = [index]
    chain: list[tuple[int, int]] = []
    index = ends[-1] if ends else -1
    while index >= 0:
        chain.append(pairs[index])
        index = previous[index]
    return chain[::-1]


def _groups(changes: Sequence[Block]) -> list[list[Block]]:
    groups = [[changes[0]]]
    for change in changes[1:]:
        if change[0] - groups[-1][-1][1] > 2 * CONTEXT:
            groups.append([])
        groups[-1].append(change)
    return groups


def _hunk(before: Sequence[str], after: Sequence[str], group: Sequence[Block]) -> Iterator[str]:
    first, last = group[0], group[-1]
    lead = min(CONTEXT, first[0])
    trail = min(CONTEXT, len(before) - last[1])
    old_start, old_end = first[0] - lead, last[1] + trail
    new_start, new_end = first[2] - lead, last[3] + trail
    yield f"@@ -{_range(old_start, old_end)} +{_range(new_start, new_end)} @@\n"
    at = old_start
    for a, b, c, d in group:
        yield from (f" {line}" for line in before[at:a])
        yield from (f"-{line}" for line in before[a:b])
        yield from (f"+{line}" for line in after[c:d])
        at = b
    yield from (f" {line}" for line in before[at:old_end])


def _range(start: int, end: int) -> str:
    length = end - start
    first = start + 1 if length else start
    return str(first) if length == 1 else f"{first},{length}"
