"""``ironcurtain diff``."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from ironcurtain.cli.completion import all_sessions
from ironcurtain.cli.output import as_json, home, print_json, print_lines
from ironcurtain.cli.undoing import readable
from ironcurtain.session.elsewhere import kept_directory
from ironcurtain.text.display import one_line, readable_path
from ironcurtain.text.quantities import counted

if TYPE_CHECKING:
    from ironcurtain.project.changes import Change, Comparison


@click.command()
@click.argument("session", default="last", shell_complete=all_sessions)
@click.option("--all", "every", is_flag=True, help="Show installed packages, too, such as in node_modules, and .git.")
@as_json
def diff(session: str, every: bool, json_output: bool) -> None:
    """
    Show what changed in the workspace of SESSION since it first started.

    SESSION is a number, an id, or 'last' for the newest one. It may be running or ended. The output is a patch for
    'git apply', without installed packages and what is in .git, of which 'git apply' takes nothing. Use --all to show
    them, too; with --json it is a list of all changed files.
    Files to review, because programs run or obey them on their own, are named on standard error.
    """
    from ironcurtain.project.patch import is_refused

    with comparison_of(session) as comparison:
        changes = comparison.changes()
        if json_output:
            print_json(changes_as_json(changes))
        else:
            own = changes if every else [change for change in changes if not _is_installed(change)]
            shown = own if every else [change for change in own if not is_refused(change)]
            print_patch(comparison, shown)
            _tell_of("of installed packages", len(changes) - len(own))
            _tell_of("in .git, where 'git apply' changes nothing", len(own) - len(shown))
        _remarks(comparison, changes)


@contextmanager
def comparison_of(session: str) -> Iterator[Comparison]:
    """
    :param session: as commands take it.
    :returns: its workspace compared with the manifest.
    :raises NotFound: there is no such session, or it has no manifest.
    :raises UsageError: the workspace cannot be read.
    """
    from ironcurtain.project.changes import Comparison
    from ironcurtain.project.manifest import read_manifest
    from ironcurtain.project.tree import close, open_tree

    paths = kept_directory(home(), session)
    manifest = read_manifest(paths.manifest, paths.originals)
    tree = open_tree(manifest.workspace)
    try:
        yield Comparison(manifest, tree)
    finally:
        close(tree)


def changes_as_json(changes: Iterable[Change]) -> list[dict[str, str]]:
    """:returns: the changed paths, for programs."""
    return [{"path": readable_path(change.path), "what": change.what} for change in changes]


def print_patch(comparison: Comparison, changes: Iterable[Change]) -> None:
    """Print changes as ``git diff`` does: escaped on a terminal, exactly and with binary files for programs."""
    from ironcurtain.project.patch import patch

    for change in changes:
        _print(patch(change, comparison.before, comparison.after, binary=not sys.stdout.isatty()))


def _is_installed(change: Change) -> bool:
    from ironcurtain.project.tree import PACKAGES

    return not PACKAGES.isdisjoint(change.path.split("/")[:-1])


def _tell_of(what: str, count: int) -> None:
    if count:
        files = counted(count, "file")
        print_lines(f"Not shown: {files} {what}. To see them: ironcurtain diff --all", err=True)


def _remarks(comparison: Comparison, changes: list[Change]) -> None:
    from ironcurtain.cli.review import review
    from ironcurtain.project.planted import findings

    review(findings(changes, comparison.before, comparison.after))
    if unseen := comparison.unseen:
        shown = one_line(readable_path(", ".join(path or "." for path in unseen[:10])), 600)
        print_lines(f"Not compared, since there is too much in them or they cannot be listed: {shown}", err=True)


def _print(text: str) -> None:
    if sys.stdout.isatty():
        click.echo(readable(text), nl=False)
    else:
        sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))  # unescaped, for programs
        sys.stdout.buffer.flush()
