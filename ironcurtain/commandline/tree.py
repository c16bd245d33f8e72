"""Walks the syntax tree of a text and collects what it would run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol

from ironcurtain.commandline.findings import Findings
from ironcurtain.commandline.grammar import text_of
from ironcurtain.commandline.model import UNKNOWN, SimpleCommand, Word, Words, quoted
from ironcurtain.commandline.names import changes_commands, names
from ironcurtain.commandline.programs import is_a_command
from ironcurtain.commandline.redirects import Redirections, RedirectReader
from ironcurtain.commandline.words import WordReader

if TYPE_CHECKING:
    from tree_sitter import Node

DEPTH_LIMIT = 80
"""Most nodes within each other; a person writes less than 20."""

Commands = list[SimpleCommand]

_SEQUENCES = names(
    "program compound_statement subshell do_group if_statement elif_clause else_clause while_statement "
    "for_statement c_style_for_statement case_statement case_item negated_command test_command binary_expression "
    "unary_expression ternary_expression postfix_expression parenthesized_expression subscript array "
    "variable_assignments process_substitution arithmetic_expansion simple_expansion concatenation string"
)
_WORDS = ("word", "raw_string", "ansi_c_string")
_LEAVES = names(
    "brace_expression extglob_pattern number regex special_variable_name string_content test_operator "
    "variable_name heredoc_content"
)
_COMMANDS = ("command", "declaration_command", "unset_command")
_REDIRECTS = ("file_redirect", "herestring_redirect", "heredoc_redirect")

HIDDEN = re.compile(r"`|\$\(")
"""A substitution in a text where the shell does not make one, but may when it evaluates the text later."""


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
            **dict.fromkeys(_SEQUENCES, self._children),
            **dict.fromkeys(_WORDS, self._word),
            **dict.fromkeys(_LEAVES, self._leaf),
            **dict.fromkeys(_COMMANDS, self._command),
            **dict.fromkeys(_REDIRECTS, self._redirected),
            "redirected_statement": self._redirected,
            "comment": self._comment,
            "list": self._list,
            "pipeline": self._pipeline,
            "variable_assignment": self._assignment,
            "function_definition": self._function,
            "command_substitution": self._substitution,
            "expansion": self._expansion,
        }

    def visit(self, node: Node) -> Commands:
        """:returns: the commands below a node."""
        if self._depth >= DEPTH_LIMIT:
            self._findings.doubt("it is nested too deeply")
            return []
        self._depth += 1
        try:
            visitor = self._visitors.get(node.type)
            if visitor is not None:
                return visitor(node)
            if node.is_named:
                self._not_understood(node)
            return self._children(node)
        finally:
            self._depth -= 1

    def _text(self, node: Node) -> str:
        return text_of(self._source, node)

    def _not_understood(self, node: Node) -> None:
        if not node.is_error:
            self._findings.doubt(f"{self._text(node)[:80]!r} is not understood")

    def _children(self, node: Node) -> Commands:
        return [command for child in node.children for command in self.visit(child)]

    def _list(self, node: Node) -> Commands:
        return [command for each in _flattened(node) for command in self.visit(each)]

    def _word(self, node: Node) -> Commands:
        self._words.word(node)
        return self._leaf(node)

    def _leaf(self, node: Node) -> Commands:
        if HIDDEN.search(self._text(node)):
            self._not_understood(node)
        return []

    def _comment(self, node: Node) -> Commands:
        if self._findings.shell == "zsh":
            self._findings.doubt("zsh may run what looks like a comment")
        return []

    def _command(self, node: Node, redirections: Redirections | None = None) -> Commands:
        before = len(self._findings.commands)
        words: list[Word] = []
        for child in node.children:
            if child.type in _REDIRECTS:
                prefix = self._redirects.read([child])
                words += prefix.words
                redirections = redirections or Redirections()
                redirections.stdin = redirections.stdin or prefix.stdin
            else:
                words += self._command_part(child, is_first=not words, is_declaration=node.type != "command")
        words += redirections.words if redirections else []
        inner = self._findings.commands[before:]
        if not words:
            return inner
        stdin = redirections.stdin if redirections and redirections.stdin else self._stdin
        found = self._unwrap(tuple(words), self._text(node), stdin)
        self._findings.flow((inner, found))
        if any(child.type == "process_substitution" and self._text(child)[0] == ">" for child in node.children):
            self._findings.flow((found, inner))
        return inner + found

    def _command_part(self, node: Node, is_first: bool, is_declaration: bool) -> list[Word]:
        if node.type == "command_name":
            return self._words.words(node.children[0]) if node.children else []
        if node.type == "variable_assignment":
            word = self._assigned(node)
            return [] if is_first else [word]
        if is_declaration and not node.is_named:
            return [Word.literal(self._text(node))]
        return self._words.words(node)

    def _redirected(self, node: Node) -> Commands:
        nodes = [node] if node.type in _REDIRECTS else node.children
        found = self._redirects.read(child for child in nodes if child.type in _REDIRECTS)
        others = [child for child in nodes if child.type not in _REDIRECTS]
        if len(others) == 1 and others[0].type in _COMMANDS:
            body = self._command(others[0], found)
        elif not others and found.words:
            body = self._unwrap(tuple(found.words), self._text(node), found.stdin)
        else:
            body = self._with_stdin(found.stdin or self._stdin, others)
            if found.words:
                self._not_understood(node)
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
        variable = self._text(name).partition("[")[0]
        if changes_commands(variable):
            self._findings.doubt(f"{variable} changes what commands do")
        if HIDDEN.search(Word(value).text):
            self._findings.doubt(f"the value of {variable} may be run")
        return Word(quoted(self._text(name) + self._text(operator)) + value)

    def _assigned_value(self, node: Node) -> str:
        if node.type != "array":
            return self._words.pattern(node)
        self.visit(node)
        return UNKNOWN

    def _function(self, node: Node) -> Commands:
        found = Commands()
        for child in node.children:
            if child.type == "word":
                name = self._words.word(child).text
                self._findings.functions.add(name)
                if is_a_command(name):
                    self._findings.doubt(f"a function takes the place of {name}")
            else:
                found += self.visit(child)
        return found

    def _substitution(self, node: Node) -> Commands:
        text = self._text(node).strip()
        if text.startswith("`") and "\\" in text:
            if '\\"' in text:
                self._not_understood(node)
            return self._read(re.sub(r"\\([$`\\])", r"\1", text[1:-1]))
        return self._children(node)

    def _expansion(self, node: Node) -> Commands:
        """Visit ``${...}`` and the words within it, which do not end at blanks."""
        if "@P" in self._text(node):
            self._not_understood(node)
        found = Commands()
        for child in node.children:
            if child.type in _WORDS:
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
