from __future__ import annotations

from ironcurtain.project.tree import Tree
from ironcurtain.session.project import FINDINGS_LIMIT, look_at
from tests.project.worlds import WorkspaceTestCase


class LookTests(WorkspaceTestCase):
    def complete(self) -> bool:
        return look_at(self.comparison(), lambda: False).complete

    def test_everything_was_looked_at(self) -> None:
        self.write(".git/objects/ab/cd")
        self.begin()
        self.write(".envrc")
        self.assertTrue(self.complete())

    def test_directories_that_were_not_listed_then(self) -> None:
        self.write("a/b")
        self.patch(Tree.entries, "__defaults__", (1,))
        self.begin()
        self.assertFalse(self.complete())

    def test_directories_that_are_not_listed_now(self) -> None:
        self.begin()
        self.write("a/b")
        self.patch(Tree.entries, "__defaults__", (1,))
        self.assertFalse(self.complete())

    def test_too_late(self) -> None:
        self.begin()
        self.assertFalse(look_at(self.comparison(), lambda: True).complete)

    def test_more_than_are_kept(self) -> None:
        self.begin()
        for number in range(FINDINGS_LIMIT):
            self.write(f".env.{number}")
        self.assertTrue(self.complete())
        self.write(".git/hooks/pre-commit")
        found = look_at(self.comparison(), lambda: False)
        self.assertEqual((found.complete, len(found.files)), (False, FINDINGS_LIMIT))
        self.assertEqual(found.files[0].path, ".git/hooks/pre-commit")
