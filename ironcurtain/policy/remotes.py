"""
Find the remote that a call to a git server refers to, according to the repository's settings.

The result is judged and displayed, but it is not a security boundary. A git server runs in a sandbox, without network
access unless its configuration grants it. Only the server ``git-remote`` fetches and pushes, and it connects only to
the address that was judged.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from urllib.parse import unquote

from ironcurtain.policy.judgement import Judgement, Refusal
from ironcurtain.policy.matching import Value
from ironcurtain.policy.paths import Places, UnresolvablePath, real_path
from ironcurtain.policy.roles import FREE_TEXT_ROLES, REPOSITORY_ROLES
from ironcurtain.policy.targets import HostileRemote, Target, git_target, local_path

UNCERTAIN = "an address that cannot be determined from the repository's settings"

_DECIDING = {b"url", b"include", b"includeif", b"remotes"}
"""Sections and keys that can make git use another address than the remote's ``url``."""
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
    Resolve the remotes that a call names, or git's default remote if it names none.

    :raises Refusal: git would run a program for a remote, or read it as an option.
    """
    plan = judgement.plan
    named = [value for role in plan.roles if role in REPOSITORY_ROLES for value in judgement.values.get(role, ())]
    repository = next((value.path for value in named if value.argument in plan.repositories), "")
    known = places.workspace.holds(repository) if repository else False
    values = [value for value in judgement.values.pop("git-remote-url", ()) if value.text]
    for value in values:
        # The name of a remote can look like an address, so the repository's settings come first.
        address = (_address(judgement, repository, value.text) if known else None) or value.text
        value.targets = (_checked(judgement, address, repository),)
    for name in plan.remotes:
        missing = known and judgement.arguments.get(name) in (None, "")
        if missing and (default := _address(judgement, repository, "origin")) is not None:
            target = _checked(judgement, default, repository)
            judgement.note("default remote", "pass", target.text)
            values.append(Value(name, target.text, targets=(target,)))
    if values:
        judgement.values["git-remote-url"] = values


def _checked(judgement: Judgement, address: str, repository: str) -> Target:
    if address == UNCERTAIN:
        return Target(address, certain=False)
    try:
        target = git_target(address)
    except HostileRemote as e:
        raise Refusal("structural-git-remote", f"the remote {address!r} is not allowed: {e}") from None
    if (path := local_path(address)) is not None:
        start = "" if path.startswith("/") else repository
        with suppress(UnresolvablePath):
            judgement.refuse_protected(real_path(unquote(path), start, files=judgement.files))
    return target


def _address(judgement: Judgement, repository: str, remote: str) -> str | None:
    """:returns: the address of a remote in a repository's settings; ``None`` if they do not contain it."""
    from dulwich.config import ConfigFile  # takes 50 ms to load, and few calls need it

    try:
        data = judgement.files.git_settings(repository)
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
