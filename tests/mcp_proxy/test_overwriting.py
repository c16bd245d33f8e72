"""What a call would change in a file that is there."""

from __future__ import annotations

import os
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.mcp_proxy.overwriting import READ_LIMIT, change
from tests.audit.doubles import scratch


class ChangeTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.file = scratch(self) / "f"
        self.file.write_text("one\ntwo\n")
        self.patch(os, "geteuid", lambda: self.file.stat().st_uid or 1)
        if os.getuid() == 0:
            os.chown(self.file, 1, 1)

    def change(self, path: Path | str, content: object = "one\n2\n") -> str:
        return change({"path": str(path), "content": content})

    def test_a_written_file_is_compared_with_what_is_there(self) -> None:
        self.assertIn("-two\n+2\n", self.change(self.file))

    def test_other_calls_change_nothing_that_can_be_shown(self) -> None:
        for arguments in ({}, {"path": str(self.file)}, {"content": "x"}, {"path": "f", "content": "x"}):
            self.assertEqual(change(arguments), "")
        self.assertEqual(self.change(self.file, 7), "")
        self.assertEqual(self.change("/a\0b"), "")
        self.assertEqual(self.change(self.file.parent / "none"), "")

    def test_links_pipes_and_what_is_no_text_are_not_read(self) -> None:
        (link := self.file.parent / "link").symlink_to(self.file)
        os.mkfifo(pipe := self.file.parent / "pipe")
        (other := self.file.parent / "other").write_bytes(b"\xff")
        (huge := self.file.parent / "huge").write_bytes(b"x" * (READ_LIMIT + 1))
        for path in (link, pipe, other, huge, self.file.parent):
            self.assertEqual(self.change(path), "", path)

    def test_another_user_s_file_and_everything_as_root_is_not_shown(self) -> None:
        for user in (0, self.file.stat().st_uid + 1):
            self.patch(os, "geteuid", lambda user=user: user)
            self.assertEqual(self.change(self.file), "")
