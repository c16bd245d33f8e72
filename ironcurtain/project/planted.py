"""
What a person should look at before going on in a workspace where an agent was: files that programs run, load or obey by
themselves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import msgspec

from ironcurtain.project.changes import Change, What
from ironcurtain.project.gitsettings import DECIDING, SETTINGS, MalformedSettings, Setting, in_repository, parse
from ironcurtain.project.tree import TreeEntry


@dataclass(frozen=True, slots=True)
class PlantedRule:
    """
    :param pattern: of the whole path; ``**/`` is any number of directories, ``*`` any part of a name.
    :param reason: what happens to whoever does not look.
    """

    pattern: re.Pattern[str]
    reason: str


def _rules(*table: tuple[str, str]) -> tuple[PlantedRule, ...]:
    return tuple(PlantedRule(_compiled(pattern), reason) for patterns, reason in table for pattern in patterns.split())


def _compiled(pattern: str) -> re.Pattern[str]:
    parts = re.split(r"(\*\*/|/\*\*$|\*)", pattern)
    words = {"**/": "(?:.*/)?", "/**": "/.*", "*": "[^/]*"}
    # Some file systems take names in another case for the same.
    return re.compile("".join(words.get(part) or re.escape(part) for part in parts), re.DOTALL | re.IGNORECASE)


GIT_RULES = _rules(
    ("**/.git/hooks/* **/*.git/hooks/* **/hooks/pre-* **/hooks/post-* **/hooks/*-msg **/hooks/update "
     "**/hooks/fsmonitor-watchman **/hooks/reference-transaction **/hooks/push-to-checkout **/hooks/sendemail-validate",
     "git runs it at your next commit, checkout or push"),
    ("**/.git/modules/**/hooks/* **/.git/worktrees/**/hooks/*", "git runs it in a submodule or worktree"),
    ("**/.git/info/attributes **/.gitattributes", "names filters and drivers that git's settings may run"),
    ("**/.git **/.git/commondir **/.git/gitdir **/.git/worktrees/*/commondir **/.git/worktrees/*/gitdir",
     "makes git use a repository, and its settings, from elsewhere"),
    ("**/.gitmodules", "names repositories that git fetches"),
)  # fmt: skip
"""New and changed files of these names are git's to run or obey."""

RULES = _rules(
    ("**/.husky/** **/.githooks/** **/lefthook.* **/.lefthook.*", "runs at your next commit or push"),
    ("**/.pre-commit-config.yaml **/.pre-commit-hooks.yaml **/.lintstagedrc*", "names programs that run at a commit"),
    ("**/.envrc **/.env **/.env.* **/mise.toml **/.mise.toml **/.mise/** **/.tool-versions",
     "is loaded into your shell's or programs' environment when you enter the directory"),
    ("**/.vscode/** **/*.code-workspace", "your editor runs or obeys it when it opens the directory"),
    ("**/.idea/** **/*.iml **/.fleet/** **/.zed/** **/.nova/** **/*.sublime-project **/.theia/**",
     "your editor obeys it when it opens the directory"),
    ("**/.devcontainer/** **/.devcontainer.json", "your editor builds and runs it as a container"),
    ("**/.vimrc **/_vimrc **/.exrc **/.nvimrc **/.nvim.lua **/.dir-locals.el **/.lvimrc",
     "your editor may run it when it opens a file here"),
    ("**/.gdbinit **/.lldbinit **/.rprofile **/.irbrc **/.pryrc **/.psqlrc **/.sqliterc",
     "a debugger, interpreter or database client runs it when it starts here"),
    ("**/.mcp.json **/mcp.json **/.cursor/** **/.cursorrules **/.windsurf/** **/.windsurfrules **/.roo/** **/.cline*",
     "an agent on your machine loads its servers and instructions"),
    ("**/.claude/** **/claude.md **/claude.local.md **/agents.md **/agents.override.md **/.agents/**",
     "an agent on your machine obeys it, and may run what it names"),
    ("**/.codex/** **/.gemini/** **/gemini.md **/.opencode/** **/opencode.json* **/.goosehints "
     "**/.aider* **/.continue/**",
     "an agent on your machine obeys it, and may run what it names"),
    ("**/.github/workflows/** **/.github/actions/** **/action.y*ml **/.gitlab-ci.yml **/.circleci/**",
     "runs on your build servers, with their secrets, once it is pushed"),
    ("**/.github/copilot-instructions.md **/.github/instructions/** **/.github/copilot/**",
     "an agent on your machine or on the server obeys it"),
    ("**/jenkinsfile* **/.travis.yml **/azure-pipelines.y*ml **/bitbucket-pipelines.yml **/.drone.yml "
     "**/.woodpecker/** **/.buildkite/**", "runs on your build servers, with their secrets, once it is pushed"),
    ("**/.npmrc **/.yarnrc **/.yarnrc.yml **/.yarn/** **/.pnpmfile.* **/bunfig.toml **/pip.conf **/.pypirc",
     "decides where packages come from, or runs when they are installed"),
    ("**/.cargo/config **/.cargo/config.toml **/.bazelrc **/.mvn/** **/.bundle/config **/init.gradle*",
     "names programs that a build runs"),
    ("**/*.pth **/sitecustomize.py **/usercustomize.py **/conftest.py", "Python runs it without being asked to"),
    ("**/.bashrc **/.bash_profile **/.profile **/.zshrc **/.zshenv **/.zprofile **/.inputrc",
     "a shell runs it if this directory is its home"),
)  # fmt: skip
"""And these are other programs'."""

BUILD_RULES = _rules(
    ("**/makefile **/gnumakefile **/*.mk **/justfile **/.justfile **/taskfile.y*ml",
     "runs when you call make or the like"),
    ("**/setup.py **/setup.cfg **/pyproject.toml **/tox.ini **/noxfile.py **/tasks.py **/build.rs **/cargo.toml",
     "runs when you install, test or build"),
    ("**/gulpfile.* **/gruntfile.* **/webpack.config.* **/vite.config.* **/rollup.config.* **/jest.config.* "
     "**/.eslintrc.* **/eslint.config.* **/rakefile **/gemfile **/*.gradle **/*.gradle.kts **/pom.xml "
     "**/cmakelists.txt **/dockerfile* **/docker-compose*.y*ml **/compose*.y*ml",
     "runs when you install, test or build"),
)  # fmt: skip
"""Told too, but apart: agents are often asked to change these."""

_LINKS = "leads elsewhere: what reads or writes it touches a file outside"
_GIT_LINKS = "a link where git expects a file of its own: git follows it"
_SPECIAL = "is a FIFO, socket or device: a program that opens it may hang"
_PRIVILEGES = "runs with its owner's rights (set-user-id or set-group-id)"


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


Content = Callable[[Change], bytes | None]


class _Rank(IntEnum):
    """The smaller, the more dangerous."""

    REPOSITORY = 0
    GIT = 1
    OTHER = 2
    BUILDING = 3


def findings(changes: Iterable[Change], before: Content, after: Content) -> list[SuspectFile]:
    """
    :param before: gives what a changed file held, or ``None`` if that is not known.
    :param after: gives what it holds.
    :returns: everything to look at, the most dangerous first, which is what git runs.
    """
    found = [
        ranked for change in changes if change.after is not None for ranked in _of(change, change.after, before, after)
    ]
    return [finding for _, finding in sorted(found, key=lambda ranked: ranked[0])]


def _of(change: Change, now: TreeEntry, before: Content, after: Content) -> Iterator[tuple[_Rank, SuspectFile]]:
    git = list(_git_reasons(change, now, before, after))
    seen = dict.fromkeys((*_general_reasons(change.path, now), *(git or _reasons(change, now, before, after))))
    rank = _Rank.REPOSITORY if in_repository(change.path) else _Rank.GIT if git else _Rank.OTHER
    for reason in seen:
        yield rank, _finding(change, reason)
    if not seen and (rule := _rule(BUILD_RULES, change.path)):
        yield _Rank.BUILDING, _finding(change, rule.reason, building=True)


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
    if rule := _rule_for(GIT_RULES, change.path, now):
        yield rule.reason


def _reasons(change: Change, now: TreeEntry, before: Content, after: Content) -> Iterator[str]:
    if _name(change) == "package.json":
        yield from _package(change, before, after)
    if rule := _rule_for(RULES, change.path, now):
        yield rule.reason


def _name(change: Change) -> str:
    return change.path.rpartition("/")[2].lower()


def _rule_for(rules: tuple[PlantedRule, ...], path: str, now: TreeEntry) -> PlantedRule | None:
    if path.lower().endswith(".sample"):
        return None
    stands_for = f"{path}/pre-commit" if now.kind == "link" else path  # one for a directory brings its own files
    return _rule(rules, path) or _rule(rules, stands_for)


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


def _rule(rules: tuple[PlantedRule, ...], path: str) -> PlantedRule | None:
    return next((rule for rule in rules if rule.pattern.fullmatch(path)), None)


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
        scripts = msgspec.json.decode(data or b"{}", type=dict[str, Any]).get("scripts", {})
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return scripts if isinstance(scripts, dict) else None
