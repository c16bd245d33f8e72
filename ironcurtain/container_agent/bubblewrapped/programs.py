"""Find an agent's program on this machine, whoever installed it, and what it needs to run."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from glob import escape, glob
from pathlib import PurePath

import msgspec

from ironcurtain.errors import Unavailable
from ironcurtain.process import bounded
from ironcurtain.process.bounded import Bounds, Unfinished
from ironcurtain.process.search_path import host_path, host_program
from ironcurtain.sandbox.installation import Installation
from ironcurtain.sandbox.pieces import all_names, readable_pieces
from ironcurtain.sandbox.system_paths import is_system
from ironcurtain.text.display import one_line

USUAL = (
    *(".local/bin", ".claude/local", ".opencode/bin", ".bun/bin", ".volta/bin", ".npm-global/bin"),
    *(".local/share/mise/shims", ".asdf/shims", ".local/share/pnpm", ".local/share/pnpm/bin"),
    *(".nvm/versions/node/*/bin", ".local/share/fnm/node-versions/*/installation/bin"),
)
"""Directories in a home where installers put agents' programs, searched after the ``PATH``."""

MANAGERS = {"/.volta/bin": "volta", "/mise/shims": "mise", "/.asdf/shims": "asdf"}
"""Version managers by the ends of the directories with their shims, which need the manager's own settings to run."""

DESCRIPTION_BYTES, VERSION_LIMIT = 256 * 1024, 40
"""Most bytes that are read of a ``package.json``, and most characters of a version."""

SECONDS = 5.0
"""Time limit in seconds for a version manager to name a program."""

_ORIGINS = (
    *(("/.volta/", "volta"), ("/mise/", "mise"), ("/.asdf/", "asdf"), ("/.bun/", "bun"), ("/pnpm/", "pnpm")),
    *(("/.nvm/", "nvm"), ("/fnm", "fnm"), ("/node_modules/", "npm")),
)

TOOLCHAINS = (
    *(".rustup", ".cargo/bin", ".nvm/versions", ".pyenv", ".rbenv", ".sdkman/candidates", ".deno/bin", "go/bin"),
    *(".asdf/installs", ".local/share/mise/installs", ".volta/tools", ".bun/bin", ".local/share/uv/python"),
    *(".local/bin/uv", ".local/bin/uvx"),
)
"""Languages and compilers in a home, readable inside. None of these places contains logins."""

TOOLCHAIN_VARIABLES = {"RUSTUP_HOME": ".rustup", "PYENV_ROOT": ".pyenv", "RBENV_ROOT": ".rbenv"}
"""Variables by which programs find their toolchain, since the agent has another home."""


class AgentProgram(msgspec.Struct, frozen=True):
    """
    An agent's program.

    :param name: the name by which it is called.
    :param path: its absolute path; behind a version manager's shim, the program itself.
    :param origin: what installed it: "native", "npm", "nvm" and so on.
    """

    name: str
    path: str
    origin: str


class Needed(msgspec.Struct, frozen=True):
    """
    What a program and its tools need.

    :param paths: absolute paths that are readable inside, besides those of the system.
    :param search: the ``PATH``.
    :param variables: further variables.
    """

    paths: tuple[str, ...]
    search: str
    variables: Mapping[str, str]


def find(
    name: str,
    search: str,
    homes: Sequence[str],
    ask: Callable[[Sequence[str]], str] | None = None,
    workspace: str = "",
) -> AgentProgram | None:
    """
    :param name: of the program.
    :param search: the ``PATH``, of which relative entries are not searched: they would be in the project.
    :param homes: home directories.
    :param ask: runs the command of a version manager, and returns what it prints.
    :param workspace: real path of the project, where no version manager is run; empty: there is none.
    :returns: ``None`` if there is none.
    """
    ask = ask or partial(_ask, host_path(search, workspace))
    for directory in _directories(search, homes):
        path = os.path.join(directory, name)
        if not os.path.isfile(path) or not os.access(path, os.X_OK):
            continue
        manager = next((each for end, each in MANAGERS.items() if directory.endswith(end)), "")
        if manager:
            tool = host_program(manager, f"{directory}:{search}", workspace)
            real = ask([tool, "which", name]).strip() if tool is not None else ""
            if not os.path.isabs(real) or not os.path.isfile(real):
                continue  # the shim of a version that is not installed
            path = real
        return AgentProgram(name, path, manager or _origin(path))
    return None


def needed(
    program: AgentProgram, search: str, homes: Sequence[str], protected: Sequence[str], workspace: str
) -> Needed:
    """
    :param protected: absolute paths that must not be readable inside.
    :param workspace: real path of the project, from where nothing is taken.
    :raises Unavailable: the program is in the project, where agents write.
    """
    if any(
        os.path.realpath(place).startswith(f"{workspace}/") for place in (program.path, os.path.dirname(program.path))
    ):
        raise Unavailable(f"{program.path} is in the project, where the agent could replace it: install it elsewhere")
    names = all_names(protected)
    found = list(Installation((*homes, "/root"), search, workspace).of(program.path, (), "/usr"))
    tools = (f"{home}/{place}" for home in homes for place in TOOLCHAINS)
    found += [place for place in tools if os.path.exists(place)]
    pieces = [piece for path in found for piece in readable_pieces(path, names, workspace)]
    given = [path for path in dict.fromkeys(pieces) if not f"{os.path.realpath(path)}/".startswith(f"{workspace}/")]
    reached = [directory for directory in _absolute(search) if _is_reached(directory, given)]
    first = [os.path.dirname(program.path)]
    if (node := shutil.which("node", path=f"{first[0]}:{search}")) is not None and _is_reached(node, given):
        first.append(os.path.dirname(node))
    words = dict.fromkeys((*first, *reached, "/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"))
    variables = {
        name: f"{home}/{place}"
        for name, place in TOOLCHAIN_VARIABLES.items()
        for home in homes
        if os.path.isdir(f"{home}/{place}")
    }
    return Needed(tuple(given), ":".join(words), variables)


def _directories(search: str, homes: Sequence[str]) -> Iterator[str]:
    yield from _absolute(search)
    for home in homes:
        for place in USUAL:
            yield from sorted(glob(f"{escape(home)}/{place}"), reverse=True)


def _absolute(search: str) -> Iterator[str]:
    return (os.path.normpath(directory) for directory in search.split(os.pathsep) if os.path.isabs(directory))


def _is_reached(path: str, given: Sequence[str]) -> bool:
    return is_system(path) or any(path == place or path.startswith(f"{place}/") for place in given)


def _origin(path: str) -> str:
    places = f"{path}\n{os.path.realpath(path)}"
    return next((origin for part, origin in _ORIGINS if part in places), "native")


def _ask(search: str, words: Sequence[str]) -> str:
    try:
        done = bounded.run(words, Bounds(SECONDS), environment={**os.environ, "PATH": search}, cwd="/")
    except (OSError, Unfinished):
        return ""
    return done.output.decode(errors="replace") if done.status == 0 else ""


def version(program: AgentProgram) -> str:
    """:returns: the version of a program as its package names it; empty if none does."""
    real = PurePath(os.path.realpath(program.path))
    for above in (real, *real.parents):
        if above.parent.name == "versions":
            return above.name
        try:
            with open(above / "package.json", "rb") as file:
                found = json.loads(file.read(DESCRIPTION_BYTES)).get("version", "")
        except (OSError, ValueError, AttributeError):
            continue
        return one_line(str(found), VERSION_LIMIT)
    return ""
