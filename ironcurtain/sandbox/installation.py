"""
Find the files that a program needs: its installation, its interpreter, and its environment.

So ``npx``, ``uvx``, a virtual environment in a home directory, or a program under pyenv or nvm starts in a sandbox
without a list of paths. Only installations are found, never a complete home directory.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Sequence
from glob import escape, glob
from pathlib import PurePath

from ironcurtain.sandbox.system_paths import is_system

LINKS_LIMIT = 40
"""Maximum number of links from a program's name to the program (Linux's limit, path_resolution(7))."""

HEAD_BYTES = 1024
"""Number of bytes read of a file to find its interpreter; Linux reads 256."""

_PROJECT = ("package.json", "pyproject.toml", "setup.py")
_INTERPRETER = re.compile(r"(python[0-9.]*|node|deno|bun|ruby|perl|sh|bash)\Z")


class Installation:
    """
    :param homes: absolute paths of home directories, of which only installations are used.
    :param path: the server's ``PATH``, for interpreters that are found by name.
    :param workspace: real path of the agent's workspace: a link there is followed only to an installed language.
    """

    def __init__(self, homes: Iterable[str], path: str, workspace: str) -> None:
        self._homes, self._path, self._workspace = [PurePath(home) for home in homes], path, PurePath(workspace)
        self._found: dict[str, None] = {}
        self._seen: set[str] = set()

    def of(self, program: str, arguments: Sequence[str], cwd: str) -> tuple[str, ...]:
        """
        :param program: absolute path of the program.
        :param arguments: its arguments; the first that is a file is the script of an interpreter.
        :param cwd: absolute path of its working directory.
        :returns: absolute paths of files and directories, besides those of the system.
        """
        self._add(os.path.normpath(program))
        if _INTERPRETER.match(os.path.basename(program)):
            script = os.path.normpath(os.path.join(cwd, next((w for w in arguments if not w.startswith("-")), "")))
            if os.path.isfile(script):
                self._add(script)
        given = () if self._is_broad(cwd) or is_system(cwd) else (cwd,)
        return (*self._found, *given)

    def _add(self, program: str, trusted: bool = True) -> None:
        for place in _links(program):
            here = PurePath(place).is_relative_to(self._workspace)
            trusted = trusted and not here  # an agent may have created the link, or the script
            if place in self._seen:
                continue
            self._seen.add(place)
            if not here and not is_system(place):
                self._found |= dict.fromkeys(self._around(place) if trusted else self._language(place))
            if trusted or (here and not os.path.islink(place)):
                for other in _interpreters(place, self._path):
                    self._add(other, trusted)

    def _language(self, place: str) -> Iterator[str]:
        """:returns: the Python or Node that a program is, such as in an environment in the workspace."""
        directory, name = os.path.split(place)
        if _INTERPRETER.match(name) and _holds_language(os.path.dirname(directory)):
            yield from self._installed(os.path.dirname(directory), place)

    def _around(self, place: str) -> Iterator[str]:
        directory = os.path.dirname(place)
        prefix, name = os.path.split(directory)
        if name == "shims" and not self._is_broad(
            prefix
        ):  # of pyenv, rbenv, asdf and mise: scripts that need the complete directory
            yield prefix
        elif name == "bin" and os.path.isfile(f"{prefix}/pyvenv.cfg"):
            yield from self._environment(prefix)
        elif name == "bin" and _holds_language(prefix):
            yield from self._installed(prefix, place)
        else:
            yield self._project(place)

    def _environment(self, prefix: str) -> Iterator[str]:
        """A virtual environment, with its base Python."""
        yield prefix
        yield from self._linked_packages(prefix)
        with open(f"{prefix}/pyvenv.cfg", encoding="utf-8", errors="replace") as file:
            settings = dict(line.split("=", 1) for line in file if "=" in line)
        base = next((value.strip() for name, value in settings.items() if name.strip() == "home"), "")
        if base.startswith("/"):
            self._add(f"{base}/python3")

    def _installed(self, prefix: str, place: str) -> Iterator[str]:
        if not self._is_broad(prefix):
            yield prefix
            yield from self._linked_packages(prefix)
            return
        yield place  # such as ~/.local/bin/name
        yield from glob(f"{escape(prefix)}/lib*/python3*")
        yield from glob(f"{escape(prefix)}/lib/node_modules")

    def _linked_packages(self, prefix: str) -> Iterator[str]:
        """Directories of packages installed in development mode (``site``, ".pth files")."""
        for name in glob(f"{escape(prefix)}/lib*/python3*/site-packages/*.pth"):
            with open(name, encoding="utf-8", errors="replace") as file:
                lines = [line.strip() for line in file]
            named = (line for line in lines if line.startswith("/") and os.path.isdir(line))
            yield from (line for line in named if not self._is_broad(line))

    def _project(self, place: str) -> str:
        """:returns: the nearest project directory above a file, else the file itself."""
        before, packages, _ = place.partition("/node_modules/")  # packages share what they need
        if packages and not self._is_broad(before):
            return f"{before}/node_modules"
        for above in PurePath(place).parents:
            if self._is_broad(str(above)):
                break
            if any(os.path.exists(above / name) for name in _PROJECT):
                return str(above)
        return place

    def _is_broad(self, directory: str) -> bool:
        """
        Whether a directory contains more than one installation: a home directory, one above it, or ``.local`` in it.
        """
        return any(home.is_relative_to(directory) or PurePath(directory) == home / ".local" for home in self._homes)


def _holds_language(prefix: str) -> bool:
    return bool(glob(f"{escape(prefix)}/lib*/python3*") + glob(f"{escape(prefix)}/lib/node_modules"))


def _links(path: str) -> Iterator[str]:
    """:returns: a path, the target of its link, and so on; finally its real path."""
    for _ in range(LINKS_LIMIT):
        yield path
        if not os.path.islink(path):
            break
        path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))
    yield os.path.realpath(path)


def _interpreters(program: str, path: str) -> Iterator[str]:
    """:returns: the interpreter in the first line of a script (execve(2), "Interpreter scripts")."""
    try:
        with open(os.open(program, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:  # it may be a pipe
            head = file.read(HEAD_BYTES) or b""
    except OSError:
        return
    if not head.startswith(b"#!"):
        return
    try:
        words = shlex.split(head[2:].split(b"\n", 1)[0].decode(errors="replace"))
    except ValueError:
        return
    if words[:1] and words[0].startswith("/"):
        yield words[0]
    if words and os.path.basename(words[0]) == "env":
        name = next((word for word in words[1:] if not word.startswith("-") and "=" not in word), "")
        if found := shutil.which(name, path=path):
            yield os.path.abspath(found)
