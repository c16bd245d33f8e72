"""
The small grammar of lines that are understood whole, in bash, zsh and fish alike.

Such a line has simple commands, joined by ``;``, ``&&``, ``||``, ``|`` or the end of a line. Their words are literal,
with or without quotes, wildcards (``*``, ``?``, ``[...]``) or plain variables (``$x``, ``${x}``); ``<``, ``>``, ``>>``
and ``&>`` lead to files. There is nothing else: what the three shells, or their options, read in different ways is not
in it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

import msgspec

from ironcurtain.commandline.model import UNKNOWN, Word, Words, quoted
from ironcurtain.commandline.names import RESERVED

_BLANK = re.compile(r"(?:[ ]|(?<=[ ])\\\n)*")
_OPERATOR = re.compile(r"&&|\|\||[;\n]|\|(?![|&])")
_REDIRECTION = re.compile(r"(?P<number>[012]?)(?P<operator>>>|>|<)(?![<>&|!?(])[ ]*|(?P<both>&>)(?![>|!?])[ ]*")
_COPY = re.compile(r"[12]?>&[12](?=[ ;\n|]|\Z)")
_VARIABLE = re.compile(r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\}|\?)")
_LITERAL = re.compile(r"[A-Za-z0-9_./,:@%+=-]+")
_WILD = re.compile(r"\*(?!\*)|\?|\[\^?[\w.,-]*\]", re.ASCII)
_HOME = re.compile(r"~(?=/|[ ;\n|]|\Z)")
_REVISION = re.compile(r"[~^][0-9~^]*(?=[ ;\n|]|\Z)")
_ENTRY = re.compile(r"(?<=@)\{[0-9]+\}")
_LONE = re.compile(r"(?:\{\}|[\[\]=])(?=[ ;\n|]|\Z)")
_ESCAPE = re.compile(r"\\([ ;'\"()\[\]{}*?$&|<>#\\])")
_DOUBLE = re.compile(r"[^\"\\$`!]+")
_DOUBLE_ESCAPE = re.compile(r"\\([\"\\$])|\\(?![`\n\"\\$])")
_NEGATION = re.compile(r"!=?(?=[ ]|\Z)")
_END = re.compile(r"[ ;\n|]|\Z")
_NAME = re.compile(r"(?:~/)?[\w./][\w./+,:@-]*|\[", re.ASCII)
_SPLITS = re.compile(r"[^\w./-]")


class NotPlain(ValueError):
    """A line is not of the grammar; the message says where."""


class PlainCommand(msgspec.Struct, frozen=True):
    """
    One command.

    :param text: as written.
    :param reads: the files that its redirections read.
    :param writes: the files that they write.
    """

    words: Words
    text: str
    reads: Words = ()
    writes: Words = ()


Pipeline = tuple[PlainCommand, ...]


def read_plain(
    text: str, variables: Mapping[str, str], shell: str = "bash", pattern: bool = False
) -> tuple[Pipeline, ...]:
    """
    :param text: one or more lines.
    :param variables: the variables whose values are known.
    :param shell: ``bash``, ``zsh`` or ``fish``; others are read as bash.
    :param pattern: whether the names of commands can have wildcards.
    :returns: the pipelines of the line, in order.
    :raises NotPlain: it is not all of the grammar.
    """
    return _Scanner(text, variables, shell, pattern).line()


class _Scanner:
    def __init__(self, text: str, variables: Mapping[str, str], shell: str, pattern: bool) -> None:
        self._text, self._variables, self._shell, self._pattern = text, variables, shell, pattern
        self._at = 0

    def line(self) -> tuple[Pipeline, ...]:
        pipelines: list[Pipeline] = []
        stages: list[PlainCommand] = []
        joined = False  # whether a command has to follow
        while True:
            self._blank()
            if joined or self._peek() == "\n":
                self._newlines()
            if self._at == len(self._text) and not joined:
                return tuple(pipelines)
            stages.append(self._command())
            self._blank()
            operator = self._take(_OPERATOR)
            joined = operator in ("|", "&&", "||")
            if operator != "|":
                pipelines.append(tuple(stages))
                stages = []
            if operator is None:
                return tuple(pipelines)

    def _newlines(self) -> None:
        while self._peek() == "\n":
            self._at += 1
            self._blank()

    def _command(self) -> PlainCommand:
        start = self._at
        words: list[Word] = []
        reads: list[Word] = []
        writes: list[Word] = []
        while self._at < len(self._text) and _OPERATOR.match(self._text, self._at) is None:
            if words and self._take(_COPY) is not None:
                pass
            elif words and (found := _REDIRECTION.match(self._text, self._at)) is not None:
                self._at = found.end()
                target = self._word()
                if target.is_glob or (found["operator"] == "<" and found["number"]):
                    raise self._wrong()
                (reads if found["operator"] == "<" else writes).append(target)
            else:
                words.append(self._name() if not words else self._word())
            self._blank()
        if not words:
            raise self._wrong()
        return PlainCommand(tuple(words), self._text[start : self._at].strip(), tuple(reads), tuple(writes))

    def _name(self) -> Word:
        start = self._at
        word = self._word()
        written = self._text[start : self._at]
        if self._pattern:
            return word
        if not word.known or word.is_glob or "\\" in written or _NAME.fullmatch(word.text) is None:
            self._at = start
            raise NotPlain(f"the name of a command is not plain: {written[:40]!r}")
        if word.text in RESERVED - {"time", "["} or word.text in ("-", "."):
            raise NotPlain(f"{word.text!r} is more than a simple command")
        return word

    def _word(self) -> Word:
        start, found = self._at, ""
        while _END.match(self._text, self._at) is None:
            part = self._part(start)
            if part is None:
                raise self._wrong()
            found += part
        if self._at == start:
            raise self._wrong()
        return Word(found)

    def _part(self, start: int) -> str | None:
        """:returns: the pattern of the next part of a word."""
        character, first = self._text[self._at], self._at == start
        if first and (lone := self._take(_LONE)) is not None:
            return quoted(lone)
        if (literal := self._take(_LITERAL)) is not None:
            return None if first and literal[0] in "=%" else literal
        if character == "'":
            return self._single()
        if character == '"':
            return self._double()
        if character == "$":
            return self._variable(False)
        if (escape := _ESCAPE.match(self._text, self._at)) is not None:
            self._at = escape.end()
            return quoted(escape[1])
        if (wild := self._take(_WILD)) is not None:
            return wild
        if first and (self._take(_HOME) is not None):
            return "~"
        if first and ((negation := self._take(_NEGATION)) is not None):
            return quoted(negation)
        if not first and (entry := self._take(_ENTRY)) is not None:
            return "*" if self._shell == "zsh" else quoted(entry)
        return self._revision(start) or self._letter(character)

    def _revision(self, start: int) -> str | None:
        """As in git's ``HEAD~2``: with ``extended_glob`` of zsh a wildcard."""
        if self._text[start : self._at].endswith(("=", ":")):
            return None
        mark = self._take(_REVISION) if self._at > start else None
        if mark is None:
            return None
        return "*" if self._shell == "zsh" else quoted(mark)

    def _letter(self, character: str) -> str | None:
        if character.isascii() or not character.isalnum():
            return None
        self._at += 1
        return quoted(character)

    def _single(self) -> str | None:
        end = self._text.find("'", self._at + 1)
        inner = self._text[self._at + 1 : end]
        if end < 0 or not _is_printable(inner):
            return None
        if re.search("!(?![ =])", inner) and self._shell != "fish" and re.search(r'["\n\\]', self._text):
            return None  # the history is looked up before quotes are understood
        if (self._shell == "fish" and re.search(r"\\(?:\\|\Z)", inner)) or (
            self._shell == "zsh" and self._text[end + 1 : end + 2] == "'"
        ):
            return None
        self._at = end + 1
        return quoted(inner)

    def _double(self) -> str | None:
        found = ""
        self._at += 1
        while self._peek() not in ('"', ""):
            if (literal := self._take(_DOUBLE)) is not None:
                if not _is_printable(literal):
                    return None
                found += quoted(literal)
            elif (escape := _DOUBLE_ESCAPE.match(self._text, self._at)) is not None:
                self._at = escape.end()
                found += quoted(escape[1] or "\\")
            elif (variable := self._variable(True)) is not None:
                found += variable
            else:
                return None
        if not self._peek():
            return None
        self._at += 1
        return found

    def _variable(self, in_quotes: bool) -> str | None:
        if (found := _VARIABLE.match(self._text, self._at)) is None:
            return None
        following = self._text[found.end() : found.end() + 1]
        if following in ("[", "(") or (following == ":" and self._shell == "zsh") or not following.isascii():
            return None
        self._at = found.end()
        value = self._variables.get(found[1] or found[2] or "?")
        if value is None or not (in_quotes or self._pattern or _SPLITS.search(value) is None):
            return UNKNOWN
        return quoted(value)

    def _blank(self) -> None:
        self._take(_BLANK)

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self, expression: re.Pattern[str]) -> str | None:
        if (found := expression.match(self._text, self._at)) is None:
            return None
        self._at = found.end()
        return found[0]

    def _wrong(self) -> NotPlain:
        rest = self._text[self._at :].strip()[:40]
        return NotPlain(f"it is more than simple commands near {rest!r}" if rest else "it ends too early")


def _is_printable(text: str) -> bool:
    """:returns: whether a text has no characters that line editors, shells or people may take for others."""
    return not any(unicodedata.category(character)[0] == "C" for character in text if character != "\n")
