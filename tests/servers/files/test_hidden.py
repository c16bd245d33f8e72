"""What is hidden does not exist: not by its name, not in a listing, not in a search."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

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
