"""
Parse addresses: URLs, and git remotes in all their forms.

Each address has the host that every program connects to, or none. Those that programs could read in different ways are
refused.
"""

from __future__ import annotations

import re

import msgspec

from ironcurtain.http.hosts import Host
from ironcurtain.http.urls import UnclearAddress, read_authority, read_web_address

_CONTROLS = re.compile(r"[\x00-\x1f\x7f]")
_PATH = re.compile(r"(?!\.\.?(?:/|\Z))[A-Za-z0-9._~+-]+(?:/(?!\.\.?(?:/|\Z))[A-Za-z0-9._~+-]+)*")
"""Paths of repositories that servers read as they are written."""

GIT_SCHEMES = frozenset(("https", "http", "ssh", "git", "git+ssh", "ssh+git", "ftp", "ftps", "file"))
"""Schemes that git implements. For any other scheme it runs a program of that name (gitremote-helpers(7))."""


class Target(msgspec.Struct, frozen=True):
    """
    The destination of an address.

    :param text: the address, for messages.
    :param host: the host that every program connects to; ``None`` if it is none, or is not known.
    :param repository: ``host/owner/name`` of a git remote, without ``.git``; empty for other addresses.
    :param port: of a connection that is judged; ``None`` where only the host counts.
    :param certain: ``False`` if it may be any address, such as that of a remote whose settings are not known.
    """

    text: str
    host: Host | None = None
    repository: str = ""
    certain: bool = True
    port: int | None = None

    @property
    def is_plain(self) -> bool:
        """Whether the server reads the path of the repository as it is written, so that it is not another one's."""
        return _PATH.fullmatch(self.repository.partition("/")[2]) is not None


class HostileRemote(ValueError):
    """
    A git remote for which git would run a program, which it would read as an option, or which programs could read in
    different ways. It is never forwarded.
    """


def web_target(text: str) -> Target:
    """
    Parse a URL that is fetched by HTTP.

    :raises UnclearAddress: it is no such URL, or programs could read it in different ways.
    """
    return Target(text, read_web_address(text).host)


def web_origin(text: str) -> str | None:
    """
    :returns: scheme, host and port of a URL that is fetched by HTTP; ``None`` if programs could read it in different
        ways.
    """
    try:
        return read_web_address(text).origin
    except UnclearAddress:
        return None


def is_certain_remote(text: str) -> bool:
    """Whether the address of a git remote has a host."""
    try:
        return git_target(text).host is not None
    except HostileRemote:
        return False


def git_target(text: str) -> Target:
    """
    Parse the address of a git remote, as git itself does (git-fetch(1), "Git URLs").

    :returns: a target, without a host for local paths. The name of a remote is uncertain.
    :raises HostileRemote: git would read the address as an option, or run a program that it names; or programs could
        read it in different ways.
    """
    _refuse_hostile(text)
    scheme, separator, rest = text.partition("://")
    if separator:
        if scheme.lower() not in GIT_SCHEMES:
            raise HostileRemote(f"git would run a program git-remote-{scheme} for it")
        authority, _, path = rest.partition("/")
        return Target(text) if scheme.lower() == "file" else _git_target(text, authority, path)
    if is_local(text):
        return Target(text, certain=text.startswith(("/", "./", "../", "~/")))
    return _git_target(text, *_split_short_form(text))


def _refuse_hostile(text: str) -> None:
    if text.startswith("-"):
        raise HostileRemote("git would read it as an option")
    if _CONTROLS.search(text):
        raise HostileRemote("it contains control characters")
    program = text.partition("::")[0]
    if "::" in text and not re.search(r"[/@\[:]", program):
        raise HostileRemote(f"git would run a program git-remote-{program} for it")


def is_local(text: str) -> bool:
    """Whether git reads the text as a path: it has no colon, or a slash before the first one."""
    before, colon, _ = text.partition(":")
    return "://" not in text and (not colon or "/" in before)


def local_path(text: str) -> str | None:
    """:returns: the path of a ``file:`` URL or a local remote, otherwise ``None``."""
    if text.lower().startswith("file://"):
        return "/" + text[7:].partition("/")[2]
    return text if is_local(text) else None


def _split_short_form(text: str) -> tuple[str, str]:
    """:returns: authority and path of ``user@host:path``, where an IPv6 host is in brackets."""
    if bracketed := re.match(r"((?:[^@\[]*@)?\[[^\]]*\]):(.*)\Z", text):
        return bracketed[1], bracketed[2].removeprefix("/")
    authority, _, path = text.partition(":")
    return authority, path.removeprefix("/")


def _git_target(text: str, authority: str, path: str) -> Target:
    if authority.rpartition("@")[2].startswith("-") or authority.startswith("-"):
        raise HostileRemote("ssh would read its host as an option")
    if "\\" in text:
        raise HostileRemote("it contains a backslash, which some programs read as a slash")
    try:
        host = read_authority(authority).host
    except UnclearAddress as e:
        raise HostileRemote(f"programs could read it in different ways: {e}") from None
    name = path.removesuffix("/").removesuffix(".git")
    return Target(text, host, f"{host.name}/{name}" if name else "")
