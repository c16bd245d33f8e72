"""The syntax tree of a command line, by tree-sitter's grammar of bash."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tree_sitter import Node, Parser


_MASK: Final = bytes(byte if byte < 0x80 else 0x01 for byte in range(256))
"""
What the grammar gets for each byte of the source. Its scanner looks characters up in a table of 256 (``isspace``), so
that ``{`` before one of a higher number reads outside of it, which can end this process. To a shell such characters are
a part of a word but not of a name, as is the control character that stands for each of their bytes.
"""


@cache
def _parser() -> Parser:
    import tree_sitter_bash  # both take time to load, and most commands of the command line need neither
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def parse(source: bytes) -> Node:
    """:returns: the root of the syntax tree of a text in UTF-8. Its positions are those of the text."""
    return _parser().parse(source.translate(_MASK)).root_node


def text_of(source: bytes, node: Node) -> str:
    """:returns: the part of the source that a node covers."""
    return source[node.start_byte : node.end_byte].decode(errors="replace")
