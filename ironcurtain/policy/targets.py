"""
Where an address leads: web addresses, and git remotes in their several spellings.

An address that cannot be understood for certain gets no host, and then no pattern covers it.
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
"""What git speaks itself. For any other scheme it runs a program of that name (gitremote-helpers(7))."""


@dataclass(frozen=True, slots=True)
class Target:
    """
    Where an address leads.

    :param text: the address, for people.
    :param hosts: each host that some reader of the address would connect to; empty if that is not certain.
    :param repository: ``host/owner/name`` of a git remote, without ``.git``; empty for anything else.
    """

    text: str
    hosts: tuple[Host, ...] = ()
    repository: str = ""


class HostileRemote(ValueError):
    """A git remote that would run a program, or be read as an option. Never passed on."""


def web_target(text: str) -> Target:
    """
    Read an address that is to be fetched by HTTP.

    Programs differ in how they read a backslash, so both readings are judged.

    :returns: a target without hosts for other schemes and for what no browser would open.
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
    :returns: scheme, host and port of an address that is to be fetched by HTTP; ``None`` if programs could differ about
        them, or about what they read.
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
    """Whether the address of a git remote names a host for certain."""
    try:
        return bool(git_target(text).hosts)
    except HostileRemote:
        return False


def _authority_host(authority: str) -> Host | None:
    """:returns: the host in ``user@host:port``, ``None`` if there is none or the port is no port."""
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
    Read the address of a git remote, as git itself does (git-fetch(1), "Git URLs").

    :returns: a target without hosts for local paths and for addresses whose host is not certain.
    :raises HostileRemote: git would take it for an option, or run a program that the address names.
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
        raise HostileRemote("git would take it for an option")
    if _CONTROLS.search(text):
        raise HostileRemote("it has control characters")
    program = text.partition("::")[0]
    if "::" in text and not re.search(r"[/@\[:]", program):
        raise HostileRemote(f"git would run a program git-remote-{program} for it")


def is_local(text: str) -> bool:
    """Whether git takes the text for a path: it has no colon, or a slash before the first one."""
    before, colon, _ = text.partition(":")
    return "://" not in text and (not colon or "/" in before)


def local_path(text: str) -> str | None:
    """:returns: the path that a ``file:`` address or a local remote names, else ``None``."""
    if text.lower().startswith("file://"):
        return "/" + text[7:].partition("/")[2]
    return text if is_local(text) else None


def _split_short_form(text: str) -> tuple[str, str]:
    """:returns: authority and path of ``user@host:path``; an IPv6 host stands in brackets."""
    if bracketed := re.match(r"((?:[^@\[]*@)?\[[^\]]*\]):(.*)\Z", text):
        return bracketed[1], bracketed[2].removeprefix("/")
    authority, _, path = text.partition(":")
    return authority, path.removeprefix("/")


def _git_target(text: str, authority: str, path: str) -> Target:
    address = authority.rpartition("@")[2]
    if address.startswith("-") or authority.startswith("-"):
        raise HostileRemote("ssh would take its host for an option")
    if re.search(r"[\\?#\s]", authority) or "%" in address or not address.isascii():
        return Target(text)
    host = _authority_host(authority)
    if host is None:
        return Target(text)
    name = path.removesuffix("/").removesuffix(".git")
    return Target(text, (host,), f"{host.name}/{name}" if name else "")
