"""The sentences of a constitution."""

from __future__ import annotations

import re

SENTENCES_LIMIT = 200
"""Maximum number of sentences."""

_HEADING = re.compile(r"#{1,6}\s|(?:=+|-+|\*\s*\*\s*\*)\s*\Z")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+")
_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9\"'`~/])")


def sentences(text: str) -> tuple[str, ...]:
    """
    :param text: Markdown.
    :returns: its sentences in order, without headings. Each item of a list begins a new one.
    """
    blocks: list[str] = []
    joined = False
    for line in text.splitlines():
        if not line.strip() or _HEADING.match(line.strip()):
            joined = False
        elif joined and not _ITEM.match(line):
            blocks[-1] += f" {line.strip()}"
        else:
            blocks.append(_ITEM.sub("", line, count=1).strip())
            joined = True
    return tuple(part for block in blocks for part in _END.split(block) if part)
