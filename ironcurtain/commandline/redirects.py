"""Redirections of a syntax tree: the files that they read and write, and here documents."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import msgspec

from ironcurtain.commandline.findings import Findings
from ironcurtain.commandline.grammar import text_of
from ironcurtain.commandline.model import UNKNOWN, SimpleCommand, Word
from ironcurtain.commandline.quoting import double_quoted
from ironcurtain.commandline.words import WordReader

if TYPE_CHECKING:
    from tree_sitter import Node

_READS = frozenset(("<", "<>"))
_WRITES = frozenset((">", ">>", ">|", "&>", "&>>", "<>", ">&"))
_DESCRIPTORS = frozenset((">&", "<&"))
_HERE_START = re.compile(r"(?P<quote>['\"]?)(?P<word>[\w.+-]+)(?P=quote)")
_HERE_PARTS = frozenset(
    ("<<", "<<-", "file_descriptor", "heredoc_start", "heredoc_body", "heredoc_end", "file_redirect")
)
_ANY_EXPANSION = re.compile(r"(?<!\\)(?:\\\\)*[`$]")


class Redirections(msgspec.Struct):
    """
    What the redirections of one command say.

    :ivar commands: those in substitutions.
    :ivar following: those that get the command's output: behind a here document and a pipe.
    :ivar words: arguments of the command that stand behind a redirection.
    :ivar stdin: what the command reads; ``None`` if they do not say.
    """

    commands: list[SimpleCommand] = msgspec.field(default_factory=list)
    following: list[SimpleCommand] = msgspec.field(default_factory=list)
    words: list[Word] = msgspec.field(default_factory=list)
    stdin: Word | None = None


class RedirectReader:
    """
    Reads the redirections of one text.

    :param visit: called with each node that may have commands.
    """

    def __init__(
        self,
        source: bytes,
        findings: Findings,
        words: WordReader,
        visit: Callable[[Node], list[SimpleCommand]],
    ) -> None:
        self._source, self._findings, self._words, self._visit = source, findings, words, visit

    def read(self, nodes: Iterable[Node]) -> Redirections:
        """:returns: what these nodes say together."""
        found = Redirections()
        before = len(self._findings.commands)
        for node in nodes:
            if node.type == "file_redirect":
                self._file(node, found)
            elif node.type == "herestring_redirect":
                found.stdin = self._words.word(node.children[-1])
            else:
                self._heredoc(node, found)
        found.commands = [command for command in self._findings.commands[before:] if command not in found.following]
        return found

    def _text(self, node: Node) -> str:
        return text_of(self._source, node)

    def _file(self, node: Node, found: Redirections) -> None:
        operator = next((child.type for child in node.children if not child.is_named), "")
        targets = [child for child in node.children if child.is_named and child.type != "file_descriptor"]
        if not targets and operator in (">&-", "<&-"):
            return
        if not targets or b"\n" in self._source[node.start_byte : targets[0].start_byte]:
            return
        # The grammar takes the arguments behind a target for more targets.
        words = self._words.words(targets)
        if not words:
            return
        target, *rest = words
        found.words += rest
        if targets[0].type == "process_substitution":
            found.stdin = Word(UNKNOWN) if operator == "<" else found.stdin
            return
        if operator in _DESCRIPTORS and re.fullmatch(r"[0-9]+-?|-", target.text):
            return
        if operator in _READS:
            self._findings.reads.append(target)
            found.stdin = Word(UNKNOWN)
        if operator in _WRITES:
            self._findings.writes.append(target)

    def _heredoc(self, node: Node, found: Redirections) -> None:
        parts = {child.type: child for child in node.children}
        start, end = parts.get("heredoc_start"), parts.get("heredoc_end")
        others = [child for child in node.children if child.type not in _HERE_PARTS]
        found.stdin = Word(UNKNOWN)
        name = None if start is None else _HERE_START.fullmatch(self._text(start))
        if start is not None and end is not None and name is not None:
            text = self._document(start, end, name["word"], "<<-" in parts)
            if text is not None and name["quote"]:
                found.stdin = Word.literal(text)
            elif text is not None and not _ANY_EXPANSION.search(text):
                found.stdin = Word(double_quoted(text))
        if name is None or not name["quote"]:
            for child in parts["heredoc_body"].children if "heredoc_body" in parts else ():
                self._visit(child)
        for child in node.children:
            if child.type == "file_redirect":
                self._file(child, found)
        self._behind(others, found)

    def _document(self, start: Node, end: Node, name: str, strips_tabs: bool) -> str | None:
        """:returns: the document, if the shell ends it in the same line as the grammar does."""
        source = self._source
        first = source.find(b"\n", start.end_byte) + 1
        last = source.find(b"\n", end.start_byte)
        *lines, closing = source[first : last if last >= 0 else len(source)].decode(errors="replace").split("\n")
        if strips_tabs:
            lines, closing = [line.lstrip("\t") for line in lines], closing.lstrip("\t")
        if closing != name or name in lines or end.end_byte < end.start_byte + len(name):
            return None
        return "".join(f"{line}\n" for line in lines)

    def _behind(self, others: Iterable[Node], found: Redirections) -> None:
        """Read what stands on the line behind the beginning of a here document."""
        for child in others:
            if child.type in ("pipeline", "|", "|&"):
                found.following += self._visit(child)
            elif child.is_named and child.type in ("command", "redirected_statement", "list", "negated_command"):
                self._visit(child)
            elif child.is_named:
                found.words += self._words.words([child])
