"""What is hidden does not exist: not by its name, not in a listing, not in a search."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.servers.files import protected
from ironcurtain.servers.files.failures import FileError
from ironcurtain.servers.files.tools import FileTools
from ironcurtain.servers.files.walk import Roots


class HiddenTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.top = Path(tempfile.mkdtemp(prefix="ic")).resolve()
        self.addCleanup(shutil.rmtree, self.top)
        for name in ("keys/inner-key", "project/notes", ".netrc-key"):
            place = self.top / name
            place.parent.mkdir(exist_ok=True)
            place.write_text("key\n")
        roots = Roots([str(self.top)], [f"{self.top}/keys", f"{self.top}/.netrc-key", "/elsewhere"])
        self.addCleanup(roots.close)
        self.tools = FileTools(roots)

    def said(self, tool: str, **arguments: Any) -> str:
        return json.dumps(self.tools.call(tool, arguments))

    def test_listings_and_searches_leave_it_out(self) -> None:
        for tool, arguments in (
            ("list_directory", {"path": "."}),
            ("list_directory_with_sizes", {"path": "."}),
            ("directory_tree", {"path": "."}),
            ("search_files", {"path": ".", "pattern": "**"}),
        ):
            said = self.said(tool, **arguments)
            self.assertIn("project", said, tool)
            self.assertNotIn("key", said.replace(str(self.top), ""), tool)

    def test_nothing_reaches_it(self) -> None:
        for tool, arguments in (
            ("read_text_file", {"path": "keys/inner-key"}),
            ("read_text_file", {"path": "project/../.netrc-key"}),
            ("list_directory", {"path": "keys"}),
            ("write_file", {"path": f"{self.top}/keys/new", "content": "x"}),
            ("get_file_info", {"path": "keys"}),
            ("move_file", {"source": "keys/inner-key", "destination": "project/x"}),
            ("delete_file", {"path": ".netrc-key"}),
        ):
            error = self.assertRaises(FileError, self.tools.call, tool, arguments)
            self.assertIn("is protected", str(error), tool)
        self.assertTrue((self.top / "keys" / "inner-key").exists())

    def refused(self, tool: str, **arguments: Any) -> None:
        error = self.assertRaises(FileError, self.tools.call, tool, arguments)
        self.assertIn("protected", str(error), (tool, arguments))

    def test_renamed_directory_stays_protected(self) -> None:
        (self.top / "keys").rename(self.top / "k2")
        self.refused("read_text_file", path="k2/inner-key")
        self.refused("list_directory", path="k2")
        self.refused("get_file_info", path="k2")
        self.refused("write_file", path="k2/new", content="x")
        self.refused("create_directory", path="k2/new")
        self.refused("move_file", source="k2/inner-key", destination="project/x")
        for tool, arguments in (("list_directory", {}), ("search_files", {"pattern": "**"}), ("directory_tree", {})):
            self.assertNotIn("k2", self.said(tool, path=".", **arguments), tool)

    def test_parent_of_a_protected_path_cannot_be_renamed(self) -> None:
        roots = Roots([str(self.top)], [f"{self.top}/project/deep/key", f"{self.top}/later/key"])
        self.addCleanup(roots.close)
        self.tools = FileTools(roots)
        self.refused("move_file", source="project", destination="p2")
        (self.top / "other").mkdir()
        self.refused("move_file", source="other", destination="later")

    def test_replaced_file_and_the_one_before_stay_protected(self) -> None:
        for number in range(3):
            (self.top / ".netrc-key").rename(self.top / f"old{number}")
            (self.top / "draft").write_text("new key\n")
            (self.top / "draft").rename(self.top / ".netrc-key")
            self.refused("read_text_file", path=".netrc-key")
            self.refused("read_text_file", path=f"old{number}")
            self.assertNotIn("old", self.said("list_directory", path="."))

    def test_hard_link_is_protected(self) -> None:
        (self.top / "project" / "copy").hardlink_to(self.top / ".netrc-key")
        for tool in ("read_text_file", "delete_file", "get_file_info"):
            self.refused(tool, path="project/copy")
        self.refused("write_file", path="project/copy", content="x")
        self.refused("edit_file", path="project/copy", edits=[{"oldText": "key", "newText": "x"}])
        self.assertIn("protected", self.said("read_multiple_files", paths=["project/copy"]))

    def test_path_that_is_made_later_is_protected_under_any_name(self) -> None:
        roots = Roots([str(self.top)], [f"{self.top}/later"])
        self.addCleanup(roots.close)
        self.tools = FileTools(roots)
        self.refused("write_file", path="later", content="x")
        (self.top / "later").write_text("key\n")
        self.refused("read_text_file", path="later")
        (self.top / "later").rename(self.top / "elsewhere")
        self.refused("read_text_file", path="elsewhere")

    def test_deleted_file_leaves_nothing_protected(self) -> None:
        self.patch(protected, "HELD_LIMIT", 2)
        (self.top / ".netrc-key").unlink()
        (self.top / "project" / "new").write_text("ordinary\n")
        self.assertIn("ordinary", self.said("read_text_file", path="project/new"))
        for number in range(9):
            (self.top / ".netrc-key").write_text(f"{number}\n")
            self.refused("read_text_file", path=".netrc-key")
            (self.top / ".netrc-key").unlink()
