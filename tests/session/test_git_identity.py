"""Who makes the commits of a session."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.session.git_identity import GitIdentity, commit_variables, user_identity


class GitIdentityTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="ic", dir="/tmp"))
        self.addCleanup(shutil.rmtree, self.home)
        self.environ = {"HOME": str(self.home), "PATH": os.environ["PATH"]}

    def test_name_and_address_whatever_is_in_them_and_nothing_else(self) -> None:
        strange = 'A "B" \\ \t Ć; #c'
        given = self.home / ".gitconfig"
        for name, value in (("user.name", strange), ("user.email", "a@b.test"), ("core.pager", "secret-program")):
            subprocess.run(["git", "config", "--file", str(given), name, value], check=True)
        made = user_identity(self.environ, None, "").settings()
        self.assertNotIn(b"secret-program", made)
        given.write_bytes(made)
        read = subprocess.run(["git", "config", "--file", str(given), "user.name"], capture_output=True, check=True)
        self.assertEqual(read.stdout.decode(), f"{strange}\n")

    def test_nobody_told_git(self) -> None:
        self.assertEqual(user_identity(self.environ, None, ""), GitIdentity())
        self.assertEqual(GitIdentity().settings(), b"")

    def test_there_is_no_git(self) -> None:
        self.assertEqual(user_identity({**self.environ, "PATH": "/nowhere"}, None, ""), GitIdentity())

    def test_an_included_file_counts(self) -> None:
        (self.home / ".gitconfig").write_text("[include]\n\tpath = names\n")
        (self.home / "names").write_text("[user]\n\tname = Ann\n")
        self.assertEqual(user_identity(self.environ, None, ""), GitIdentity("Ann"))

    def test_a_git_in_the_workspace_is_not_run(self) -> None:
        planted = self.home / "work" / "bin" / "git"
        planted.parent.mkdir(parents=True)
        planted.write_text(f"#!/bin/sh\ntouch {self.home}/ran\n")
        planted.chmod(0o755)
        environ = {**self.environ, "PATH": f"{planted.parent}:{self.environ['PATH']}"}
        (self.home / ".gitconfig").write_text("[user]\n\tname = Ann\n")
        self.assertEqual(user_identity(environ, None, str(self.home / "work")), GitIdentity("Ann"))
        self.assertFalse((self.home / "ran").exists())

    def test_git_is_not_run_without_a_file_to_read(self) -> None:
        program = self.home / "bin" / "git"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\ntouch {self.home}/ran\n")
        program.chmod(0o755)
        environ = {"HOME": str(self.home), "PATH": f"{program.parent}:/usr/bin:/bin"}
        user_identity(environ, None, "")
        self.assertFalse((self.home / "ran").exists())
        for path in (self.home / ".gitconfig", self.home / ".config/git/config", self.home / "other/git/config"):
            with self.subTest(path=path):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
                more = {"XDG_CONFIG_HOME": str(self.home / "other")} if "other" in path.parts else {}
                user_identity({**environ, **more}, None, "")
                self.assertTrue((self.home / "ran").exists())
                (self.home / "ran").unlink()
                path.unlink()


class CommitVariablesTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="ic", dir="/tmp"))
        self.addCleanup(shutil.rmtree, self.home)
        self.environ = {"HOME": str(self.home), "PATH": os.environ["PATH"]}
        (self.home / ".gitconfig").write_text(
            "[user]\n\tname = Ann\n\temail = ann@home.test\n[alias]\n\tx = !touch no\n"
        )
        self.workspace = self.home / "work"
        subprocess.run(["git", "init", "-q", str(self.workspace)], check=True)

    def found(self, **environ: str) -> dict[str, str]:
        return commit_variables({**self.environ, **environ}, None, str(self.workspace), None)

    def test_the_users_name_and_address_and_nothing_else(self) -> None:
        self.assertEqual(
            self.found(),
            {
                "GIT_AUTHOR_NAME": "Ann",
                "GIT_AUTHOR_EMAIL": "ann@home.test",
                "GIT_COMMITTER_NAME": "Ann",
                "GIT_COMMITTER_EMAIL": "ann@home.test",
            },
        )

    def test_the_repositorys_settings_have_priority_as_for_git(self) -> None:
        with (self.workspace / ".git" / "config").open("a") as config:
            config.write("[User]\n\tEmail = ann@work.test\n")
        found = self.found()
        self.assertEqual(found["GIT_AUTHOR_EMAIL"], "ann@work.test")
        self.assertEqual(found["GIT_AUTHOR_NAME"], "Ann")

    def test_the_environment_has_priority_over_both(self) -> None:
        self.assertEqual(self.found(GIT_AUTHOR_NAME="Bob")["GIT_AUTHOR_NAME"], "Bob")

    def test_settings_of_the_workspace_run_nothing_and_include_nothing(self) -> None:
        told = self.home / "told"
        (self.home / "other").write_text("[user]\n\tname = Mallory\n")
        (self.workspace / ".git" / "config").write_text(
            f"[core]\n\tfsmonitor = touch {told}\n\tpager = touch {told}\n\tsshCommand = touch {told}\n"
            f"[include]\n\tpath = {self.home}/other\n"
        )
        self.assertEqual(self.found()["GIT_AUTHOR_NAME"], "Ann")
        self.assertFalse(told.exists())

    def test_a_link_in_place_of_the_settings_is_not_followed(self) -> None:
        (self.home / "other").write_text("[user]\n\tname = Mallory\n")
        config = self.workspace / ".git" / "config"
        config.unlink()
        config.symlink_to(self.home / "other")
        self.assertEqual(self.found()["GIT_AUTHOR_NAME"], "Ann")

    @settings(max_examples=50, deadline=None)
    @given(st.binary(max_size=200))
    def test_any_settings_of_a_repository_are_taken(self, content: bytes) -> None:
        (self.workspace / ".git" / "config").write_bytes(content)
        for value in self.found().values():
            self.assertNotIn("\0", value)
