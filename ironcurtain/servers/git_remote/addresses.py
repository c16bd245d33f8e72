"""Check the addresses of repositories, and build the command line of a clone."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ironcurtain.errors import UsageError
from ironcurtain.http.urls import Authority, UnclearAddress, read_authority

ADDRESS_LIMIT = 2000
"""Maximum length in characters of an address."""

_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_SHORT = re.compile(r"(?:(?P<user>[^/@:]+)@)?(?P<host>[^/@:]+):(?P<path>[^:].*)", re.DOTALL)

GIT_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.askPass=",
    "init.templateDir=",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "filter.lfs.process=",
    "filter.lfs.smudge=",
    "filter.lfs.required=false",
    "http.followRedirects=initial",
    "transfer.fsckObjects=true",
    "advice.detachedHead=false",
)
"""
Options for the clone. Nothing of the repository or the user's templates is run; files of Git LFS stay pointers, since
fetching them would use a file of the repository. The user's own settings (proxies, credential helpers) apply.
"""


def checked_address(address: str) -> str:
    """
    :param address: ``https://...``, ``ssh://...`` or ``user@host:path``.
    :returns: the same.
    :raises UsageError: it is ambiguous for git, not encrypted, or contains a password.
    """
    if not address.isprintable() or not address.isascii() or " " in address or len(address) > ADDRESS_LIMIT:
        raise UsageError("the address of a repository has printable ASCII characters only, and no spaces")
    scheme, colons, _ = address.partition("://")
    if colons:
        _check_url(address, scheme.lower())
    elif (short := _SHORT.fullmatch(address)) is None or "::" in address:
        raise UsageError(f"{address} is no address of a repository: use https://HOST/PATH or ssh://USER@HOST/PATH")
    else:
        _check_parts(address, _authority(address, address.removesuffix(f":{short['path']}")), short["path"])
    return address


def authority_of(address: str) -> tuple[str, Authority]:
    """:returns: the scheme, ``https`` or ``ssh``, and the authority of a checked address."""
    scheme, colons, rest = address.partition("://")
    if colons:
        return scheme.lower(), read_authority(rest.partition("/")[0])
    return "ssh", read_authority(address.partition(":")[0])


def _check_url(address: str, scheme: str) -> None:
    if scheme not in ("https", "ssh"):
        raise UsageError(f"repositories are fetched by https or ssh, not {scheme}: {_without_password(address)}")
    written, _, path = address.partition("://")[2].partition("/")
    authority = _authority(address, written)
    if ":" in authority.user or (scheme == "https" and authority.user):
        raise UsageError(
            "the address contains a password or token, which would end up in process lists and files: omit it, and "
            "let git's credential helper (git help credentials) or an ssh key answer for you"
        )
    if "?" in path or "#" in path:
        raise UsageError(f"{address} is no address of a repository: it has a query or a fragment")
    _check_parts(address, authority, path.lstrip("/"))


def _authority(address: str, written: str) -> Authority:
    try:
        return read_authority(written)
    except UnclearAddress as e:
        raise UsageError(f"{_without_password(address)} is no address of a repository: {e}") from None


def _check_parts(address: str, authority: Authority, path: str) -> None:
    # ssh parses an argument that begins with a dash as an option (CVE-2017-1000117).
    if (authority.user and not _USER.fullmatch(authority.user)) or not path or path.startswith("-") or "\\" in path:
        raise UsageError(f"{address} is no address of a repository: user or path is wrong")


def _without_password(address: str) -> str:
    return re.sub(r"(?<=://)[^/@]*@", "", address)


def clone_command(git: str, address: str, directory: str) -> list[str]:
    """:returns: the command line of a clone into an empty directory."""
    settings = [word for setting in GIT_SETTINGS for word in ("-c", setting)]
    options = ["--template=", "--no-recurse-submodules", "--no-local", "--progress"]
    return [git, *settings, "clone", *options, "--", address, directory]


def clone_environment(small: Mapping[str, str], environ: Mapping[str, str], own_account: bool) -> dict[str, str]:
    """
    :param small: the small environment of other programs.
    :param environ: the environment of this process.
    :param own_account: whether git runs as this process's account, and so may use its ssh agent.
    """
    wanted = {
        "GIT_ALLOW_PROTOCOL": "https:ssh",  # also for redirects of a server
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_SSH_COMMAND": "ssh -oBatchMode=yes -oClearAllForwardings=yes -oForwardAgent=no -oPermitLocalCommand=no",
        "GIT_SSH_VARIANT": "ssh",
        "LC_ALL": "C.UTF-8",
    }
    agent = {"SSH_AUTH_SOCK": environ["SSH_AUTH_SOCK"]} if own_account and environ.get("SSH_AUTH_SOCK") else {}
    return {**small, **agent, **wanted}
