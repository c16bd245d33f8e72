"""Find the variables that a program makes, to tell the model which of them are gone."""

from __future__ import annotations

import io
import keyword
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_BLOCKS = frozenset(("if", "elif", "else", "while", "try", "except", "finally", "with", "for", "match", "case"))
_SKIPPED = frozenset((tokenize.COMMENT, tokenize.NL, tokenize.ENCODING, tokenize.TYPE_COMMENT))


def assigned_names(code: str) -> set[str]:
    """
    :param code: any text.
    :returns: the names that a program sets outside of functions, as far as it can be read.
    """
    found: set[str] = set()
    function: int | None = None
    for level, line in _lines(code):
        if function is not None and level > function:
            continue
        function = None
        words = line[1:] if line[0] == "async" else line
        if words[0] in ("def", "class"):
            function = level
            found.update(words[1:2])
        else:
            found.update(_names(words))
    return {name for name in found if name.isidentifier() and not keyword.iskeyword(name)}


def _lines(code: str) -> Iterator[tuple[int, list[str]]]:
    """:returns: each logical line as its words, with its level of indentation."""
    level, line = 0, list[str]()
    try:
        for token in tokenize.generate_tokens(io.StringIO(code).readline):
            if token.type == tokenize.INDENT:
                level += 1
            elif token.type == tokenize.DEDENT:
                level -= 1
            elif token.type in (tokenize.NEWLINE, tokenize.ENDMARKER):
                if line:
                    yield level, line
                line = []
            elif token.type == tokenize.OP or token.type == tokenize.NAME:
                line.append(token.string)
            elif token.type not in _SKIPPED:
                line.append("0")  # a literal
    except (tokenize.TokenError, SyntaxError, ValueError):
        return


def _names(line: Sequence[str]) -> Iterator[str]:
    if line[0] in ("import", "from"):
        yield from _imported(line)
        return
    yield from (before for before, word in pairwise(line) if word == ":=")
    yield from (after for word, after in pairwise(line) if word == "as")
    if line[0] == "for" and "in" in line:
        yield from line[1 : line.index("in")]
    *targets, _ = _parts(line)
    for target in targets:
        yield from _targets(target)


def _imported(line: Sequence[str]) -> Iterator[str]:
    names = line[line.index("import") :] if "import" in line else ()
    for before, name, after in zip(names, names[1:], [*names[2:], ""], strict=False):
        if before in ("import", ",", "(", "as") and after != "as":
            yield name


def _parts(line: Sequence[str]) -> list[list[str]]:
    """:returns: the line, split at the assignments outside of brackets, and without what precedes a block's colon."""
    parts, depth = [list[str]()], 0
    for word in line:
        depth += (word in _OPENING) - (word in _CLOSING)
        if depth == 0 and word.endswith("=") and word not in ("==", "!=", "<=", ">=", ":="):
            parts.append([])
        elif (depth == 0 and word == ":" and line[0] in _BLOCKS) or (depth == 0 and word == ";"):
            parts[-1] = []
        else:
            parts[-1].append(word)
    return parts


def _targets(words: Iterable[str]) -> Iterator[str]:
    """:returns: the names in the target of an assignment, without attributes, items and annotations."""
    target = list(words)
    if ":" in target:
        target = target[: target.index(":")]
    for before, name, after in zip(["", *target], target, [*target[1:], ""], strict=False):
        if before != "." and after not in (".", "[", "("):
            yield name
