"""
What a person should look at before going on in a workspace where an agent was: files that programs run, load or obey by
themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from typing import Any

import msgspec

from ironcurtain.errors import ConfigurationError
from ironcurtain.project.changes import Change, What
from ironcurtain.project.gitdata import is_data_of_repositories, is_sample
from ironcurtain.project.gitsettings import DECIDING, SETTINGS, MalformedSettings, Setting, in_repository, parse
from ironcurtain.project.self_running import tables
from ironcurtain.project.tree import INSTALLED, TreeEntry
from ironcurtain.text.decoding import decode_text

_LINKS = "leads elsewhere: what reads or writes it touches a file outside"
_GIT_LINKS = "a link where git expects a file of its own: git follows it"
_SPECIAL = "is a FIFO, socket or device: a program that opens it may hang"
_PRIVILEGES = "runs with its owner's rights (set-user-id or set-group-id)"
_UNKNOWN = "is no data that git is known to keep in a repository: git may run or obey it"
_HIDDEN = "new and hidden: programs read such files by themselves"
_EXECUTABLE = "new as an executable: it runs if something calls its name"

GROUPED = 3
"""Number of hidden or executable files in a hidden directory, or one of packages, from which on they are told once."""


class SuspectFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """
    One file to look at.

    :param what: ``added``, ``changed`` or ``mode``.
    :param building: it only runs when the person builds or tests.
    """

    path: str
    what: What
    reason: str
    building: bool = False


MODULES = "node_modules"
"""
Where a package manager installs hundreds of packages with all their files: whatever runs one of them runs what the
agent has put there, so that the names of single files say nothing.
"""

Content = Callable[[Change], bytes | None]


class _Rank(IntEnum):
    """The smaller, the more dangerous."""

    REPOSITORY = 0
    GIT = 1
    OTHER = 2
    UNNAMED = 3
    BUILDING = 4


def findings(changes: Iterable[Change], before: Content, after: Content) -> list[SuspectFile]:
    """
    :param before: gives what a changed file held, or ``None`` if that is not known.
    :param after: gives what it holds.
    :returns: everything to look at, the most dangerous first, which is what git runs.
    """
    found, unnamed = list[tuple[_Rank, SuspectFile]](), list[SuspectFile]()
    for change in changes:
        if change.after is None:
            continue
        reasons = list(_of(change, change.after, before, after))
        packaged = [finding for rank, finding in reasons if _is_of_package(rank, finding)]
        unnamed += packaged[:1]
        found += [(rank, finding) for rank, finding in reasons if finding not in packaged]
        if not reasons and (why := _unnamed(change, change.after)):
            unnamed.append(_finding(change, why))
        if not reasons and MODULES not in change.path.split("/") and (why := tables()["builds"].reason(change.path)):
            found.append((_Rank.BUILDING, _finding(change, why, building=True)))
    found += [(_Rank.UNNAMED, finding) for finding in _grouped(unnamed)]
    return [finding for _, finding in sorted(found, key=lambda ranked: ranked[0])]


def _of(change: Change, now: TreeEntry, before: Content, after: Content) -> Iterator[tuple[_Rank, SuspectFile]]:
    git = list(_git_reasons(change, now, before, after))
    seen = dict.fromkeys((*_general_reasons(change.path, now), *(git or _reasons(change, now, before, after))))
    rank = _Rank.REPOSITORY if in_repository(change.path) else _Rank.GIT if git else _Rank.OTHER
    for reason in seen:
        yield rank, _finding(change, reason)


def _is_of_package(rank: _Rank, finding: SuspectFile) -> bool:
    """:returns: whether what is to be told of a file is told of its directory, if there are many."""
    always = (_LINKS, _SPECIAL, _PRIVILEGES)
    return rank is _Rank.OTHER and MODULES in finding.path.split("/")[:-1] and finding.reason not in always


def _unnamed(change: Change, now: TreeEntry) -> str:
    """:returns: what to tell of a file whose name says nothing; empty if nothing."""
    if in_repository(change.path):
        return ""
    was_executable = change.before is not None and change.before.kind == "file" and change.before.mode & 0o111
    if now.kind == "file" and now.mode & 0o111 and not was_executable:
        return _EXECUTABLE
    hidden = any(part.startswith(".") for part in change.path.split("/"))
    return _HIDDEN if hidden and change.before is None else ""


def _grouped(found: Sequence[SuspectFile]) -> Iterator[SuspectFile]:
    """:returns: the findings, one for all of a hidden directory, or of one with packages, if there are many."""
    groups: dict[str, list[SuspectFile]] = {}
    for finding in found:
        groups.setdefault(_group(finding.path), []).append(finding)
    for directory, within in groups.items():
        if not directory or len(within) < GROUPED:
            yield from within
            continue
        executable = sum(finding.reason == _EXECUTABLE for finding in within)
        kinds, advice = f"hidden or executable ({executable} of these)", "look through it"
        if any(finding.reason not in (_EXECUTABLE, _HIDDEN) for finding in within):
            kinds = f"hidden, executable ({executable}) or named like settings that programs obey"
            advice = "look through it, or install it anew"
        reason = f"has {len(within)} new files that are {kinds}: {advice}"
        yield SuspectFile(path=f"{directory}/", what="added", reason=reason)


def _group(path: str) -> str:
    """:returns: the outermost directory of a path that is hidden or contains packages; empty if there is none."""
    above = path.split("/")[:-1]
    depth = next((n for n, name in enumerate(above, 1) if name.startswith(".") or name in INSTALLED), 0)
    return "/".join(above[:depth])


def _finding(change: Change, reason: str, building: bool = False) -> SuspectFile:
    path = change.path.encode("utf-8", "backslashreplace").decode()  # it travels as JSON
    return SuspectFile(path=path, what=change.what, reason=reason, building=building)


def _general_reasons(path: str, now: TreeEntry) -> Iterator[str]:
    if now.kind == "other":
        yield _SPECIAL
    if now.kind == "link" and leads_out(path, now.target):
        yield _LINKS
    if now.kind == "file" and now.mode & 0o6000:
        yield _PRIVILEGES


def _git_reasons(change: Change, now: TreeEntry, before: Content, after: Content) -> Iterator[str]:
    name = _name(change)
    if now.kind == "link":
        if in_repository(change.path) or name in DECIDING:
            yield _GIT_LINKS
    elif name in SETTINGS:
        yield from _git_settings(change, before, after)
    elif now.kind == "file" and not is_sample(change.path) and not is_data_of_repositories(change.path):
        yield _reason("git", change.path, now) or _UNKNOWN
        return
    if reason := _reason("git", change.path, now):
        yield reason


def _reasons(change: Change, now: TreeEntry, before: Content, after: Content) -> Iterator[str]:
    if _name(change) == "package.json":
        yield from _package(change, before, after)
    if reason := _reason("programs", change.path, now):
        yield reason


def _name(change: Change) -> str:
    return change.path.rpartition("/")[2].lower()


def _reason(table: str, path: str, now: TreeEntry) -> str:
    if is_sample(path):
        return ""
    stands_for = f"{path}/pre-commit" if now.kind == "link" else path  # one for a directory brings its own files
    return tables()[table].reason(path) or tables()[table].reason(stands_for)


def leads_out(path: str, target: str) -> bool:
    """
    :param path: of a link within a tree.
    :param target: where it leads.
    :returns: whether that may be outside the tree. ``..`` counts only at the beginning, since behind a name it depends
        on where that name itself leads.
    """
    parts = [part for part in target.split("/") if part not in ("", ".")]
    climbs = next((count for count, part in enumerate(parts) if part != ".."), len(parts))
    return target.startswith("/") or climbs > path.count("/") or ".." in parts[climbs:]


def _git_settings(change: Change, before: Content, after: Content) -> Iterator[str]:
    # Any directory with a file of this name may be taken for a repository, not only one that is called .git.
    data = after(change)
    if (new := _settings(data)) is None:
        if data is None or in_repository(change.path):
            yield "git's settings, which cannot be compared: they may name programs that git runs"
        return
    was_file = change.before is not None and change.before.kind == "file"
    old = _settings(before(change)) if was_file else None
    known = {(setting.key, setting.value) for setting in old or ()}
    fresh = [setting for setting in new if (setting.key, setting.value) not in known]
    for which, what in (
        (lambda setting: setting.runs_program, "git runs what its settings name"),
        (lambda setting: setting.section == "alias", "git's settings make commands of"),
        (_leads_elsewhere, "git's settings send it elsewhere"),
    ):
        if keys := sorted({setting.key for setting in fresh if which(setting)}):
            yield f"{what}: {', '.join(keys)[:200]}"
    if "core.hookspath" in {setting.key for setting in fresh}:
        yield "git looks for hooks in another directory: core.hookspath"


def _leads_elsewhere(setting: Setting) -> bool:
    names = {
        ("remote", "url"),
        ("remote", "pushurl"),
        ("url", "insteadof"),
        ("url", "pushinsteadof"),
        ("core", "worktree"),
    }
    return setting.misleads or (setting.section, setting.name) in names


def _settings(data: bytes | None) -> tuple[Setting, ...] | None:
    try:
        return None if data is None else parse(data)
    except MalformedSettings:
        return None


def _package(change: Change, before: Content, after: Content) -> Iterator[str]:
    old, new = _scripts(before(change)), _scripts(after(change))
    if new is None or old is None:
        yield "npm runs its scripts, which cannot be compared"
    elif names := sorted(str(name) for name, line in new.items() if old.get(name) != line):
        yield f"npm runs its scripts, of which these are new or changed: {', '.join(names)[:200]}"


def _scripts(data: bytes | None) -> dict[str, Any] | None:
    if data is None:
        return None
    try:
        text = decode_text("package.json", data or b"{}")  # npm reads a byte order mark, too
        scripts = msgspec.json.decode(text, type=dict[str, Any]).get("scripts", {})
    except (ConfigurationError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return scripts if isinstance(scripts, dict) else None
