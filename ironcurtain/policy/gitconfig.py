"""
Read git's configuration format exactly as git does (git-config(1), "Syntax"), and say what the settings mean. Pure.

A reader that differs from git in one line can be made to miss a remote that git will use, so this one follows git's
own, character by character, and refuses the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_SPACE = " \t\r\n"
_ESCAPES = {"t": "\t", "b": "\b", "n": "\n", "\\": "\\", '"': '"'}

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

_LAZY = {("remote", "promisor"), ("extensions", "partialclone")}

_FILES = {
    "blame": {"ignorerevsfile"},
    "commit": {"template"},
    "core": {"attributesfile", "excludesfile"},
    "diff": {"orderfile"},
    "format": {"signaturefile"},
    "fsck": {"skiplist"},
    "mailmap": {"file"},
}
"""Section to settings that name files whose lines can come back in output and error messages."""

_MISLEADING = {"proxy", "sslverify", "sslcainfo", "sslcapath", "curloptresolve", "sslcert"}
"""``http.*`` settings by which an address may lead elsewhere than it says."""


class MalformedConfig(ValueError):
    """Git would refuse the file, or it holds a byte that C strings end at."""


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
        parts = (self.section or None, self.subsection, self.name)
        return ".".join(part for part in parts if part is not None)


def parse(text: str) -> tuple[Setting, ...]:
    """
    Read one configuration file.

    :raises MalformedConfig: git would not read it.
    """
    if "\0" in text:
        raise MalformedConfig("a NUL character")
    return tuple(_Reader(text.removeprefix("\ufeff").replace("\r\n", "\n")).settings())


class _Reader:
    """One pass over one file."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def _next(self) -> str:
        """:returns: the next character; after the last one, line ends."""
        self._at += 1
        return self._text[self._at - 1] if self._at <= len(self._text) else "\n"

    def settings(self) -> Iterator[Setting]:
        """:raises MalformedConfig: as in :func:`parse`."""
        prefix = ""
        while self._at < len(self._text):
            character = self._next()
            if character in _SPACE:
                continue
            if character in "#;":
                self._skip_line()
            elif character == "[":
                prefix = self._section()
            elif character.isascii() and character.isalpha():
                yield self._setting(prefix, character)
            else:
                raise MalformedConfig(f"unexpected {character!r}")

    def _skip_line(self) -> None:
        while self._next() != "\n":
            pass

    def _section(self) -> str:
        name = ""
        while (character := self._next()) != "]":
            if character in _SPACE:
                return f"{name}.{self._subsection(character)}."
            if not (_is_key(character) or character == "."):
                raise MalformedConfig("a section's name")
            name += character.lower()
        return f"{name}."

    def _subsection(self, character: str) -> str:
        while character in _SPACE:
            if character == "\n":
                raise MalformedConfig("a section without its end")
            character = self._next()
        if character != '"':
            raise MalformedConfig("a subsection without quotation marks")
        name = ""
        while (character := self._next()) != '"':
            if character == "\\":
                character = self._next()
            if character == "\n":
                raise MalformedConfig("a subsection without its end")
            name += character
        if self._next() != "]":
            raise MalformedConfig("a section without its end")
        return name

    def _setting(self, prefix: str, first: str) -> Setting:
        name = first.lower()
        while _is_key(character := self._next()):
            name += character.lower()
        while character in (" ", "\t"):
            character = self._next()
        value = "true"
        if character == "=":
            value = self._value()
        elif character != "\n":
            raise MalformedConfig(f"the setting {name}")
        section, dot, subsection = prefix.removesuffix(".").partition(".")
        return Setting(section, subsection if dot else None, name, value)

    def _value(self) -> str:
        value, spaces, quoted = "", "", False
        while (character := self._next()) != "\n" or quoted:
            if character == "\n":
                raise MalformedConfig("a value without its end")
            if character in _SPACE and not quoted:
                spaces += " " if value else ""
                continue
            if character in "#;" and not quoted:
                self._skip_line()
                break
            value, spaces = value + spaces, ""
            if character == '"':
                quoted = not quoted
            elif character == "\\":
                value += self._escaped()
            else:
                value += character
        return value

    def _escaped(self) -> str:
        character = self._next()
        if character == "\n":
            return ""
        if character not in _ESCAPES:
            raise MalformedConfig(f"the escape \\{character}")
        return _ESCAPES[character]


def _is_key(character: str) -> bool:
    return character.isascii() and (character.isalnum() or character == "-")


class GitConfig:
    """
    The settings of several files together.

    :param settings: in the order in which git reads them; of single values the last one counts.
    """

    __slots__ = ("settings",)

    def __init__(self, settings: Iterable[Setting]) -> None:
        self.settings = tuple(settings)

    def values(self, section: str, subsection: str | None, name: str) -> list[str]:
        """:returns: every value of a setting; the name in lower case."""
        return [s.value for s in self.settings if (s.section, s.subsection, s.name) == (section, subsection, name)]

    def value(self, section: str, subsection: str | None, name: str) -> str:
        """:returns: the value that counts, empty if there is none."""
        return next(reversed(self.values(section, subsection, name)), "")

    def default_remote(self, branch: str | None, *, push: bool) -> str | None:
        """
        :param branch: the current one, ``None`` if there is none.
        :returns: the name, or address, that git uses if none is given; ``None`` if git would refuse.
        """
        named: list[str] = []
        if push:
            named = [*self._of_branch(branch, "pushremote"), *self.values("remote", None, "pushdefault")[-1:]]
        if found := next(filter(None, (*named, *self._of_branch(branch, "remote"))), None):
            return found
        remotes = {s.subsection for s in self.settings if s.section == "remote" and s.name in ("url", "pushurl")}
        remotes.discard(None)
        if "origin" in remotes:
            return "origin"
        return remotes.pop() if len(remotes) == 1 else None

    def _of_branch(self, branch: str | None, name: str) -> list[str]:
        return [] if branch is None else self.values("branch", branch, name)[-1:]

    def addresses(self, remote: str, *, push: bool) -> list[str]:
        """
        :param remote: a name or an address; git takes an address for a name if a remote is called that.
        :param push: whether data is sent there.
        :returns: each address that git may use.
        """
        if push and (explicit := self.values("remote", remote, "pushurl")):
            return [self._rewritten(url, "insteadof") for url in explicit]
        found: list[str] = []
        for url in self.values("remote", remote, "url") or [remote]:
            pushed = self._rewritten(url, "pushinsteadof") if push else url
            found.append(pushed if pushed != url else self._rewritten(url, "insteadof"))
        return found

    def _rewritten(self, url: str, name: str) -> str:
        rules = [s for s in self.settings if s.section == "url" and s.name == name and s.value]
        fitting = [rule for rule in rules if url.startswith(rule.value)]
        if not fitting:
            return url
        longest = max(fitting, key=lambda rule: len(rule.value))
        return (longest.subsection or "") + url[len(longest.value) :]

    def programs(self) -> list[str]:
        """:returns: the settings by which git would run a program, by name."""
        return [s.key for s in self.settings if _runs_program(s)]

    def lazy(self) -> list[str]:
        """:returns: the settings by which git fetches on its own what is missing (partial clones), by name."""
        return [s.key for s in self.settings if (s.section, s.name) in _LAZY]

    def files(self) -> list[str]:
        """:returns: the files that git would read besides, and may quote."""
        return [s.value for s in self.settings if s.name in _FILES.get(s.section, ()) and s.value]

    def doubts(self) -> list[str]:
        """:returns: the settings that may send git elsewhere than its remotes say, by name."""
        return [s.key for s in self.settings if _misleads(s)]


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
