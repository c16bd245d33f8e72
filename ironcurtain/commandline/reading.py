"""Reads command lines: parses them, and unwraps what they run until nothing is left to unwrap."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ironcurtain.commandline.dialects import interactive_doubts, set_by_command, set_by_text
from ironcurtain.commandline.findings import Findings
from ironcurtain.commandline.grammar import first_error, left_out, parse
from ironcurtain.commandline.model import UNKNOWN, CommandLine, SimpleCommand, Word, Words, basename
from ironcurtain.commandline.names import INTERPRETERS, RESERVED, SHELLS, names
from ironcurtain.commandline.shells import SHELL_COMMANDS, reads_stdin
from ironcurtain.commandline.tree import HIDDEN, Commands, Walker
from ironcurtain.commandline.wrappers import WRAPPERS, Inner, Unwrapper

SIZE_LIMIT = 32 * 1024
"""Most bytes of a command line (UTF-8)."""

SIGN_LIMIT = 4000
"""Most operators, brackets and the like in a text: with more, parsing what is wrong can take seconds."""

WRAPPER_LIMIT = 12
"""Most commands around a command."""

_UNWRAPPERS: dict[str, Unwrapper] = {**WRAPPERS, **SHELL_COMMANDS}
_EVALUATING = names(
    "let unset read test [ declare typeset export local readonly mapfile readarray getopts wait printf set"
)
"""Builtins of bash that evaluate substitutions in the subscripts of the names that they get."""

_SIGNS = re.compile(r"[^\w\s./,:-]")
_GLUED = re.compile(r"\S\\\n(?=\S)|(?:^|\n)\\\n")


def read_command(text: str, variables: Mapping[str, str] | None = None, shell: str = "bash") -> CommandLine:
    """
    Read what a line of shell would run. It never raises an exception: what it cannot read is a doubt.

    :param text: one or more lines.
    :param variables: variables with the values that they have before the line runs.
    :param shell: the shell that the user types it into: ``bash``, ``zsh`` or ``fish``.
    """
    known = {
        name: value
        for name, value in (variables or {}).items()
        if not re.search(rf"(?<![${{\w]){re.escape(name)}\b|[${{]{re.escape(name)}\s*:?[=]", text)
    }
    findings = Findings(known, shell)
    findings.doubt(*interactive_doubts(text, shell))
    _Reader(findings).text(text, (), None)
    return findings.result()


def read_without_unwrapping(text: str, variables: Mapping[str, str]) -> CommandLine:
    """
    Read a line whose commands stand for themselves: ``sudo ls`` is one command with two words.

    :param text: as for :func:`read_command`.
    :param variables: as for :func:`read_command`.
    """
    findings = Findings(variables)
    _Reader(findings, unwraps=False).text(text, (), None)
    return findings.result()


class _Reader:
    """Reads a text and the texts within it."""

    def __init__(self, findings: Findings, unwraps: bool = True) -> None:
        self._findings, self._unwraps = findings, unwraps

    def text(self, text: str, wrappers: tuple[Words, ...], stdin: Word | None) -> Commands:
        """:returns: the commands of a text that a shell reads."""
        source = self._source(text)
        if source is None:
            return []
        for variable in set_by_text(text, self._findings.shell):
            self._findings.doubt(f"{variable} changes what commands do")
        root = parse(source)
        if (error := first_error(source, root)) is not None or (error := left_out(source, root)) is not None:
            self._findings.doubt(f"it is not understood near {error!r}" if error.strip() else "it is not understood")
        return Walker(
            source,
            self._findings,
            lambda words, written, stdin: self._unwrap(words, written, stdin, wrappers),
            lambda inner: self.text(inner, wrappers, None) if len(wrappers) < WRAPPER_LIMIT else [],
            stdin,
        ).visit(root)

    def _source(self, text: str) -> bytes | None:
        if "\\\n" in text:
            if not re.search(r"['#]|<<|\\\\", text):
                text = text.replace("\\\n", "")
            elif _GLUED.search(text):
                self._findings.doubt("a backslash at the end of a line joins words")
        try:
            source = text.encode()
        except UnicodeEncodeError:
            source = b"\0"
        if b"\0" in source:
            self._findings.doubt("it has characters that a shell cannot read")
            return None
        if len(source) > SIZE_LIMIT:
            self._findings.doubt(f"it is longer than {SIZE_LIMIT} bytes")
            return None
        if len(_SIGNS.findall(text)) > SIGN_LIMIT:
            self._findings.doubt(f"it has more than {SIGN_LIMIT} operators and brackets")
            return None
        return source

    def _unwrap(self, words: Words, text: str, stdin: Word | None, wrappers: tuple[Words, ...]) -> Commands:
        """:returns: the command itself, or what it runs."""
        command = SimpleCommand(words, wrappers, text)
        if not self._unwraps:
            return self._findings.add(command)
        name = self._name(words)
        if name is None or len(wrappers) >= WRAPPER_LIMIT:
            if name is not None:
                self._findings.doubt("it has too many commands within each other")
            return self._findings.add(command)
        self._check(name, words)
        unwrapper = _UNWRAPPERS.get(name)
        inner = unwrapper(words) if unwrapper is not None else Inner()
        self._findings.doubt(*inner.doubts)
        found = self._inner(inner, (*wrappers, words), None if name == "xargs" else stdin)
        if stdin is not None and name in SHELLS | INTERPRETERS and not inner.texts and reads_stdin(words):
            found += self._program(name, words, stdin, wrappers)
        return found or self._findings.add(command)

    def _name(self, words: Words) -> str | None:
        first = words[0]
        if not first.known or first.is_glob or (first.pattern.startswith("~") and "/" not in first.pattern):
            self._findings.doubt("the text does not show which command runs")
            return None
        if first.pattern in RESERVED and first.pattern not in _UNWRAPPERS:
            self._findings.doubt(f"{first.pattern!r} stands in an unusual place")
        if first.pattern.startswith(("=", "^", "%")):
            self._findings.doubt(f"{first.text!r} has another meaning in some shells")
        return basename(first).lower()

    def _check(self, name: str, words: Words) -> None:
        for variable in set_by_command(name, words, self._findings.shell):
            self._findings.doubt(f"{variable} changes what commands do")
        if name in ("source", "."):
            self._findings.doubt(f"{name} runs a file in the shell itself")
        elif name in ("alias", "abbr") and len(words) > 1:
            self._findings.doubt("an alias changes what commands do")
        elif name in ("coproc", "parallel"):
            self._findings.doubt(f"what {name} runs is not known")
        elif name in _EVALUATING and any(HIDDEN.search(word.text) for word in words[1:]):
            self._findings.doubt(f"{name} may run a substitution in its arguments")

    def _inner(self, inner: Inner, wrappers: tuple[Words, ...], stdin: Word | None) -> Commands:
        found: Commands = []
        for words in inner.commands:
            found += self._unwrap(words, " ".join(word.text for word in words), stdin, wrappers)
        for text in inner.texts:
            if not text.known:
                self._findings.doubt(f"the text that {basename(wrappers[-1][0])} runs is not known")
            if text.pattern != UNKNOWN:
                found += self._other_shell(inner.shell, text.filled("${_}"), wrappers, stdin)
        return found

    def _other_shell(self, shell: str, text: str, wrappers: tuple[Words, ...], stdin: Word | None) -> Commands:
        before, self._findings.shell = self._findings.shell, shell
        found = self.text(text, wrappers, stdin)
        self._findings.shell = before
        return found

    def _program(self, name: str, words: Words, stdin: Word, wrappers: tuple[Words, ...]) -> Commands:
        """:returns: the commands that a shell reads from its input."""
        if stdin.known and name in SHELLS:
            return self._other_shell("bash", stdin.text, (*wrappers, words), None)
        self._findings.doubt(f"the program that {name} reads from its input is not known")
        return []
