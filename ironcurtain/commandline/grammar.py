"""The syntax tree of a command line, by tree-sitter's grammar of bash."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser


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
