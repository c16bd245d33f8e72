"""
Reads command lines: parses them, and unwraps what they run until nothing is left to unwrap.

A text of the small grammar of :mod:`ironcurtain.commandline.plain` is read by it. Any other is a doubt, and the
grammar of bash shows what it would run as far as that can be told, so that what is denied is found there, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ironcurtain.commandline.builtins import OWN, changes_shell
from ironcurtain.commandline.findings import Findings
from ironcurtain.commandline.grammar import parse
from ironcurtain.commandline.model import UNKNOWN, CommandLine, SimpleCommand, Word, Words, basename
from ironcurtain.commandline.names import INTERPRETERS, SHELLS
from ironcurtain.commandline.plain import NotPlain, Pipeline, read_plain
from ironcurtain.commandline.shells import SHELL_COMMANDS, reads_stdin
from ironcurtain.commandline.tree import Commands, Walker
from ironcurtain.commandline.wrappers import WRAPPERS, Inner, Unwrapper

SIZE_LIMIT = 32 * 1024
"""Most bytes of a command line (UTF-8)."""

SIGN_LIMIT = 4000
"""Most operators, brackets and the like in a text: with more, parsing what is wrong can take seconds."""

WRAPPER_LIMIT = 12
"""Most commands around a command."""

_UNWRAPPERS: dict[str, Unwrapper] = {**WRAPPERS, **SHELL_COMMANDS}
_SIGNS = re.compile(r"[^\w\s./,:-]")


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
    _Reader(findings).text(text, (), None)
    return findings.result()


def read_without_unwrapping(text: str, variables: Mapping[str, str]) -> CommandLine:
    """
    Read a line of the small grammar whose commands stand for themselves: ``sudo ls`` is one command with two words,
    and its name can have wildcards.

    :param text: as for :func:`read_command`.
    :param variables: as for :func:`read_command`.
    :raises NotPlain: it is not of the grammar.
    """
    findings = Findings()
    for pipeline in read_plain(text, variables, pattern=True):
        findings.flow([findings.add(SimpleCommand(each.words, (), each.text)) for each in pipeline])
        findings.redirect(pipeline)
    return findings.result()


class _Reader:
    """Reads a text and the texts within it."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings

    def text(self, text: str, wrappers: tuple[Words, ...], stdin: Word | None) -> Commands:
        """:returns: the commands of a text that a shell reads."""
        source = self._source(text)
        if source is None:
            return []
        try:
            return self._plain(read_plain(text, self._findings.variables, self._findings.shell), wrappers, stdin)
        except NotPlain as e:
            self._findings.doubt(str(e))
            self._findings.changes_shell |= not wrappers
        return Walker(
            source,
            self._findings,
            lambda words, written, stdin: self._unwrap(words, written, stdin, wrappers),
            lambda inner: self.text(inner, wrappers, None) if len(wrappers) < WRAPPER_LIMIT else [],
            stdin,
        ).visit(parse(source))

    def _plain(self, pipelines: tuple[Pipeline, ...], wrappers: tuple[Words, ...], stdin: Word | None) -> Commands:
        found: Commands = []
        for pipeline in pipelines:
            stages, given = list[Commands](), stdin
            for each in pipeline:
                stages.append(self._unwrap(each.words, each.text, Word(UNKNOWN) if each.reads else given, wrappers))
                given = Word(UNKNOWN)
            self._findings.flow(stages)
            self._findings.redirect(pipeline)
            found += [command for stage in stages for command in stage]
        return found

    def _source(self, text: str) -> bytes | None:
        if "\\\n" in text and not re.search(r"['#]|<<|\\\\", text):
            text = text.replace("\\\n", "")
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
        name = self._name(words)
        if name is None or len(wrappers) >= WRAPPER_LIMIT:
            if name is not None:
                self._findings.doubt("it has too many commands within each other")
            return self._findings.add(command)
        if changes_shell(words):
            self._findings.changes_shell |= all(around[0].text in OWN for around in wrappers)
            self._findings.doubt(f"{words[0].text} may change the shell, or run what its arguments say")
        unwrapper = _UNWRAPPERS.get(name)
        inner = unwrapper(words) if unwrapper is not None else Inner()
        self._findings.doubt(*inner.doubts)
        if unwrapper is not None and name not in ("find", "gfind") and _divides(words, inner):
            self._findings.doubt(f"the text does not show all words of {name}, nor which of them it runs")
        found = self._inner(inner, (*wrappers, words), None if name == "xargs" else stdin)
        if stdin is not None and name in SHELLS | INTERPRETERS and not inner.texts and reads_stdin(words):
            found += self._program(name, words, stdin, wrappers)
        return found or self._findings.add(command)

    def _name(self, words: Words) -> str | None:
        first = words[0]
        if not first.known or first.is_glob or (first.pattern.startswith("~") and "/" not in first.pattern):
            self._findings.doubt("the text does not show which command runs")
            return None
        return basename(first).lower()

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


def _divides(words: Words, inner: Inner) -> bool:
    """:returns: whether what a variable or a wildcard stands for can move the place where the inner command begins."""
    before = words
    if len(inner.commands) == 1 and words[-len(inner.commands[0]) :] == inner.commands[0]:
        before = words[: -len(inner.commands[0])]
    return any(word.plain is None for word in before)
