from __future__ import annotations

import os
import pwd
import shutil
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import UsageError
from ironcurtain.home.user_paths import absolute_path, current_directory, user_path

ACCOUNT = pwd.getpwuid(os.geteuid())
LATIN = os.fsdecode(b"/x/caf\xe9")


class UserPathTests(SynchronousTestCase):
    def test_home_is_expanded_at_the_beginning(self) -> None:
        for text, path in (
            ("~", "/h"),
            ("~/ic", "/h/ic"),
            ("~//ic", "/h//ic"),
            ("$HOME", "/h"),
            ("$HOME/ic", "/h/ic"),
            ("${HOME}/ic", "/h/ic"),
            (f"~{ACCOUNT.pw_name}/ic", f"{ACCOUNT.pw_dir.rstrip('/')}/ic"),
            ("/x/~/y", "/x/~/y"),
            ("./~/x", "./~/x"),
            ("/app/routes/$userId/a$B", "/app/routes/$userId/a$B"),
            ("x~", "x~"),
            ("", ""),
        ):
            self.assertEqual(user_path(text, {"HOME": "/h"}), path, text)

    def test_home_without_the_variable_is_the_accounts(self) -> None:
        for environ in ({}, {"HOME": ""}):
            self.assertEqual(user_path("~/ic", environ), f"{ACCOUNT.pw_dir.rstrip('/')}/ic")

    def test_root_as_home_gives_no_empty_path(self) -> None:
        self.assertEqual((user_path("~", {"HOME": "/"}), user_path("~/x", {"HOME": "/"})), ("/", "/x"))

    def test_what_cannot_be_expanded_is_refused(self) -> None:
        for text, problem in (
            ("$XDG_DATA_HOME/ic", "contains the variable $XDG_DATA_HOME"),
            ("${XDG_DATA_HOME}/ic", "contains the variable ${XDG_DATA_HOME}"),
            ("${HOME:-x}/ic", "contains the variable ${HOME:-x}"),
            ("./$HOME", "contains the variable $HOME"),
            ("/home/$USER/ic", "contains the variable $USER"),
            ("/home/${user}/ic", "contains the variable ${user}"),
            ("$home/ic", "contains the variable $home"),
            ("$HOMEX/ic", "contains the variable $HOMEX"),
            ("~nobody-has-this-name/ic", "names no account of this machine: for a file write ./~nobody"),
            (LATIN, "the path /x/caf\\xe9 is not UTF-8 text: rename it"),
        ):
            error = self.assertRaises(UsageError, user_path, text, {"HOME": "/h"})
            self.assertIn(problem, str(error))
            str(error).encode()

    def test_home_that_is_no_absolute_path_is_refused(self) -> None:
        for home in ("~", ".", "h/x", "$HOME"):
            self.assertIn("no absolute path", str(self.assertRaises(UsageError, user_path, "~/x", {"HOME": home})))

    @given(st.text(st.characters(exclude_characters="\0")))
    def test_any_text_is_a_path_or_refused_with_a_readable_message(self, text: str) -> None:
        try:
            self.assertFalse(user_path(text, {"HOME": "/h"}).startswith("~"))
        except UsageError as e:
            str(e).encode()


class CurrentDirectoryTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.addCleanup(os.chdir, os.getcwd())
        self.place = Path(os.path.realpath(tempfile.mkdtemp()))
        self.addCleanup(shutil.rmtree, self.place, ignore_errors=True)

    def test_relative_paths_are_in_it(self) -> None:
        os.chdir(self.place)
        self.assertEqual(absolute_path("a/../b"), self.place / "a/../b")
        self.assertEqual(absolute_path(""), self.place)
        self.assertEqual(absolute_path("~/x", {"HOME": "/h"}), Path("/h/x"))

    def test_one_that_is_not_utf8_is_refused_where_it_matters(self) -> None:
        (self.place / os.fsdecode(b"caf\xe9")).mkdir()
        os.chdir(self.place / os.fsdecode(b"caf\xe9"))
        self.assertRaises(UsageError, absolute_path, "x")
        self.assertEqual(absolute_path("/x"), Path("/x"))

    def test_one_that_was_removed_is_refused(self) -> None:
        os.chdir(self.place)
        self.place.rmdir()
        self.assertIn("change to another one", str(self.assertRaises(UsageError, current_directory)))
