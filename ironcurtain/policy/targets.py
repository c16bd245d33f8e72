"""
Parse addresses: URLs, and git remotes in all their forms.

An address whose host is ambiguous has no host, so that no pattern matches it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ironcurtain.policy.hosts import Host, parse_host

_TRIMMED = "".join(map(chr, range(0x21)))
_DROPPED = re.compile(r"[\t\n\r]")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_WEB_SCHEMES = frozenset(("http", "https"))
_PORT = re.compile(r"[0-9]*\Z")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f]")

GIT_SCHEMES = frozenset(("https", "http", "ssh", "git", "git+ssh", "ssh+git", "ftp", "ftps", "file"))
"""Schemes that git implements. For any other scheme it runs a program of that name (gitremote-helpers(7))."""


@dataclass(frozen=True, slots=True)
class Target:
    """
    The destination of an address.

    :param text: the address, for messages.
    :param hosts: each host that a program could connect to for this address; empty if they cannot be determined.
    :param repository: ``host/owner/name`` of a git remote, without ``.git``; empty for other addresses.
    """

    text: str
    hosts: tuple[Host, ...] = ()
    repository: str = ""


class HostileRemote(ValueError):
    """A git remote for which git would run a program, or which it would read as an option. It is never forwarded."""


def web_target(text: str) -> Target:
    """
    Parse a URL that is fetched by HTTP.

    Programs interpret a backslash differently, so the target has the hosts of both interpretations.

    :returns: a target, without hosts for other schemes and for URLs that a browser would not open.
    """
    url = _DROPPED.sub("", text.strip(_TRIMMED))
    scheme = _SCHEME.match(url)
    if not scheme or scheme[1].lower() not in _WEB_SCHEMES:
        return Target(text)
    rest = url[scheme.end() :]
    host = _authority_host(re.split(r"[/\\?#]", rest.lstrip("/\\"), maxsplit=1)[0])
    if host is None:
        return Target(text)
    other = _authority_host(re.split(r"[/?#]", rest[2:], maxsplit=1)[0]) if rest.startswith("//") else None
    return Target(text, (host,) if other is None or other == host else (host, other))


def web_origin(text: str) -> str | None:
    """
    :returns: scheme, host and port of a URL that is fetched by HTTP; ``None`` if programs could interpret it
        differently.
    """
    url = text.strip(_TRIMMED)
    scheme = _SCHEME.match(url)
    if not scheme or scheme[1].lower() not in _WEB_SCHEMES or "\\" in url or _DROPPED.search(url):
        return None
    if not url.startswith("//", scheme.end()):
        return None
    authority = re.split(r"[/?#]", url[scheme.end() + 2 :], maxsplit=1)[0]
    host = _authority_host(authority)
    if host is None:
        return None
    number = re.search(r":([0-9]+)\Z", authority)
    port = int(number[1]) if number else {"http": 80, "https": 443}[scheme[1].lower()]
    return f"{scheme[1].lower()}://{host.name if ':' not in host.name else f'[{host.name}]'}:{port}"


def is_certain_remote(text: str) -> bool:
    """Whether the address of a git remote has an unambiguous host."""
    try:
        return bool(git_target(text).hosts)
    except HostileRemote:
        return False


def _authority_host(authority: str) -> Host | None:
    """:returns: the host in ``user@host:port``, ``None`` if it has no host or an invalid port."""
    address = authority.rpartition("@")[2]
    if address.startswith("["):
        host, closing, port = address.partition("]")
        host += closing
        if port and not port.startswith(":"):
            return None
        port = port[1:]
    else:
        host, _, port = address.partition(":")
    if not _PORT.match(port) or len(port) > 5 or int(port or 0) > 65535:
        return None
    return parse_host(host) if host else None


def git_target(text: str) -> Target:
    """
    Parse the address of a git remote, as git itself does (git-fetch(1), "Git URLs").

    :returns: a target, without hosts for local paths and for addresses whose host is ambiguous.
    :raises HostileRemote: git would read the address as an option, or run a program that it names.
    """
    _refuse_hostile(text)
    scheme, separator, rest = text.partition("://")
    if separator:
        if scheme.lower() not in GIT_SCHEMES:
            raise HostileRemote(f"git would run a program git-remote-{scheme} for it")
        authority, _, path = rest.partition("/")
        return Target(text) if scheme.lower() == "file" else _git_target(text, authority, path)
    if is_local(text):
        return Target(text)
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
    address = authority.rpartition("@")[2]
    if address.startswith("-") or authority.startswith("-"):
        raise HostileRemote("ssh would read its host as an option")
    if re.search(r"[\\?#\s]", authority) or "%" in address or not address.isascii():
        return Target(text)
    host = _authority_host(authority)
    if host is None:
        return Target(text)
    name = path.removesuffix("/").removesuffix(".git")
    return Target(text, (host,), f"{host.name}/{name}" if name else "")
