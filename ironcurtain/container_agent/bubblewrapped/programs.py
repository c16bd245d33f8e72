"""Find an agent's program on this machine, whoever installed it, and what it needs to run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from glob import escape, glob

import msgspec

from ironcurtain.container_agent.bubblewrapped.version_managers import VersionManagers, is_shim
from ironcurtain.errors import Unavailable
from ironcurtain.sandbox.installation import (
    Installation,
    homebrew_paths,
    homebrew_prefix,
    starts_node,
    wrapped_programs,
)
from ironcurtain.sandbox.pieces import all_names, readable_pieces
from ironcurtain.sandbox.system_paths import is_system

HOMEBREW = ".linuxbrew"
"""Where Homebrew is in a home, on Linux mostly that of its own account."""

USUAL = (
    *(".local/bin", ".claude/local", ".opencode/bin", ".bun/bin", ".volta/bin", ".npm-global/bin"),
    *(".local/share/mise/shims", ".asdf/shims", ".local/share/pnpm", ".local/share/pnpm/bin"),
    *(".nvm/versions/node/*/bin", ".local/share/fnm/node-versions/*/installation/bin", f"{HOMEBREW}/bin"),
)
"""Directories in a home where installers put agents' programs, searched after the ``PATH``."""

SETTINGS = "/.opencode/"
"""
Where OpenCode's installer puts its program, which is one file. OpenCode takes each directory of this name above a
project for one with its settings, and ends if it cannot write there.
"""

MOVED = "/run/programs"
"""Where such a program is inside."""

USUAL_SEARCH = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin")
"""The end of each ``PATH`` inside."""

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
    :param directory: where it was found, such as a version manager's directory of shims.
    """

    name: str
    path: str
    origin: str
    directory: str


class Needed(msgspec.Struct, frozen=True):
    """
    What a program and its tools need.

    :param program: absolute path of the program inside.
    :param paths: absolute paths that are readable inside, besides those of the system.
    :param moved: absolute paths that are readable inside at another path.
    :param search: the ``PATH``.
    :param variables: further variables.
    """

    program: str
    paths: tuple[str, ...]
    moved: tuple[tuple[str, str], ...]
    search: str
    variables: Mapping[str, str]


def find(name: str, search: str, homes: Sequence[str], managers: VersionManagers | None = None) -> AgentProgram | None:
    """
    :param name: of the program.
    :param search: the ``PATH``, of which relative entries are not searched: they would be in the project.
    :param homes: home directories.
    :param managers: tells which program a shim starts; ``None``: those that are found in the ``PATH`` and the homes.
    :returns: ``None`` if there is none.
    """
    managers = managers or VersionManagers(search, homes)
    for directory in _directories(search, homes):
        path = os.path.join(directory, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            real, manager = managers.started(path)
            if real:
                return AgentProgram(name, real, manager or _origin(real), directory)
    return None


def lack(program: AgentProgram, node: AgentProgram | None) -> str:
    """
    :param node: Node.js for it.
    :returns: what a program needs and this machine has not, as a sentence; empty if it has all.
    """
    if node is not None or not any(map(starts_node, (program.path, *wrapped_programs(program.path)))):
        return ""
    return f"{program.path} needs Node.js: there is no program 'node' in your PATH, nor where its installers put it"


def needed(
    program: AgentProgram,
    node: AgentProgram | None,
    search: str,
    homes: Sequence[str],
    protected: Sequence[str],
    workspace: str,
) -> Needed:
    """
    :param node: Node.js for it, which the ``PATH`` may name by a shim only.
    :param protected: absolute paths that must not be readable inside.
    :param workspace: real path of the project, from where nothing is taken.
    :raises Unavailable: the program is in the project, where agents write.
    """
    if any(
        os.path.realpath(place).startswith(f"{workspace}/") for place in (program.path, os.path.dirname(program.path))
    ):
        raise Unavailable(f"{program.path} is in the project, where the agent could replace it: install it elsewhere")
    names, directories = all_names(protected), _without_shims(search, node)
    real = os.path.realpath(program.path)
    inside = f"{MOVED}/{program.name}" if SETTINGS in real else program.path
    installation = Installation((*homes, "/root"), ":".join(directories), workspace)
    found = installation.of(program.path, (), "/usr") if inside == program.path else ()
    pieces = [piece for path in (*found, *_toolchains(homes)) for piece in readable_pieces(path, names, workspace)]
    given = [path for path in dict.fromkeys(pieces) if not f"{os.path.realpath(path)}/".startswith(f"{workspace}/")]
    reached = [directory for directory in directories if _is_reached(directory, given)]
    words = dict.fromkeys((os.path.dirname(inside), *reached, *USUAL_SEARCH))
    variables = {
        name: f"{home}/{place}"
        for name, place in TOOLCHAIN_VARIABLES.items()
        for home in homes
        if os.path.isdir(f"{home}/{place}")
    }
    moved = () if inside == program.path else ((real, inside),)
    return Needed(inside, tuple(given), moved, ":".join(words), variables)


def _directories(search: str, homes: Sequence[str]) -> Iterator[str]:
    yield from _absolute(search)
    for home in homes:
        for place in USUAL:
            yield from sorted(glob(f"{escape(home)}/{place}"), reverse=True)


def _toolchains(homes: Sequence[str]) -> Iterator[str]:
    for home in homes:
        yield from (path for place in TOOLCHAINS if os.path.exists(path := f"{home}/{place}"))
        yield from homebrew_paths(f"{home}/{HOMEBREW}")


def _absolute(search: str) -> Iterator[str]:
    return (os.path.normpath(directory) for directory in search.split(os.pathsep) if os.path.isabs(directory))


def _without_shims(search: str, node: AgentProgram | None) -> list[str]:
    """:returns: the directories of a ``PATH``, with that of Node.js itself before them, in place of shims of it."""
    real = [] if node is None or is_system(node.path) else [os.path.dirname(node.path)]
    return [*real, *(each for each in _absolute(search) if not is_shim(f"{each}/node") and each not in real)]


def _is_reached(path: str, given: Sequence[str]) -> bool:
    return is_system(path) or any(path == place or path.startswith(f"{place}/") for place in given)


def _origin(path: str) -> str:
    if homebrew_prefix(os.path.realpath(path)) is not None:
        return "Homebrew"
    places = "\n".join((path, os.path.realpath(path), *wrapped_programs(path)))
    return next((origin for part, origin in _ORIGINS if part in places), "native")
