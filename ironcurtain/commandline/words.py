"""The words of a syntax tree, without their quotes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ironcurtain.commandline.findings import Findings
from ironcurtain.commandline.grammar import text_of
from ironcurtain.commandline.model import UNKNOWN, Word, quoted
from ironcurtain.commandline.quoting import ansi_c, bare, braces, double_quoted

if TYPE_CHECKING:
    from tree_sitter import Node

EXPANSIONS = frozenset(
    ("simple_expansion", "expansion", "command_substitution", "process_substitution", "arithmetic_expansion")
)
"""The nodes that the shell replaces by a text when the command runs."""

_VARIABLE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})")
_OPEN_BRACE = re.compile(r"(?<!\\)(?:\\\\)*\{")
_FISH_ESCAPE = re.compile(r"(?:[^\\]|^)(?:\\\\)*\\[abefnrtvxXuUc0-7]")


class WordReader:
    """
    Reads the words of one text.

    :param visit: called with each expansion, to find the commands within it.
    """

    def __init__(self, source: bytes, findings: Findings, visit: Callable[[Node], object]) -> None:
        self._source, self._findings, self._visit = source, findings, visit
        self._readers: dict[str, Callable[[Node], str]] = {
            "word": self._bare,
            "number": self._bare,
            "variable_name": self._bare,
            "special_variable_name": self._bare,
            "test_operator": self._bare,
            "brace_expression": self._bare,
            "==": self._bare,
            "=~": self._bare,
            "$": self._bare,
            "string": self._string,
            "raw_string": self._raw_string,
            "ansi_c_string": self._ansi_c,
            "concatenation": self._concatenation,
            **dict.fromkeys(EXPANSIONS, self._expansion),
        }

    def words(self, nodes: Sequence[Node]) -> list[Word]:
        """
        :param nodes: the arguments of a command; the grammar sometimes divides a word between two of them.
        :returns: the words that they stand for, with their braces expanded.
        """
        found: list[Word] = []
        start = 0
        for index, node in enumerate(nodes, 1):
            if index == len(nodes) or nodes[index].start_byte != node.end_byte:
                found += self._braces(nodes[start:index])
                start = index
        return found

    def _braces(self, nodes: Sequence[Node]) -> list[Word]:
        patterns = list(map(self.pattern, nodes))
        if len(nodes) > 1 and "$" in patterns:  # $"..." is a text to translate
            patterns = [UNKNOWN]
        pattern = "".join(patterns)
        if self._findings.shell == "fish" and _OPEN_BRACE.search(pattern) and "$" in "".join(map(self._text, nodes)):
            return [Word(UNKNOWN)]  # fish takes away braces around a single variable
        found = braces(pattern)
        if found is None:
            return [Word(UNKNOWN)]
        kept = found if len(found) == 1 else [each for each in found if each]
        return [_without_accounts(Word(each)) for each in kept]

    def word(self, node: Node) -> Word:
        """:returns: the word that a node stands for, where braces mean nothing."""
        return _without_accounts(Word(self.pattern(node)))

    def pattern(self, node: Node) -> str:
        """:returns: the pattern of the word that a node stands for."""
        reader = self._readers.get(node.type)
        if reader is None:
            self._visit(node)
            return UNKNOWN
        return reader(node)

    def _text(self, node: Node) -> str:
        return text_of(self._source, node)

    def _bare(self, node: Node) -> str:
        text = self._text(node)
        if self._findings.shell == "fish" and _FISH_ESCAPE.search(text):
            return UNKNOWN
        pattern = bare(text)
        return UNKNOWN if pattern is None else pattern

    def _raw_string(self, node: Node) -> str:
        text = self._text(node)[1:-1]
        if self._findings.shell == "fish" and re.search(r"\\(?:\\|$)", text):
            return UNKNOWN
        return quoted(text)

    def _ansi_c(self, node: Node) -> str:
        text = ansi_c(self._text(node)[2:-1])
        return UNKNOWN if text is None else quoted(text)

    def _string(self, node: Node) -> str:
        found, end = "", node.start_byte + 1
        for child in node.children:
            if child.type in EXPANSIONS:
                start = self._source.index(b"`" if self._is_backtick(child) else b"$", child.start_byte)
                found += double_quoted(self._source[end:start].decode(errors="replace"))
                found += self.pattern(child)
                end = child.end_byte
        return found + double_quoted(self._source[end : node.end_byte - 1].decode(errors="replace"))

    def _is_backtick(self, node: Node) -> bool:
        return self._source[node.start_byte : node.end_byte].lstrip()[:1] == b"`"

    def _concatenation(self, node: Node) -> str:
        found, end = "", node.start_byte
        if self._text(node.children[0])[:1] == "~" and "/" not in self._text(node.children[0]):
            found = "\\" if node.children[1].type in ("string", "raw_string", "ansi_c_string") else ""
        for child in node.children:
            if child.start_byte != end:
                return UNKNOWN
            found += self.pattern(child)
            end = child.end_byte
        return found

    def _expansion(self, node: Node) -> str:
        self._visit(node)
        if (variable := _VARIABLE.fullmatch(self._text(node).lstrip())) is not None:
            value = self._findings.variables.get(variable[1] or variable[2])
            if value is not None:
                return quoted(value)
        return UNKNOWN


def _without_accounts(word: Word) -> Word:
    """:returns: the word, unknown if it begins with the home directory of another account, or the like."""
    foreign = word.pattern.startswith("~") and word.pattern[1:2] not in ("", "/")
    return Word(UNKNOWN) if foreign else word
