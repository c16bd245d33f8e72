"""
Judge what calls to a git server name within a repository: files, pathspecs and objects.

Annotations give such arguments no role of a path, since they are relative to the repository and not forwarded as real
paths. Here only protected paths matter: git itself stays in its repository and in its sandbox.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from ironcurtain.policy.judgement import Judgement
from ironcurtain.policy.paths import Places, UnresolvablePath, real_path
from ironcurtain.policy.roles import PATH_ROLES

_MAGIC = re.compile(r":(?:\([^)]*\)|[/!^]+|:)?")
"""What a pathspec can begin with (gitglossary(7), "pathspec")."""

_FREE = frozenset(("none", "branch-name"))
"""Roles that are not judged otherwise. Git takes the name of a branch for a file if there is no such branch."""


def check_files(judgement: Judgement, roles: Mapping[str, Sequence[str]], places: Places) -> None:
    """
    :param roles: the roles of every argument of the tool.
    :raises Refusal: an argument without a role names a protected path, as a file or within a revision.
    """
    repositories = {v.path for role, values in judgement.values.items() if role in PATH_ROLES for v in values}
    for name, value in judgement.arguments.items():
        if not _FREE.issuperset(roles.get(name, ())):
            continue
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, str):
                for repository in repositories or {places.workspace.path}:
                    _check(judgement, item, repository, places)


def _check(judgement: Judgement, text: str, repository: str, places: Places) -> None:
    for path in _paths(text):
        with suppress(UnresolvablePath):
            if path.startswith("/"):
                judgement.refuse_protected(places.real(path, files=judgement.files))
            judgement.refuse_protected(real_path(path, repository, files=judgement.files))


def _paths(text: str) -> Iterator[str]:
    """:returns: the text as a path, as a pathspec, and as an object (``HEAD:file``, gitrevisions(7))."""
    yield text
    if (magic := _MAGIC.match(text)) is not None:
        yield text[magic.end() :]
    if ":" in text:
        yield text.partition(":")[2]
        yield text.rpartition(":")[2]
