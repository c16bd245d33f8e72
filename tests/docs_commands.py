"""
Find the commands that the documentation shows, and hold them against the programs' own parsers.

What a page may contain and how it is marked is described in CONTRIBUTING.rst, "Commands in the documentation".
"""

from __future__ import annotations

import contextlib
import getopt
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TOP = Path(__file__).parent.parent

_OPENING = re.compile(r"(?P<indent> *)(?:```|\.\. code-block:: *)(?P<language>[\w-]+) *$")
_RUN = re.compile(r" *(?:<!--|\.\.) shown: run ?(?P<status>\d*) *(?:-->)? *$")
_DESCRIPTOR = re.compile(r"(?<!\S)[012](?=[<>])")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_BETWEEN_COMMANDS = frozenset(("|", "||", "&&", ";", "&", "(", ")"))
_REDIRECTIONS = frozenset((">", ">>", "<", "<<", "<<<", ">&", "&>"))
_SSH_FLAGS = "46AaCfGgKkMNnqsTtVvXxYyB:b:c:D:E:e:F:I:i:J:L:l:m:O:o:p:P:Q:R:S:W:w:"
_SSH_COMMANDS = frozenset(
    (
        "answer",
        "approve",
        "attach",
        "audit",
        "deny",
        "escalations",
        "logs",
        "observe",
        "permissions",
        "revoke",
        "sessions",
        "stop",
    )
)
"""What our SSH server understands; a session without a command is the console."""


class WrongCommand(Exception):
    """A page shows a command that does not exist like that."""


@dataclass(frozen=True, slots=True)
class Block:
    """
    One block of code on a page.

    :ivar place: file and line, for messages.
    :ivar status: what the last command ends with, where the block is marked to be run; else ``None``.
    """

    place: str
    language: str
    lines: tuple[str, ...]
    status: int | None

    def commands(self) -> list[tuple[str, list[str]]]:
        """:returns: each command line shown (continued lines joined), with the output shown after it."""
        shown: list[tuple[str, list[str]]] = []
        continued = False
        for line in self.lines:
            if continued:
                command, output = shown.pop()
                shown.append((f"{command[:-1].rstrip()} {line.removeprefix('>').strip()}", output))
            elif line.startswith("$ "):
                shown.append((line[2:].strip(), []))
            elif shown and line.strip():
                shown[-1][1].append(line.rstrip())
            continued = line.endswith("\\") and (continued or line.startswith("$ "))
        return shown


def pages() -> list[Path]:
    """:returns: the documents that people read."""
    own = [TOP / "README.md", TOP / "CONTRIBUTING.rst", TOP / "SECURITY.md"]
    below = [p for p in sorted((TOP / "docs").rglob("*.rst")) if not {"_build", "news"} & set(p.parts)]
    return [page for page in own + below if page.exists()]


def blocks(page: Path) -> Iterator[Block]:
    """Find the blocks of code on a page, in Markdown (fences) or reStructuredText (``code-block``)."""
    lines = page.read_text().splitlines()
    mark: re.Match[str] | None = None
    number = 0
    while number < len(lines):
        opening = _OPENING.match(lines[number])
        if opening is None:
            if lines[number].strip():
                mark = _RUN.match(lines[number])
            number += 1
            continue
        start = number + 1
        number, body = _body(lines, start, len(opening["indent"]), fenced=page.suffix == ".md")
        status = None if mark is None else int(mark["status"] or 0)
        place = f"{page.relative_to(TOP) if page.is_relative_to(TOP) else page.name}:{start}"
        yield Block(place, opening["language"], tuple(body), status)
        mark = None


def _body(lines: list[str], start: int, indent: int, *, fenced: bool) -> tuple[int, list[str]]:
    """:returns: the number of the first line after the body, and its lines without their common indentation."""
    end = start
    if fenced:
        while end < len(lines) and lines[end].strip() != "```":
            end += 1
        return end + 1, [line[indent:] for line in lines[start:end]]
    while end < len(lines) and (not lines[end].strip() or len(lines[end]) - len(lines[end].lstrip()) > indent):
        end += 1
    body = [line for line in lines[start:end] if not re.match(r" +:[\w-]+:", line)]
    margin = min((len(line) - len(line.lstrip()) for line in body if line.strip()), default=0)
    return end, [line[margin:] for line in body]


def check(line: str) -> None:
    """
    Parse one command line with the parsers of the programs in it; programs of others are passed over.

    :raises WrongCommand: a program would refuse the words.
    """
    for words in _simple_commands(line):
        checker = _CHECKERS.get(words[0])
        if checker is not None:
            checker(words[1:])


def _simple_commands(line: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(_DESCRIPTOR.sub("", line), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    tokens = iter([*lexer, ";"])
    for token in tokens:
        if token in _BETWEEN_COMMANDS:
            if words:
                yield words
            words = []
        elif token in _REDIRECTIONS:
            next(tokens)
        elif words or not (_ASSIGNMENT.match(token) or token in ("sudo", "exec", "env")):
            words.append(token)


def _ironcurtain(arguments: list[str]) -> None:
    import click

    from ironcurtain.cli import commands

    command: click.Command = commands
    context: click.Context | None = None
    name: str | None = "ironcurtain"
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            while True:
                context = command.make_context(name, arguments, parent=context)
                if not isinstance(command, click.Group):
                    return
                rest = [*getattr(context, "_protected_args", ()), *context.args]  # click 9 will have all of it in args
                if not rest and command.invoke_without_command:
                    return
                name, found, arguments = command.resolve_command(context, rest)
                assert found is not None
                command = found
    except click.exceptions.Exit:
        return
    except click.BadParameter as e:
        if not isinstance(e.param and e.param.type, click.Path | click.File):  # a page may name files that are not here
            raise WrongCommand(e.format_message()) from e
    except click.UsageError as e:
        raise WrongCommand(e.format_message()) from e


def _twistd(arguments: list[str]) -> None:
    # In a process of its own, since it installs a reactor; with --help it ends once all words are parsed.
    if refusal := _refusal(str(Path(sys.executable).parent / "twistd"), *arguments, "--help"):
        raise WrongCommand(refusal.strip().splitlines()[-1])


@cache
def _refusal(*command: str) -> str:
    """:returns: what a program says that refuses its words; some are on several pages."""
    environ = {**os.environ, "PYTHONPATH": str(TOP)}
    done = subprocess.run(command, cwd=TOP, env=environ, capture_output=True, text=True, timeout=300)
    return done.stdout + done.stderr or "it says nothing" if done.returncode else ""


def _ssh(arguments: list[str]) -> None:
    try:
        _, (host, *command) = getopt.getopt(arguments, _SSH_FLAGS)
    except (getopt.GetoptError, ValueError) as e:
        raise WrongCommand(f"ssh: {e}") from e
    if host != "localhost" or (command and command[0] not in _SSH_COMMANDS):
        raise WrongCommand(f"ssh: our server has no command {' '.join(command)!r}, or {host!r} is not where it is")


def _make(arguments: list[str]) -> None:
    if refusal := _refusal("make", "--dry-run", *arguments):
        raise WrongCommand(refusal)


_CHECKERS = {"ironcurtain": _ironcurtain, "twistd": _twistd, "ssh": _ssh, "make": _make}


def matches(shown: Sequence[str], printed: str) -> bool:
    """:returns: whether the printed text has the lines shown, in their order; ``...`` stands for anything."""
    pattern = r"\n(?:.*\n)*?".join(".*".join(map(re.escape, line.split("..."))) + " *" for line in shown)
    return re.search(rf"(?m)^{pattern}$", printed) is not None
