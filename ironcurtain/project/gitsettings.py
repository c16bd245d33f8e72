"""
Find the settings of a repository that make git run programs or connect elsewhere, to show them to people.

Nothing relies on the completeness of this list: git runs in a sandbox.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from io import BytesIO

import msgspec

from ironcurtain.project.gitdata import is_data, is_sample

SETTINGS = frozenset(("config", "config.worktree"))
"""Files of a repository that can name programs."""

DECIDING = SETTINGS | {"hooks", "commondir", "gitdir"}
"""Files that determine what git runs, besides ``info/attributes``."""


def is_repository(names: Collection[str]) -> bool:
    """
    :param names: the names in a directory.
    :returns: whether git could treat it as a repository, or as the shared part of a repository's worktrees (without
        ``HEAD``).
    """
    lower = {name.lower() for name in names}
    return {"objects", "refs"} <= lower or {"head", "commondir"} <= lower


def in_repository(path: str) -> bool:
    """:returns: whether a path is inside a directory named like a repository's own."""
    return ".git" in path.lower().split("/")[:-1]


class Repositories:
    """Finds the repositories in a tree whose directories are listed top down."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], bool] = {}

    def listed(self, directory: tuple[str, ...], names: Collection[str]) -> None:
        """
        :param directory: its path within the tree.
        :param names: the names in it.
        """
        own = directory[-1:] != () and directory[-1].lower() == ".git"
        if own or is_repository(names):
            # A project can have directories of these names, but hardly a file HEAD beside them.
            self._known[directory] = own or "head" in {name.lower() for name in names}

    def decides(self, path: tuple[str, ...]) -> bool:
        """
        :param path: path of a non-directory, in a listed directory.
        :returns: whether git runs or uses the file.
        """
        return any(_decides(tuple(name.lower() for name in rest)) for rest, _ in self._within(path))

    def may_decide(self, path: tuple[str, ...]) -> bool:
        """
        :param path: path of a file, in a listed directory.
        :returns: whether git could run or obey the file: in a repository everything that is not known as data.
        """
        unknown = (certain and not is_data(rest) for rest, certain in self._within(path))
        return self.decides(path) or (any(unknown) and not is_sample(path[-1]))

    def contain(self, path: tuple[str, ...]) -> bool:
        """:returns: whether a path is in a repository, or can be one; a link there can be any other file."""
        return path[-1].lower() == ".git" or any(self._within(path))

    def _within(self, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], bool]]:
        """:returns: the path within each repository around it, and whether that is certainly one."""
        for depth in range(len(path)):
            if (certain := self._known.get(path[:depth])) is not None:
                yield path[depth:], certain


def _decides(path: tuple[str, ...]) -> bool:
    if path[0] == "hooks" and path[-1].endswith(".sample"):
        return False
    return path[0] in DECIDING or path[:2] == ("info", "attributes") or path[:3] == ("objects", "info", "alternates")


_PROGRAMS = {
    "core": {"sshcommand", "gitproxy", "askpass", "editor", "pager", "alternaterefscommand"},
    "sequence": {"editor"},
    "gpg": {"program", "defaultkeycommand"},
    "diff": {"external", "command", "textconv"},
    "merge": {"driver"},
    "filter": {"clean", "smudge", "process"},
    "remote": {"uploadpack", "receivepack", "vcs"},
    "credential": {"helper"},
    "gc": {"recentobjectshook"},
    "hook": {"command"},
    "include": {"path"},
    "includeif": {"path"},
    "interactive": {"difffilter"},
    "tar": {"command"},
    "trailer": {"command", "cmd"},
}
"""
Sections and settings whose values git runs (git-config(1)); hooks are checked separately. An included file can contain
any of them, and can change before git reads it.
"""

_NOT_A_PROGRAM = {
    "core.fsmonitor": {"", "true", "false", "yes", "no", "on", "off", "1", "0"},
    "diff.submodule": {"", "short", "log"},
}
"""Values that run nothing; ``diff.submodule = diff`` uses the settings of other repositories."""

_MISLEADING = {"proxy", "sslverify", "sslcainfo", "sslcapath", "curloptresolve", "sslcert"}
"""``http.*`` settings that can redirect an address."""


class MalformedSettings(ValueError):
    """The file cannot be parsed as git settings."""


class Setting(msgspec.Struct, frozen=True):
    """One setting. Section and name are in lower case, the subsection is unchanged, ``None`` if there is none."""

    section: str
    subsection: str | None
    name: str
    value: str

    @property
    def key(self) -> str:
        """Its name as git prints it."""
        return ".".join(part for part in (self.section, self.subsection, self.name) if part is not None)

    @property
    def runs_program(self) -> bool:
        """Whether git would run a program because of it."""
        return _runs_program(self)

    @property
    def misleads(self) -> bool:
        """Whether git could connect to another address because of it."""
        return _misleads(self)


def parse(data: bytes) -> tuple[Setting, ...]:
    """
    Parse one file of settings, without included files.

    :raises MalformedSettings: it is not one.
    """
    from dulwich.config import ConfigFile  # the import takes 50 ms, and few workspaces change their settings

    try:
        found = ConfigFile.from_file(BytesIO(data), expand_includes=False)
    except ValueError as e:
        raise MalformedSettings(str(e)) from None
    return tuple(
        Setting(
            _text(section[0]).lower(),
            _text(section[1]) if len(section) > 1 else None,
            _text(name).lower(),
            _text(value),
        )
        for section in found.sections()
        for name, value in found.items(section)
    )


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _runs_program(setting: Setting) -> bool:
    plain = _NOT_A_PROGRAM.get(f"{setting.section}.{setting.name}")
    if plain is not None:
        return setting.value.lower() not in plain
    if setting.section == "protocol" and setting.name == "allow":
        return setting.value.lower() != "never"
    if setting.section == "submodule" and setting.name == "update":
        return setting.value.startswith("!")
    return setting.name in _PROGRAMS.get(setting.section, ()) and setting.value != ""


def _misleads(setting: Setting) -> bool:
    if setting.section in ("include", "includeif"):
        return setting.name == "path"
    if setting.section in ("submodule", "push", "fetch"):
        return setting.name in ("recurse", "recursesubmodules")
    if setting.section == "extensions":
        return setting.name == "refstorage"
    return setting.section == "remotes" or (setting.section in ("http", "remote") and setting.name in _MISLEADING)
