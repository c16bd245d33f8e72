"""Let the owner's commands, ``diff`` and ``export``, work on a workspace that a hostile program has left."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from ironcurtain.project.changes import Comparison
from ironcurtain.project.export import export
from ironcurtain.project.manifest import read_manifest, take
from ironcurtain.project.patch import patch
from ironcurtain.project.planted import findings
from ironcurtain.project.tree import close, open_tree
from ironcurtain.prove.outside import Outside
from ironcurtain.prove.planted import begin, git, has_git, plant
from ironcurtain.prove.report import Attempt, Report

SECONDS = 30
"""Time limit of a command in seconds; none takes a tenth of a second, unless it waits for a FIFO."""


def prove_commands(subject: str, workspace: Path, outside: Outside) -> Report:
    """
    Fill a workspace as a hostile program would, and run what its owner runs there: git as well, if it is installed.
    Works in the main thread only.

    :param workspace: an empty directory.
    :raises OSError: the workspace cannot be filled.
    """
    attempts = list[Attempt]()
    begin(workspace)
    with (
        tempfile.TemporaryDirectory(prefix="ironcurtain-prove-") as name,
        _comparison(workspace, Path(name)) as comparison,
    ):
        plant(workspace, outside)
        copy = Path(name).resolve() / "copy"
        copy.mkdir()
        acts: dict[str, Callable[[], bytes]] = {
            "have diff read the file outside": lambda: _diff(comparison),
            "have export copy the file outside": lambda: _export(comparison, copy),
            "have a link that leads out exported": lambda: _links(copy, outside),
        }
        if has_git():
            acts["have git run a planted command in the exported copy"] = lambda: _git(copy)
        attempts += [_attempt(what, act, outside) for what, act in acts.items()]
    return Report(subject, attempts, complete=True, seen=tuple(outside.seen()))


@contextmanager
def _comparison(workspace: Path, private: Path) -> Iterator[Comparison]:
    """:returns: the workspace compared with what it is now."""
    tree = open_tree(str(workspace))
    try:
        take(tree, private / "manifest", private / "originals")
        yield Comparison(read_manifest(private / "manifest", private / "originals"), tree)
    finally:
        close(tree)


def _attempt(what: str, act: Callable[[], bytes], outside: Outside) -> Attempt:
    before = tuple(outside.seen())
    try:
        with _in_time():
            said = act()
    except TimeoutError as e:
        return Attempt("the owner's commands", what, "succeeded", str(e))
    got_out = outside.secret.encode() in said or tuple(outside.seen()) != before
    return Attempt("the owner's commands", what, "succeeded" if got_out else "failed", "nothing of it is there")


def _diff(comparison: Comparison) -> bytes:
    changes = comparison.changes()
    patches = [patch(change, comparison.before, comparison.after) for change in changes]
    return "".join([*patches, str(findings(changes, comparison.before, comparison.after))]).encode(errors="replace")


def _export(comparison: Comparison, copy: Path) -> bytes:
    export(comparison, copy)
    return b"".join(path.read_bytes() for path in copy.rglob("*") if path.is_file())


def _links(copy: Path, outside: Outside) -> bytes:
    """:returns: the secret, if a link in the copy leads out of it."""
    leads_out = any(path.is_symlink() and not path.resolve().is_relative_to(copy) for path in copy.rglob("*"))
    return outside.secret.encode() if leads_out else b""


def _git(copy: Path) -> bytes:
    return b"".join(git(copy, *words) for words in (("status",), ("add", "."), ("diff", "HEAD"), ("checkout", ".")))


@contextmanager
def _in_time() -> Iterator[None]:
    """:raises TimeoutError: the block takes longer than :data:`SECONDS`."""

    def end(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"it took longer than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
