"""What git does, by subcommand."""

from __future__ import annotations

import re

from msgspec.structs import replace

from ironcurtain.command_rules.effect import HERE, UNKNOWN_EFFECTS, Effects
from ironcurtain.command_rules.flags import Parts, parts
from ironcurtain.command_rules.risk import Risk
from ironcurtain.commandline.model import UNKNOWN, Word, Words
from ironcurtain.commandline.names import names

_READS = names(
    "status log diff show blame rev-parse ls-files describe shortlog cat-file ls-tree rev-list merge-base "
    "name-rev for-each-ref show-ref count-objects whatchanged check-ignore var version diff-tree diff-index "
    "annotate cherry range-diff verify-commit fsck"
)
_WRITES = names(
    "add commit checkout switch merge rebase stash restore mv rm init cherry-pick revert tag branch apply am "
    "worktree notes format-patch archive bisect read-tree write-tree update-index"
)
_READS_CONTENT = names(
    "diff show blame annotate cat-file whatchanged diff-tree diff-index range-diff grep add commit stash archive "
    "format-patch"
)
"""Subcommands that show or take the contents of files that are not named, in the whole repository."""

_CHANGES_FILES = names(
    "clean reset checkout switch merge rebase stash restore cherry-pick revert apply am worktree pull bisect "
    "read-tree rm"
)
"""Subcommands that make, change or delete files which are not named, in the whole repository."""

_TAKES_FILES = names("add commit blame annotate")
"""Those of them that take nothing but the files that they name, or what is staged."""

_TAKES_ALL = re.compile(r"-[AauipPeo].*|--[aeiopu].*")
"""Options with which they take more."""

_SHOWS_CONTENT = re.compile(r"-[pucvUL].*|--verb.*|--p[au].*|--cc|--wor.*|--color-w.*|--full-d.*|--rem.*")
"""Options with which ``git log`` or ``git status`` does."""

_BISECT = names("start bad new good old terms skip next reset log view visualize replay help")
"""What ``git bisect`` does itself; ``run`` runs a program."""

_NETWORK = frozenset(["clone", "fetch", "pull", "push", "ls-remote"])
_DESTRUCTIVE: dict[str, frozenset[str]] = {
    "clean": frozenset(),
    "gc": frozenset(),
    "prune": frozenset(),
    "update-ref": frozenset(),
    "reset": frozenset(("--hard", "--merge", "--keep")),
    "push": frozenset(("-f", "--force", "--force-with-lease", "--delete", "-d", "--mirror", "--prune")),
    "branch": frozenset(("-D", "-d", "--delete", "-M", "-f")),
    "tag": frozenset(("-d", "--delete", "-f")),
    "checkout": frozenset(("-f", "-B", "--force")),
    "switch": frozenset(("-f", "-C", "--force", "--discard-changes")),
    "worktree": frozenset(("-f", "--force")),
    "rm": frozenset(("-f", "-r", "--force")),
}
"""Subcommands that lose work, with the flags that make them do so; without any they always do."""

_RUNS = re.compile(
    r"-c.*|--conf.*|--exec-path=.*|--upl.*|--rece.*|-u.*|--exe.*|-x.*|--ext.*|--textc.*|--open.*|-O.*|"
    r"--paginate|--gpg.*|-S.*|--templ.*|--git-dir.*|--work-tree.*|--outp?.*|--unsafe.*|--index-o.*|--filters|--los.*"
)
"""Options that run a program or name files elsewhere; git accepts the beginnings of long ones."""

_ELSEWHERE = r"(?:/|~|\.\.(?:/|$))"
_VALUE_ELSEWHERE = re.compile(rf"(?:--[\w-]+=|-[A-Za-z]+){_ELSEWHERE}")
_CONFIGURATION_READS = frozenset(
    ("--get", "--get-all", "--get-regexp", "-l", "--list", "--show-origin", "--global", "--local")
)


def git(words: Words) -> Effects:
    """
    :param words: of the command.
    :returns: what it does. Hooks and programs that the repository's configuration names are not seen.
    """
    found = parts("git", words[1:])
    if any(_RUNS.fullmatch(word.text) for word in _before_subcommand(words)) or not found.operands:
        return UNKNOWN_EFFECTS if len(words) > 2 else Effects()
    name = found.operands[0].text
    rest = found.operands[1:]
    if any(_VALUE_ELSEWHERE.match(word.text) for word in words[1:]):
        return UNKNOWN_EFFECTS
    dangerous = any(_RUNS.fullmatch(flag) for flag in found.flags - _harmless(name))
    if dangerous or any("::" in word.text for word in rest):
        return UNKNOWN_EFFECTS
    effects = _subcommand(name, found, rest, words)
    if effects.writes and name in _CHANGES_FILES:
        mark = next((index for index, word in enumerate(words) if word.text == "--"), 0)
        lands = words[mark + 1 :] if mark and name in ("checkout", "restore", "rm") else (HERE,)
        effects = replace(effects, lands=lands)
    return replace(effects, repository=any(word is HERE for word in effects.trees))  # and not "." of the command


def _before_subcommand(words: Words) -> Words:
    index = next((index for index, word in enumerate(words[1:], 1) if not word.text.startswith("-")), len(words))
    return words[1:index]


def _harmless(name: str) -> frozenset[str]:
    """:returns: flags that mean something else for this subcommand than to run a program."""
    if name in ("switch", "log", "diff", "show", "blame", "status", "branch", "add", "commit", "checkout"):
        return frozenset(("-c", "-u", "-S", "-x"))
    return (
        frozenset(("-u",))
        if name in ("push", "stash", "fetch", "pull")
        else frozenset(("-x",))
        if name in ("clean", "cherry-pick")
        else frozenset()
    )


def _contents(name: str, found: Parts, rest: Words, words: Words) -> Words:
    """:returns: the files and directories whose contents a subcommand shows or takes."""
    named = rest if name in _TAKES_FILES and not any(map(_TAKES_ALL.fullmatch, found.flags)) else ()
    if mark := next((index for index, word in enumerate(words) if word.text == "--"), 0):
        named = words[mark + 1 :]
    return named if named and not any(word.text.startswith(":") for word in named) else (HERE,)


def _subcommand(name: str, found: Parts, rest: Words, words: Words) -> Effects:
    flags = found.flags
    if name == "bisect" and rest and not (rest[0].known and rest[0].text in _BISECT):
        return UNKNOWN_EFFECTS
    if name == "archive" and any(flag.startswith("--remo") for flag in flags):
        return Effects(Risk.NETWORK, writes=(HERE,), addresses=(Word(UNKNOWN),))
    if name in _DESTRUCTIVE and (not _DESTRUCTIVE[name] or flags & _DESTRUCTIVE[name]):
        return Effects(
            Risk.DESTRUCTIVE, writes=(HERE,), addresses=(rest[:1] or (Word(UNKNOWN),)) if name in _NETWORK else ()
        )
    if name == "stash" and rest and rest[0].text in ("drop", "clear"):
        return Effects(Risk.DESTRUCTIVE, writes=(HERE,))
    if name in _NETWORK:
        return Effects(
            Risk.NETWORK, writes=(rest[1] if name == "clone" and len(rest) > 1 else HERE,), addresses=rest[:1]
        )
    outside = tuple(word for word in rest if not word.known or re.match(_ELSEWHERE, word.text))
    trees = name in _READS_CONTENT or (name in ("log", "status") and any(map(_SHOWS_CONTENT.fullmatch, flags)))
    reads = _contents(name, found, rest, words) if trees else (HERE,)
    if name in _READS or (name == "stash" and rest and rest[0].text in ("list", "show")):
        return Effects(reads=(*reads, *outside), reads_trees=trees)
    if name == "grep" or (name == "reflog" and not rest):
        return Effects(reads=(*reads, *outside), reads_trees=trees)
    if (
        name in ("branch", "tag", "remote")
        and not rest
        and not flags - {"-a", "-r", "-v", "-l", "--all", "--list", "--verbose"}
    ):
        return Effects(reads=(HERE, *outside))
    if (
        name == "config"
        and flags & {"--get", "--get-all", "--get-regexp", "-l", "--list"}
        and flags <= _CONFIGURATION_READS
    ):
        return Effects(reads=(HERE, *outside))
    if name == "reset" or name in _WRITES:
        return Effects(
            reads=reads if trees else (),
            writes=(HERE, *(word for word in rest if not word.known or "/" in word.text or word.text == "..")),
            reads_trees=trees,
        )
    return UNKNOWN_EFFECTS
