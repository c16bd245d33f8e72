"""
Which of a repository's settings make git run programs or connect elsewhere, for people to look at.

Nothing relies on this list being complete: where git runs, it runs in a sandbox.
"""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO

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
Section to settings whose values git runs (git-config(1)); hooks are looked for by themselves. A file that is included
may hold any of them, and may be another one when git reads it.
"""

_NOT_A_PROGRAM = {
    "core.fsmonitor": {"", "true", "false", "yes", "no", "on", "off", "1", "0"},
    "diff.submodule": {"", "short", "log"},
}
"""Settings with values that run nothing; ``diff.submodule = diff`` follows the settings of other repositories."""

_MISLEADING = {"proxy", "sslverify", "sslcainfo", "sslcapath", "curloptresolve", "sslcert"}
"""``http.*`` settings by which an address may lead elsewhere than it says."""


class MalformedSettings(ValueError):
    """The file cannot be read as git's settings."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. Section and name are in lower case, the subsection is as written, ``None`` if there is none."""

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
        """Whether git would run a program by it."""
        return _runs_program(self)

    @property
    def misleads(self) -> bool:
        """Whether git may connect elsewhere by it than its remotes say."""
        return _misleads(self)


def parse(data: bytes) -> tuple[Setting, ...]:
    """
    Read one file of settings, without those that it includes.

    :raises MalformedSettings: it is none.
    """
    from dulwich.config import ConfigFile  # 50 ms, and few workspaces change their settings

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
