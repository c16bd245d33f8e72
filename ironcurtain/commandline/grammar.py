"""The syntax tree of a command line, by tree-sitter's grammar of bash."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_BLANK = re.compile(rb"(?:\s|\\\n)*")
_WITH_TEXT = frozenset(("string", "heredoc_body", "expansion"))
"""Nodes whose text is not all in their children."""


@cache
def _parser() -> Parser:
    import tree_sitter_bash  # both take time to load, and most commands of the command line need neither
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def parse(source: bytes) -> Node:
    """:returns: the root of the syntax tree of a text in UTF-8."""
    return _parser().parse(source).root_node


def text_of(source: bytes, node: Node) -> str:
    """:returns: the part of the source that a node covers."""
    return source[node.start_byte : node.end_byte].decode(errors="replace")


def first_error(source: bytes, root: Node) -> str | None:
    """:returns: the beginning of the first part that the grammar does not know; ``None`` if there is none."""
    nodes = [root] if root.has_error else []
    while nodes:
        node = nodes.pop()
        if node.is_error or node.is_missing:
            return text_of(source, node)[:40]
        nodes.extend(child for child in reversed(node.children) if child.has_error or child.is_missing)
    return "" if root.has_error else None


def left_out(source: bytes, root: Node) -> str | None:
    """:returns: a part of the text that is not blank and that the tree has not; ``None`` if there is none."""
    nodes = [root]
    gaps = [(0, root.start_byte), (root.end_byte, len(source))]
    while nodes:
        node = nodes.pop()
        children = node.children
        nodes.extend(children)
        if node.type not in _WITH_TEXT:
            gaps += [_gap(source, left, right) for left, right in pairwise(children)]
    return next(
        (source[start:end].decode(errors="replace") for start, end in gaps if not _BLANK.fullmatch(source[start:end])),
        None,
    )


def _gap(source: bytes, left: Node, right: Node) -> tuple[int, int]:
    start, end = left.end_byte, right.start_byte
    if right.type == "heredoc_body":
        end = max(start, min(end, source.find(b"\n", start)))
    return start, end
