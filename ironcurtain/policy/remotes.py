"""
Where a call of a git server would connect to, as far as a repository's own settings tell.

That is for judging and showing only: nothing relies on it. A git server runs in a sandbox, without the network unless
its configuration gives it some; what fetches and pushes is the server ``git-remote``, which connects to the address
that was judged and to no other.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from io import BytesIO
from urllib.parse import unquote

from ironcurtain.policy.judgement import Judgement, Refusal
from ironcurtain.policy.matching import Value
from ironcurtain.policy.paths import Places, UnresolvablePath, real_path
from ironcurtain.policy.roles import FREE_TEXT_ROLES, REPOSITORY_ROLES
from ironcurtain.policy.targets import HostileRemote, Target, git_target, local_path

SIZE_LIMIT = 1024 * 1024
"""Most bytes of settings that are read: 1 MiB (a thousand times what is usual)."""

UNCERTAIN = "an address that is not certain, since the repository's settings say more than one thing"

_DECIDING = {b"url", b"include", b"includeif", b"remotes"}
"""Sections and names of settings by which git may take another address than a remote's own."""
_DECIDING_NAMES = {b"pushurl", b"pushremote", b"pushdefault", b"vcs", b"proxy"}


def check_options(judgement: Judgement, roles: Mapping[str, Sequence[str]]) -> None:
    """
    :param roles: the roles of every argument of the tool.
    :raises Refusal: git would read an argument as an option.
    """
    for name, value in judgement.arguments.items():
        items = value if isinstance(value, list) else [value]
        dashed = any(isinstance(item, str) and item.startswith("-") for item in items)
        if dashed and FREE_TEXT_ROLES.isdisjoint(roles.get(name, ())):
            raise Refusal("structural-option-injection", f"{name} begins with a dash, like an option")


def resolve(judgement: Judgement, places: Places) -> None:
    """
    Find where the remotes lead that a call names, or that git would take if it names none.

    :raises Refusal: one would run a program, or be read as an option.
    """
    plan = judgement.plan
    named = [value for role in plan.roles if role in REPOSITORY_ROLES for value in judgement.values.get(role, ())]
    repository = next((value.path for value in named if value.argument in plan.repositories), "")
    known = places.workspace.holds(repository) if repository else False
    values = [value for value in judgement.values.pop("git-remote-url", ()) if value.text]
    for value in values:
        # A name may look like an address.
        address = (_address(repository, value.text) if known else None) or value.text
        value.targets = (_checked(judgement, address, repository),)
    for name in plan.remotes:
        missing = known and judgement.arguments.get(name) in (None, "")
        if missing and (default := _address(repository, "origin")) is not None:
            target = _checked(judgement, default, repository)
            judgement.note("default remote", "pass", target.text)
            values.append(Value(name, target.text, targets=(target,)))
    if values:
        judgement.values["git-remote-url"] = values


def _checked(judgement: Judgement, address: str, repository: str) -> Target:
    if address == UNCERTAIN:
        return Target(address)
    try:
        target = git_target(address)
    except HostileRemote as e:
        raise Refusal("structural-git-remote", f"the remote {address!r} is not passed on: {e}") from None
    if (path := local_path(address)) is not None:
        with suppress(UnresolvablePath):
            judgement.refuse_protected(real_path(unquote(path), "" if path.startswith("/") else repository))
    return target


def _address(repository: str, remote: str) -> str | None:
    """:returns: what a repository's settings say that a remote is; ``None`` if they do not speak of it."""
    from dulwich.config import ConfigFile  # 50 ms, and few calls need it

    try:
        data = _settings(repository)
        settings = None if data is None else ConfigFile.from_file(BytesIO(data), expand_includes=False)
    except (OSError, ValueError):
        return UNCERTAIN
    if settings is None:
        return None
    addresses = []
    for section in settings.sections():
        kind, values = section[0].lower(), [(name.lower(), value) for name, value in settings.items(section)]
        elsewhere = kind == b"branch" and any(name == b"remote" and value != b"origin" for name, value in values)
        if kind in _DECIDING or elsewhere or any(name in _DECIDING_NAMES for name, _ in values):
            return UNCERTAIN
        if kind == b"remote" and section[1:] == (os.fsencode(remote),):
            addresses += [value for name, value in values if name == b"url"]
    return os.fsdecode(addresses[0]) if len(addresses) == 1 else UNCERTAIN if addresses else None


def _settings(repository: str) -> bytes | None:
    """:returns: the file ``.git/config``, opened through no link."""
    directory = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    with ExitStack() as opened:
        outer = os.open(repository, directory)
        opened.callback(os.close, outer)
        try:
            inner = os.open(".git", directory, dir_fd=outer)
        except FileNotFoundError:
            return None
        opened.callback(os.close, inner)
        config = os.open("config", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=inner)
        file = opened.enter_context(open(config, "rb"))
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size > SIZE_LIMIT:
            raise ValueError("no ordinary file of ordinary size")
        return file.read(SIZE_LIMIT)
