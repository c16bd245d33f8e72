"""
How a shell is started so that it shows marks: with scripts of ours that read all that it reads by itself.

No file is written: bash gets ``--rcfile`` (as a login shell ``ENV``), zsh ``ZDOTDIR``, fish ``--init-command``. What
the scripts need comes in variables of the environment, which they unset first thing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath

import msgspec

NONCE = "IRONCURTAIN_SHELL_NONCE"
"""The nonce of the marks."""

STARTUP = "IRONCURTAIN_SHELL_STARTUP"
"""For bash: which files it is to read, of ``login``, ``noprofile`` and ``norc``."""

VARIABLES = "IRONCURTAIN_SHELL_VARIABLES"
"""Names of variables that it is to report with each instruction, with blanks between them."""

SAVED = "IRONCURTAIN_SHELL_SAVED_"
"""Before the name of a variable of the user's that is needed to start the shell."""


class Prepared(msgspec.Struct, frozen=True):
    """
    :param argv: the command line that starts the shell.
    :param environ: all of its environment.
    :param integrated: whether it will show marks.
    :param why_not: for the user, if it will not.
    """

    argv: tuple[str, ...]
    environ: Mapping[str, str]
    integrated: bool
    why_not: str = ""


class _Options(msgspec.Struct, frozen=True):
    """
    :param valued: options that take the next argument as their value.
    :param plain: options with which the shell is left alone.
    """

    valued: frozenset[str]
    plain: frozenset[str]


_OPTIONS = {
    "bash": _Options(
        frozenset(("-o", "+o", "-O", "+O", "--rcfile", "--init-file")),
        frozenset(("--rcfile", "--init-file", "--posix", "--noediting", "--help", "--version", "-p", "-r", "-n", "-D")),
    ),
    "zsh": _Options(frozenset(("-o", "+o")), frozenset(("-f", "-d", "--help", "--version", "--emulate", "-n"))),
    "fish": _Options(
        frozenset(("-C", "--init-command", "-d", "--debug", "-o", "--debug-output", "-f", "--features")),
        frozenset(("--help", "--version", "-h", "-v", "-n", "--no-execute", "-N", "--no-config")),
    ),
}


def prepare(
    program: str, args: Sequence[str], environ: Mapping[str, str], nonce: str, variables: Sequence[str] = ()
) -> Prepared:
    """
    :param program: the shell's path or name; its last part says which shell it is.
    :param args: the user's, for the shell.
    :param environ: the user's.
    :param nonce: letters and digits; that of the :class:`~ironcurtain.shell_integration.marks.MarkReader`.
    :param variables: names of those that the shell reports with each instruction; what is no name is left out.
    """
    name = PurePath(program).name
    if (options := _OPTIONS.get(name)) is None:
        return Prepared((program, *args), environ, False, f"{name or program} is none of {', '.join(_OPTIONS)}")
    if reason := _left_alone(args, options):
        return Prepared((program, *args), environ, False, reason)
    own = {NONCE: nonce}
    if names := [each for each in variables if each.isascii() and each.isidentifier()]:
        own[VARIABLES] = " ".join(names)
    return _INTEGRATIONS[name](program, tuple(args), {**environ, **own})


def _left_alone(args: Sequence[str], options: _Options) -> str:
    """:returns: why these arguments are not for an interactive shell that reads its files; empty if they are."""
    waiting = list(args)
    while waiting:
        arg = waiting.pop(0)
        if (arg in ("-", "--") and waiting) or not arg.startswith(("-", "+")):
            return "it runs a script"
        letters = {f"-{letter}" for letter in arg[1:]} if not arg.startswith("--") else set()
        if "-c" in letters or arg.startswith("--command"):
            return "it runs one command"
        if found := options.plain & ({arg.partition("=")[0]} | (letters if arg.startswith("-") else set())):
            return f"it is started with {min(found)}"
        if arg in options.valued and waiting:
            waiting.pop(0)
    return ""


def _bash(program: str, args: tuple[str, ...], environ: dict[str, str]) -> Prepared:
    skipped = {"--norc", "--noprofile"}
    startup = [arg[2:] for arg in args if arg in skipped]
    login = any(arg == "--login" or (arg.startswith("-") and arg[1:2] != "-" and "l" in arg) for arg in args)
    script, rest = _data("bash", "integration.bash"), tuple(arg for arg in args if arg not in skipped)
    if not login and "norc" not in startup:
        return Prepared((program, "--rcfile", script, *rest), environ, True)
    _save(environ, "ENV", script)
    environ[STARTUP] = " ".join((*startup, *(["login"] if login else ())))
    return Prepared((program, "--posix", *rest), environ, True)


def _zsh(program: str, args: tuple[str, ...], environ: dict[str, str]) -> Prepared:
    _save(environ, "ZDOTDIR", _data("zsh"))
    return Prepared((program, *args), environ, True)


def _fish(program: str, args: tuple[str, ...], environ: dict[str, str]) -> Prepared:
    script = _data("fish", "integration.fish").replace("\\", "\\\\").replace("'", "\\'")
    return Prepared((program, *args, "--init-command", f"source '{script}'"), environ, True)


_INTEGRATIONS: Mapping[str, Callable[[str, tuple[str, ...], dict[str, str]], Prepared]] = {
    "bash": _bash,
    "zsh": _zsh,
    "fish": _fish,
}


def _save(environ: dict[str, str], name: str, value: str) -> None:
    if name in environ:
        environ[SAVED + name] = environ[name]
    environ[name] = value


def _data(*parts: str) -> str:
    return os.path.join(os.path.dirname(__file__), "data", *parts)
