"""Walks the syntax tree of a text and collects what it would run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol

from ironcurtain.commandline.findings import Findings
from ironcurtain.commandline.grammar import text_of
from ironcurtain.commandline.model import UNKNOWN, SimpleCommand, Word, Words, quoted
from ironcurtain.commandline.nodes import COMMANDS, LEAVES, REDIRECTS, SEQUENCES, WORDS
from ironcurtain.commandline.redirects import Redirections, RedirectReader
from ironcurtain.commandline.words import WordReader

if TYPE_CHECKING:
    from tree_sitter import Node

DEPTH_LIMIT = 80
"""Most nodes within each other; a person writes less than 20."""

Commands = list[SimpleCommand]


class Unwrap(Protocol):
    """Finds what a command with these words would run."""

    def __call__(self, words: Words, text: str, stdin: Word | None) -> Commands: ...


class Walker:
    """
    Walks one text.

    :param unwrap: called with each simple command.
    :param read: called with a text that is read as commands: what stands between backticks.
    :param stdin: what the commands read; ``None`` for the terminal.
    """

    def __init__(
        self, source: bytes, findings: Findings, unwrap: Unwrap, read: Callable[[str], Commands], stdin: Word | None
    ) -> None:
        self._source, self._findings, self._stdin = source, findings, stdin
        self._unwrap, self._read = unwrap, read
        self._depth = 0
        self._words = WordReader(source, findings, self.visit)
        self._redirects = RedirectReader(source, findings, self._words, self.visit)
        self._visitors: dict[str, Callable[[Node], Commands]] = {
            **dict.fromkeys(SEQUENCES, self._children),
            **dict.fromkeys(WORDS, self._word),
            **dict.fromkeys(LEAVES, self._leaf),
            **dict.fromkeys(COMMANDS, self._command),
            **dict.fromkeys(REDIRECTS, self._redirected),
            "redirected_statement": self._redirected,
            "comment": self._leaf,
            "list": self._list,
            "pipeline": self._pipeline,
            "variable_assignment": self._assignment,
            "function_definition": self._children,
            "command_substitution": self._substitution,
            "test_command": self._children,
            "expansion": self._expansion,
        }

    def visit(self, node: Node) -> Commands:
        """:returns: the commands below a node."""
        if self._depth >= DEPTH_LIMIT:
            self._findings.doubt("it is nested too deeply")
            return []
        self._depth += 1
        try:
            return self._visitors.get(node.type, self._children)(node)
        finally:
            self._depth -= 1

    def _text(self, node: Node) -> str:
        return text_of(self._source, node)

    def _children(self, node: Node) -> Commands:
        return [command for child in node.children for command in self.visit(child)]

    def _list(self, node: Node) -> Commands:
        return [command for each in _flattened(node) for command in self.visit(each)]

    def _word(self, node: Node) -> Commands:
        self._words.word(node)
        return self._leaf(node)

    def _leaf(self, node: Node) -> Commands:
        return []

    def _command(self, node: Node, redirections: Redirections | None = None) -> Commands:
        before = len(self._findings.commands)
        stdin = redirections.stdin if redirections else None
        words: list[Word] = []
        arguments: list[Node] = []
        for child in node.children:
            if child.type in REDIRECTS:
                prefix = self._redirects.read([child])
                stdin = stdin or prefix.stdin
                words += self._words.words(arguments) + prefix.words
                arguments = []
            elif child.type == "variable_assignment":
                word = self._assigned(child)
                words += [word] if words or arguments else []
            elif node.type != "command" and not child.is_named:
                words.append(Word.literal(self._text(child)))
            else:
                arguments += child.children if child.type == "command_name" else [child]
        words += self._words.words(arguments) + (redirections.words if redirections else [])
        inner = self._findings.commands[before:]
        if not words:
            return inner
        found = self._unwrap(tuple(words), self._text(node), stdin or self._stdin)
        self._findings.flow((inner, found))
        if any(child.type == "process_substitution" and self._text(child)[0] == ">" for child in node.children):
            self._findings.flow((found, inner))
        return inner + found

    def _redirected(self, node: Node) -> Commands:
        nodes = [node] if node.type in REDIRECTS else node.children
        found = self._redirects.read(child for child in nodes if child.type in REDIRECTS)
        others = [child for child in nodes if child.type not in REDIRECTS]
        if len(others) == 1 and others[0].type in COMMANDS:
            body = self._command(others[0], found)
        elif not others and found.words:
            body = self._unwrap(tuple(found.words), self._text(node), found.stdin)
        else:
            body = self._with_stdin(found.stdin or self._stdin, others)
        self._findings.flow((found.commands, body))
        self._findings.flow((body, found.commands))
        self._findings.flow((body, found.following))
        return found.commands + body + found.following

    def _with_stdin(self, stdin: Word | None, nodes: list[Node]) -> Commands:
        before, self._stdin = self._stdin, stdin
        found = [command for node in nodes for command in self.visit(node)]
        self._stdin = before
        return found

    def _pipeline(self, node: Node) -> Commands:
        stdin, stages = self._stdin, list[Commands]()
        for child in node.children:
            if child.is_named:
                stages.append(self._with_stdin(stdin, [child]))
            else:
                stdin = Word(UNKNOWN)
        self._findings.flow(stages)
        return [command for stage in stages for command in stage]

    def _assignment(self, node: Node) -> Commands:
        before = len(self._findings.commands)
        self._assigned(node)
        return self._findings.commands[before:]

    def _assigned(self, node: Node) -> Word:
        name, operator, *values = node.children
        value = "".join(map(self._assigned_value, values))
        if name.type == "subscript":
            self.visit(name)
        return Word(quoted(self._text(name) + self._text(operator)) + value)

    def _assigned_value(self, node: Node) -> str:
        if node.type != "array":
            return self._words.pattern(node)
        self.visit(node)
        return UNKNOWN

    def _substitution(self, node: Node) -> Commands:
        text = self._text(node).strip()
        if text.startswith("`") and "\\" in text:
            return self._read(re.sub(r"\\([$`\\])", r"\1", text[1:-1]))
        return self._children(node)

    def _expansion(self, node: Node) -> Commands:
        """Visit ``${...}`` and the words within it, which do not end at blanks."""
        found = Commands()
        for child in node.children:
            if child.type in WORDS:
                self._leaf(child)
            elif child.type == "concatenation":
                found += self._expansion(child)
            else:
                found += self.visit(child)
        return found


def _flattened(node: Node) -> Iterator[Node]:
    """:returns: the parts of a chain of ``&&`` and ``||``, which the grammar nests on its left side."""
    rest = [node]
    while rest:
        each = rest.pop()
        if each.type == "list":
            rest.extend(reversed(each.children))
        else:
            yield each
