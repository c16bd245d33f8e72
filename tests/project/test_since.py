"""What an undo leaves, since a person changed it."""

from __future__ import annotations

import itertools
import shutil
from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st

from ironcurtain.project.snapshot import SnapshotKind, SnapshotTaken
from ironcurtain.project.tree import close, open_tree
from ironcurtain.project.undo import Undone, choose, restoration, undo
from tests.project.test_restore import RestoreCase, look
from tests.project.test_snapshot import LIMITS

NAMES = ("a", "b", "d/a", "d/b", "d/e/a")


class SinceTests(RestoreCase):
    def end(self, turn: int = 1) -> SnapshotTaken:
        """The agent has worked."""
        tree = open_tree(str(self.workspace.resolve()), hidden=("hidden", "a/hidden"))
        try:
            return self.snapshots.take(tree, turn, SnapshotKind.END, ("hidden", "a/hidden"), LIMITS, 2**62)
        finally:
            close(tree)

    def restore(self, turn: int | None = None, *, everything: bool = False, back: bool = False) -> Undone:
        head = choose(self.snapshots, turn, back)
        return undo(self.snapshots, head.number, LIMITS, 2**62, everything)

    def contents(self) -> dict[str, str]:
        """:returns: the files."""
        return {path: data.decode() for path, (_, data) in look(self.workspace).items() if isinstance(data, bytes)}

    def test_made_changed_and_removed_afterwards(self) -> None:
        for name in ("changed", "removed", "agent"):
            self.write(name, "before")
        self.take()
        for name in ("changed", "removed", "agent", "new"):
            self.write(name, "agent")
        self.end()
        self.write("changed", "mine")
        self.write("made", "mine")
        (self.workspace / "removed").unlink()
        done = self.restore()
        self.assertEqual(done.since, ("changed", "made", "removed"))
        self.assertEqual(self.contents(), {"changed": "mine", "made": "mine", "agent": "before"})
        self.assertEqual((done.restored.changed, done.restored.removed, done.restored.left), (1, 1, []))
        self.assertEqual(self.restore(everything=True).since, ())
        self.assertEqual(self.contents(), dict.fromkeys(("changed", "removed", "agent"), "before"))

    def test_a_directory_that_the_agent_made_stays_around_what_is_kept(self) -> None:
        self.write("file", "before")
        self.take()
        self.write("new/agent", "agent")
        (self.workspace / "file").unlink()
        self.write("file/agent", "agent")
        self.end()
        self.write("new/mine", "mine")
        self.write("file/mine", "mine")
        done = self.restore()
        self.assertEqual(self.contents(), {"new/mine": "mine", "file/mine": "mine"})
        self.assertEqual((done.since, done.restored.left), (("file", "file/mine", "new/mine"), []))

    def test_a_file_in_the_place_of_a_directory_stays(self) -> None:
        self.write("d/x", "before")
        self.take()
        self.write("d/x", "agent")
        self.end()
        shutil.rmtree(self.workspace / "d")
        self.write("d", "mine")
        self.assertEqual((self.restore().since, self.contents()), (("d", "d/x"), {"d": "mine"}))

    def test_what_was_changed_between_turns_is_kept(self) -> None:
        self.write("a", "before")
        self.take(1)
        self.write("a", "agent")
        self.end(1)
        self.write("mine", "mine")
        self.take(2)
        self.write("b", "agent")
        self.end(2)
        self.assertEqual(self.restore(1).since, ("mine",))
        self.assertEqual(self.contents(), {"a": "before", "mine": "mine"})

    def test_an_undo_is_no_change_of_a_person(self) -> None:
        self.write("a", "0")
        for turn in (1, 2):
            self.take(turn)
            self.write("a", str(turn))
            self.end(turn)
        for turn, content in ((2, "1"), (1, "0")):
            self.assertEqual((self.restore(turn).since, self.contents()), ((), {"a": content}))
        self.write("mine", "mine")
        self.assertEqual(self.restore(back=True).since, ("mine",))
        self.assertEqual(self.contents(), {"a": "1", "mine": "mine"})

    def interrupt(self, last: str) -> None:
        """Begin to undo, and stop once a file is restored."""
        head = choose(self.snapshots, None)
        done = undo(self.snapshots, head.number, LIMITS, 2**62, stopped=lambda: self.contents().get(last) == "before")
        self.assertTrue(done.interrupted)

    def test_what_is_changed_while_an_undo_is_interrupted_is_kept(self) -> None:
        for name in ("a", "b", "c", "d/x", "file/x", "taken"):
            self.write(name, "before")
        self.take()
        shutil.rmtree(self.workspace / "file")
        for name in ("a", "b", "c", "d/x", "d/new", "e/new", "file"):
            self.write(name, "agent")
        (self.workspace / "taken").unlink()
        self.end()
        self.interrupt("b")
        for name in ("a", "c", "d/mine", "e/mine"):
            self.write(name, "mine")
        (self.workspace / "d/x").unlink()
        self.write(".ironcurtain-undo-0", "a draft")
        self.write(f".{'0' * 16}.old/x", "what was being removed")
        mine = ("a", "c", "d/mine", "d/x", "e/mine")
        kept = {"a": "mine", "b": "before", "c": "mine", "d/mine": "mine", "e/mine": "mine"}
        with restoration(self.snapshots, choose(self.snapshots, None)) as found:
            self.assertEqual(tuple(change.path for change in found.kept), mine)
        self.interrupt("taken")
        self.write("later", "mine")
        self.assertEqual(self.restore().since, (*mine[:-1], "e/mine", "later"))
        kept |= {"later": "mine"}
        self.assertEqual(self.contents(), kept | {"file/x": "before", "taken": "before"})
        self.write("last", "mine")
        self.restore(back=True)
        self.assertEqual(
            self.contents(), kept | {"b": "agent", "d/new": "agent", "e/new": "agent", "file": "agent", "last": "mine"}
        )

    def test_a_turn_without_an_end_is_undone_and_that_is_known(self) -> None:
        self.take()
        self.write("a", "agent")
        with restoration(self.snapshots, choose(self.snapshots, None)) as found:
            self.assertFalse(found.known)
        self.assertEqual((self.restore().since, self.contents()), ((), {}))
        with restoration(self.snapshots, choose(self.snapshots, None)) as found:
            self.assertTrue(found.known)

    @settings(max_examples=25, deadline=None)
    @given(
        *(st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["1", "2", ""]), max_size=4) for _ in range(3)),
    )
    def test_whatever_is_done_nothing_of_a_person_is_lost(
        self, first: dict[str, str], agent: dict[str, str], mine: dict[str, str]
    ) -> None:
        shutil.rmtree(self.workspace)
        self.workspace.mkdir()
        shutil.rmtree(self.where, ignore_errors=True)
        self.edit(first)
        before = self.contents()
        self.take()
        self.edit(agent)
        ended = self.contents()
        self.end()
        self.edit(mine)
        now = self.contents()
        self.restore()
        after = self.contents()
        for path in {*before, *ended, *now}:
            changed = ended.get(path) != now.get(path)
            self.assertEqual(after.get(path), (now if changed else before).get(path), path)

    @settings(max_examples=25, deadline=None)
    @given(
        *(st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["1", "2", ""]), max_size=4) for _ in range(2)),
        st.integers(1, 60),
        st.dictionaries(st.sampled_from((*NAMES, "new", "d/new")), st.sampled_from(["mine", ""]), max_size=4),
    )
    def test_whenever_an_undo_is_interrupted_nothing_of_a_person_is_lost(
        self, first: dict[str, str], agent: dict[str, str], steps: int, mine: dict[str, str]
    ) -> None:
        shutil.rmtree(self.workspace)
        self.workspace.mkdir()
        shutil.rmtree(self.where, ignore_errors=True)
        self.edit(first)
        before = self.contents()
        self.take()
        self.edit(agent)
        ended = self.contents()
        self.end()
        stopped = partial(next, itertools.repeat(False, steps), True)
        undo(self.snapshots, choose(self.snapshots, None).number, LIMITS, 2**62, stopped=stopped)
        self.edit(mine)
        now = self.contents()
        self.restore()
        after = self.contents()
        for path in {*before, *ended, *now}:
            found = after.get(path)
            if now.get(path) not in (before.get(path), ended.get(path)):
                self.assertEqual(found, now.get(path), path)
            elif found != before.get(path):  # it was changed once the undo was over
                self.assertEqual((found, mine.get(path)), (now.get(path), ""), path)

    def edit(self, files: dict[str, str]) -> None:
        """:param files: their contents; empty: removed."""
        for name, content in files.items():
            if content:
                self.write(name, content)
            else:
                (self.workspace / name).unlink(missing_ok=True)
