"""Find the name and e-mail address with which git makes the commits of a session. No other setting of git's is used."""

from __future__ import annotations

import os
from collections.abc import Mapping
from io import BytesIO

import msgspec

from ironcurtain.process import bounded
from ironcurtain.process.accounts import Account
from ironcurtain.process.bounded import Bounds, Unfinished
from ironcurtain.process.search_path import host_path, host_program
from ironcurtain.sandbox.linked_repository import LinkedRepository, repository_settings

GIT_SECONDS = 5.0
"""Time limit in seconds for git to read its settings (it takes 2 ms)."""

LENGTH_LIMIT = 500
"""Maximum length in characters of a name or an address."""

_ROLES = ("AUTHOR", "COMMITTER")
_PLACES = ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL")


class GitIdentity(msgspec.Struct, frozen=True):
    """Who makes a commit; an empty value is one that git does not know."""

    name: str = ""
    email: str = ""

    def settings(self) -> bytes:
        """:returns: content for a ``.gitconfig``; empty if nothing is known."""
        known = [("name", self.name), ("email", self.email)]
        lines = [f"\t{key} = {_quoted(value)}\n" for key, value in known if value]
        return "".join(["[user]\n", *lines]).encode() if lines else b""

    def variables(self) -> dict[str, str]:
        """:returns: the same as environment variables (git-commit-tree(1)), which override every setting."""
        known = (("NAME", self.name), ("EMAIL", self.email))
        return {f"GIT_{role}_{part}": value for role in _ROLES for part, value in known if value}


def user_identity(environ: Mapping[str, str], account: Account | None, workspace: str) -> GitIdentity:
    """
    Ask git for the user's own settings, outside every repository, so that no workspace can make it run anything.

    :param account: the account whose settings to read, if not that of this process, which is root then.
    :param workspace: real path of the workspace: a program there is not run.
    """
    search = host_path(environ.get("PATH", os.defpath), workspace)
    if (git := host_program("git", search, workspace)) is None:
        return GitIdentity()
    own = {name: environ[name] for name in _PLACES if name in environ}
    places = own if account is None else {"HOME": account.home}
    if not any(map(os.path.exists, _files(places))):
        return GitIdentity()
    command = [git, "config", "--global", "--includes", "--null", "--get-regexp", r"^user\.(name|email)$"]
    try:
        done = bounded.run(
            command if account is None else account.command(command),
            Bounds(GIT_SECONDS, whole=True),
            environment={"PATH": search, **places},
            cwd="/",
        )
    except (OSError, Unfinished):
        return GitIdentity()
    return _identity(dict(entry.split(b"\n", 1) for entry in done.output.split(b"\0") if b"\n" in entry))


def repository_identity(workspace: str, repository: LinkedRepository | None) -> GitIdentity:
    """
    Read the settings of a workspace's repository as data: agents can have written them.

    :param workspace: real path of a directory.
    :param repository: its repository, if that is elsewhere.
    """
    from dulwich.config import ConfigFile  # takes 50 ms to load

    try:
        content = repository_settings(workspace, repository)
        found = ConfigFile.from_file(BytesIO(content), expand_includes=False)
    except (OSError, ValueError):
        return GitIdentity()
    sections = [section for section in found.sections() if len(section) == 1 and section[0].lower() == b"user"]
    items = (item for section in sections for item in found.items(section))
    return _identity({b"user." + key.lower(): value for key, value in items})


def commit_variables(
    environ: Mapping[str, str], account: Account | None, workspace: str, repository: LinkedRepository | None
) -> dict[str, str]:
    """
    :param environ: the environment of this process, whose variables of the same names have priority.
    :param account: as for :func:`user_identity`.
    :param workspace: as for :func:`repository_identity`, with ``repository``.
    :returns: the variables with which git, wherever it runs, commits as it would for the user in this workspace.
    """
    of_user = user_identity(environ, account, workspace)
    if account is not None and of_user == GitIdentity():  # an account without a person
        of_user = user_identity(environ, None, workspace)
    of_repository = repository_identity(workspace, repository)
    names = [f"GIT_{role}_{part}" for role in _ROLES for part in ("NAME", "EMAIL")]
    given = {name: environ[name] for name in names if environ.get(name)} if account is None else {}
    return {**of_user.variables(), **of_repository.variables(), **given}


def _files(places: Mapping[str, str]) -> list[str]:
    """:returns: where git looks for the user's settings (git-config(1), "FILES")."""
    if "GIT_CONFIG_GLOBAL" in places:
        return [places["GIT_CONFIG_GLOBAL"]]
    home = places.get("HOME", "")
    return [f"{home}/.gitconfig", f"{places.get('XDG_CONFIG_HOME') or f'{home}/.config'}/git/config"]


def _identity(found: Mapping[bytes, bytes]) -> GitIdentity:
    name, email = (found.get(key, b"").decode("utf-8", "replace") for key in (b"user.name", b"user.email"))
    return GitIdentity(_plain(name), _plain(email))


def _plain(value: str) -> str:
    return value.replace("\0", "")[:LENGTH_LIMIT]


def _quoted(value: str) -> str:
    """:returns: a value, quoted for git's settings (git-config(1), "Values")."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'
