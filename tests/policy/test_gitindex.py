"""Reading git's index, held against git itself."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.policy.gitindex import GITLINK, MalformedIndex, gitlinks

ENVIRONMENT = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/nonexistent"}


class IndexTests(SynchronousTestCase):
    """:func:`gitlinks`"""

    def index(self, *settings: str, sha256: bool = False) -> bytes:
        """:returns: an index that git wrote, with two files and two submodules."""
        width, kind = (64, "sha256") if sha256 else (40, "sha1")
        with tempfile.TemporaryDirectory() as place:
            subprocess.run(["git", "init", "-q", "--object-format", kind, place], check=True, env=ENVIRONMENT)
            modes = {"a": "100644", "sub": "160000", "deep/er": "160000", "z" * 300: "100644"}
            lines = "".join(f"{mode} {'1' * width}\t{path}\n" for path, mode in modes.items())
            git = ["git", "-C", place, *(part for setting in settings for part in ("-c", setting))]
            update = [*git, "update-index", "--index-info"]
            subprocess.run(update, input=lines.encode(), check=True, env=ENVIRONMENT)
            subprocess.run([*git, "update-index", "--skip-worktree", "a"], check=True, env=ENVIRONMENT)
            return Path(place, ".git", "index").read_bytes()

    def test_it_finds_what_git_wrote(self) -> None:
        self.assertEqual(gitlinks(self.index()), [b"deep/er", b"sub"])
        self.assertEqual(gitlinks(self.index(sha256=True), sha256=True), [b"deep/er", b"sub"])

    def test_a_form_that_is_not_read_is_no_answer(self) -> None:
        self.assertRaises(MalformedIndex, gitlinks, self.index("index.version=4"))

    def test_without_submodules_any_form_will_do(self) -> None:
        self.assertEqual(gitlinks(b""), [])
        self.assertEqual(gitlinks(b"whatever"), [])

    @given(st.binary(max_size=200), st.binary(max_size=200))
    def test_nothing_else_is_ever_raised(self, before: bytes, after: bytes) -> None:
        for index in (before + GITLINK + after, b"DIRC\0\0\0\x02\0\0\0\x02" + before + GITLINK + after):
            with contextlib.suppress(MalformedIndex):
                gitlinks(index)
