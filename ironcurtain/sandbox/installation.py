"""
Find the files that a program needs: its installation, its interpreter, its environment and its packages.

So ``npx``, ``uvx``, a virtual environment in a home directory, a program under pyenv or nvm, or a script of a workspace
of npm starts in a sandbox without a list of paths. Only installations are found, never a complete home directory, and
nothing that a link in the agent's workspace leads to.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from glob import escape, glob
from pathlib import PurePath

from ironcurtain.files.links import link_chain
from ironcurtain.sandbox.command_lines import SEARCHED, read_command_line
from ironcurtain.sandbox.linked_packages import head_of, node_links, python_paths
from ironcurtain.sandbox.system_paths import is_system
from ironcurtain.text.decoding import decode_anyhow

HEAD_BYTES = 1024
"""Number of bytes read of a file to find its interpreter; Linux reads 256."""

WRAPPER_BYTES = 16 * 1024
"""Maximum size in bytes of a shell script that only starts another program, as package managers generate them."""

PROJECT_BYTES = 256 * 1024
"""Maximum size in bytes of a ``package.json`` that is read."""

COMMANDS_DEEP = 4
"""Maximum number of programs that start each other on one command line."""

_PROJECT = (
    *("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "Pipfile", "uv.lock"),
    *("deno.json", "deno.jsonc", "Gemfile", "cpanfile", ".git"),
)
"""What a project's own directory contains, besides the ``package.json`` of a package."""

_SCRIPT_ENDINGS = ("", ".js", ".mjs", ".cjs", ".ts")
"""What Node may append to the name of a script."""

_INTERPRETER = re.compile(r"(python[0-9.]*|node|deno|bun|ruby|perl|sh|bash)\Z")
_SHELL = re.compile(r"\A#!\s*(?:/usr/bin/env\s+)?\S*?(?:ba|da|z)?sh\b")
_ENV_NODE = re.compile(rb"#!\s*\S*/env\s+(?:-S\s+)?node\b")
_EXEC_NODE = re.compile(r"^\s*exec\s+node\s", re.MULTILINE)
_TARGET = re.compile(r"^# cmd-shim-target=(/.+)$|^\s*exec\s+\"?(/[^\s\"$]+)|\"\$basedir/([^\"$]+)\"", re.MULTILINE)
"""What a wrapper starts: a comment of pnpm, an absolute path, or a path beside the wrapper."""

HOMEBREW = "Cellar"
"""The directory of Homebrew's prefix with all that it installed; its programs find each other by the prefix."""

_HOMEBREW = (HOMEBREW, "Caskroom", "opt", "bin", "sbin", "lib", "libexec", "include", "share")
"""What programs of Homebrew need of its prefix; besides, there are settings, data of services, and its own program."""

_VERSIONS = (".tool-versions", ".asdfrc", ".config/mise/config.toml", ".config/mise/conf.d", ".mise.toml")
"""Files in a home that say which version a shim of asdf or mise starts."""

_SHARED = ("", ".local", ".local/share", ".config", ".cache")
"""Directories in a home that contain more than one installation."""


class Installation:
    """
    :param homes: absolute paths of home directories, of which only installations are used.
    :param path: the server's ``PATH``, for programs that are found by name.
    :param workspace: real path of the agent's workspace: a link there is followed only to an installed language.
    :param variables: the server's environment, of which some variables name directories with modules.
    """

    def __init__(
        self, homes: Iterable[str], path: str, workspace: str, variables: Mapping[str, str] | None = None
    ) -> None:
        self._homes, self._path, self._workspace = [PurePath(home) for home in homes], path, PurePath(workspace)
        self._variables = variables or {}
        self._found: dict[str, None] = {}
        self._seen: set[str] = set()

    def of(self, program: str, arguments: Sequence[str], cwd: str) -> tuple[str, ...]:
        """
        :param program: absolute path of the program.
        :param arguments: its arguments, which may name a script and other files.
        :param cwd: absolute path of its working directory.
        :returns: absolute paths of files and directories, besides those of the system.
        """
        self._command(program, arguments, cwd)
        for name in SEARCHED:
            for directory in filter(None, self._variables.get(name, "").split(":")):
                self._directory(os.path.join(cwd, directory))
        given = () if self._is_broad(cwd) or is_system(cwd) else (cwd,)
        return _outermost((*self._found, *given))

    def _command(self, program: str, arguments: Sequence[str], cwd: str, deep: int = 0) -> None:
        self._add(os.path.normpath(program))
        line = read_command_line(os.path.basename(program), arguments, self._variables)
        cwd = os.path.normpath(os.path.join(cwd, line.cwd))
        scripts = (_script(os.path.join(cwd, word)) for word in line.scripts)
        if (script := next(filter(None, scripts), None)) is not None:
            self._add(script)
        for file in line.files:
            if os.path.isfile(place := os.path.join(cwd, file)):
                self._add(os.path.normpath(place))
        for directory in line.directories:
            self._directory(os.path.join(cwd, directory))
        if line.own_packages and is_system(program):
            for home in self._homes:
                for packages in glob(f"{escape(str(home))}/.local/lib/python3*/site-packages"):
                    self._found[packages] = None
                    self._python_packages(packages)
        if line.project is not None:
            self._python_project(os.path.normpath(os.path.join(cwd, line.project)))
        for name, rest in line.commands if deep < COMMANDS_DEEP else ():
            beside = os.path.normpath(os.path.join(cwd, name))
            found = beside if "/" in name else shutil.which(name, path=self._path)
            if line.project is not None and os.path.isfile(beside):
                self._add(beside)  # uv runs a script of this name
            elif found is not None and os.path.isfile(found):
                self._command(found, rest, cwd, deep + 1)

    def _add(self, program: str, trusted: bool = True) -> None:
        for place in link_chain(program):
            here = self._is_here(place)
            trusted = trusted and not here  # an agent may have created the link, or the script
            if place in self._seen:
                continue
            self._seen.add(place)
            if not here and not is_system(place):
                self._found |= dict.fromkeys(self._around(place) if trusted else self._language(place))
            if trusted or (here and not os.path.islink(place)):
                for other in _interpreters(place, self._path):
                    self._add(other, trusted)
            if trusted and not is_system(place):
                for other in self._started(place):
                    self._add(other)

    def _started(self, place: str) -> Iterator[str]:
        yield from wrapped_programs(place)
        if starts_node(place) and (node := shutil.which("node", path=self._path)) is not None:
            yield os.path.abspath(node)

    def _directory(self, path: str) -> None:
        path = os.path.normpath(path)
        if os.path.isdir(path) and not self._is_broad(path) and self._is_apart(path):
            self._found |= dict.fromkeys((path, os.path.realpath(path)))

    def _language(self, place: str) -> Iterator[str]:
        """:returns: the Python or Node that a program is, such as in an environment in the workspace."""
        directory, name = os.path.split(place)
        if _INTERPRETER.match(name) and _holds_language(os.path.dirname(directory)):
            yield from self._installed(os.path.dirname(directory), place)

    def _around(self, place: str) -> Iterator[str]:
        directory = os.path.dirname(place)
        prefix, name = os.path.split(directory)
        if (homebrew := homebrew_prefix(place)) is not None:
            yield from homebrew_paths(homebrew)
            return
        if name == "shims" and not self._is_broad(prefix):  # scripts and links of version managers, which need it all
            yield prefix
            yield from filter(os.path.exists, (str(home / name) for home in self._homes for name in _VERSIONS))
        elif name == "bin" and os.path.isdir(f"{prefix}/tools/image"):  # of Volta
            yield prefix
        elif name == "bin" and os.path.isfile(f"{prefix}/pyvenv.cfg"):
            yield from self._environment(prefix)
        elif name == "bin" and _holds_language(prefix):
            yield from self._installed(prefix, place)
        elif name == "bin" and os.path.basename(os.path.dirname(prefix)) == "releases":  # of Codex's own installer
            yield prefix
        else:
            yield self._project(place)
            self._node_packages(place)

    def _environment(self, prefix: str) -> Iterator[str]:
        """A virtual environment, with its base Python."""
        yield prefix
        self._linked_packages(prefix)
        with open(f"{prefix}/pyvenv.cfg", "rb") as file:
            settings = dict(line.split("=", 1) for line in decode_anyhow(file.read()).splitlines() if "=" in line)
        base = next((value.strip() for name, value in settings.items() if name.strip() == "home"), "")
        if base.startswith("/"):
            self._add(f"{base}/python3")

    def _python_project(self, directory: str) -> None:
        """A project whose environment uv uses; it may be that of a workspace above it."""
        self._add(f"{directory}/pyproject.toml")
        for above in (PurePath(directory), *PurePath(directory).parents):
            if self._is_broad(str(above)):
                break
            if os.path.isfile(above / ".venv/pyvenv.cfg"):
                self._add(str(above / ".venv/bin/python"))

    def _installed(self, prefix: str, place: str) -> Iterator[str]:
        if not self._is_broad(prefix):
            yield prefix
            self._linked_packages(prefix)
            return
        yield place  # such as ~/.local/bin/name
        yield from glob(f"{escape(prefix)}/lib*/python3*")
        yield from glob(f"{escape(prefix)}/lib/node_modules")
        self._linked_packages(prefix)

    def _linked_packages(self, prefix: str) -> None:
        """Packages that an installation only links to."""
        for packages in glob(f"{escape(prefix)}/lib*/python3*/site-packages"):
            self._python_packages(packages)
        if os.path.isdir(modules := f"{prefix}/lib/node_modules"):
            self._node_modules(modules)

    def _python_packages(self, packages: str) -> None:
        if packages not in self._seen and self._is_apart(packages):
            self._seen.add(packages)
            named = (path for path in python_paths(packages) if not self._is_broad(path) and self._is_apart(path))
            self._found |= dict.fromkeys(named)

    def _node_packages(self, place: str) -> None:
        """Where Node looks for the packages of a script: in all directories above it."""
        for above in PurePath(place).parents:
            if os.path.isdir(above / "node_modules") and not is_system(str(above)):
                self._node_modules(str(above / "node_modules"))
            if self._is_broad(str(above)):
                break
            if os.path.isfile(above / ".pnp.cjs"):  # of yarn, with the paths of all packages
                self._found[str(above)] = None

    def _node_modules(self, modules: str) -> None:
        if modules in self._seen or not self._is_apart(modules):
            return
        self._seen.add(modules)
        self._found[modules] = None
        for link in node_links(modules):
            real = os.path.realpath(link)
            if self._is_broad(real) or not self._is_apart(link) or not os.path.isfile(f"{real}/package.json"):
                continue
            if "/node_modules/" not in real:
                self._found[real] = None
            self._node_packages(f"{real}/package.json")

    def _project(self, place: str) -> str:
        """:returns: the nearest project directory above a file, else the file itself."""
        before, packages, _ = place.partition("/node_modules/")  # packages share what they need
        if packages:
            return f"{before}/node_modules"
        for above in PurePath(place).parents:
            if self._is_broad(str(above)):
                break
            if any(os.path.exists(above / name) for name in _PROJECT) or _is_package(above / "package.json"):
                return str(above)
        return place

    def _is_here(self, path: str) -> bool:
        return PurePath(path).is_relative_to(self._workspace)

    def _is_apart(self, path: str) -> bool:
        """Whether a path neither is of the system nor leads through the workspace, where an agent makes links."""
        return not any(self._is_here(place) or is_system(place) for place in link_chain(path))

    def _is_broad(self, directory: str) -> bool:
        """Whether a directory contains more than one installation: a home, one above it, or some directories in it."""
        place = PurePath(directory)
        return any(home.is_relative_to(place) or place in [home / name for name in _SHARED] for home in self._homes)


def wrapped_programs(wrapper: str) -> tuple[str, ...]:
    """
    :param wrapper: absolute path of a program.
    :returns: the programs that it starts, if it is a shell script of a package manager.
    """
    paths = (
        os.path.normpath(os.path.join(os.path.dirname(wrapper), comment or absolute or beside))
        for comment, absolute, beside in _TARGET.findall(_wrapper_text(wrapper))
    )
    return tuple(path for path in paths if os.path.isfile(path))


def starts_node(program: str) -> bool:
    """:returns: whether a script, or the wrapper of one, has the ``node`` of the ``PATH`` run it."""
    found = _ENV_NODE.match(head_of(program, HEAD_BYTES)) or _EXEC_NODE.search(_wrapper_text(program))
    return found is not None


def homebrew_prefix(path: str) -> str | None:
    """
    :param path: absolute path of a program.
    :returns: where Homebrew is installed, if the program is one of its ``bin``, or one that it installed.
    """
    above = [str(parent) for parent in PurePath(path).parents]
    return next((prefix for prefix in above if _is_homebrew(prefix)), None)


def homebrew_paths(prefix: str) -> tuple[str, ...]:
    """:returns: what Homebrew's programs need of its prefix; nothing if it is not there."""
    return tuple(path for each in _HOMEBREW if os.path.exists(path := f"{prefix}/{each}"))


def _is_homebrew(prefix: str) -> bool:
    return os.path.isdir(f"{prefix}/{HOMEBREW}") and os.path.isdir(f"{prefix}/opt")


def _wrapper_text(path: str) -> str:
    """:returns: the text of a shell script, if it is so short that it may only start another program."""
    text = head_of(path, WRAPPER_BYTES).decode(errors="replace")
    return "" if _SHELL.match(text) is None or len(text) == WRAPPER_BYTES else text


def _outermost(paths: Iterable[str]) -> tuple[str, ...]:
    """:returns: the paths without those below others."""
    every = dict.fromkeys(paths)
    return tuple(path for path in every if not any(str(above) in every for above in PurePath(path).parents))


def _is_package(description: PurePath) -> bool:
    """:returns: whether a ``package.json`` is that of a package, not only the settings of a directory in one."""
    if not (head := head_of(str(description), PROJECT_BYTES)):
        return False
    try:
        found = json.loads(head)
    except (ValueError, RecursionError):
        return True
    return not isinstance(found, dict) or bool({"name", "workspaces", "scripts", "dependencies"} & found.keys())


def _script(path: str) -> str | None:
    """:returns: the file of a script; for a directory its description."""
    files = (f"{path}{ending}" for ending in _SCRIPT_ENDINGS)
    inside = (f"{path}/{name}" for name in ("package.json", "index.js", "__main__.py"))
    found = next((file for file in (*files, *inside) if os.path.isfile(file)), None)
    return None if found is None else os.path.normpath(found)


def _holds_language(prefix: str) -> bool:
    return bool(glob(f"{escape(prefix)}/lib*/python3*") + glob(f"{escape(prefix)}/lib/node_modules"))


def _interpreters(program: str, path: str) -> Iterator[str]:
    """:returns: the interpreter in the first line of a script (execve(2), "Interpreter scripts")."""
    head = head_of(program, HEAD_BYTES)
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
