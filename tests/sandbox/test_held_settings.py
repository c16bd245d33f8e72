"""Settings of worktrees and submodules while an agent works there: what git obeys outside afterwards."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Iterable
from pathlib import Path
from threading import Thread

from ironcurtain.errors import Unavailable
from ironcurtain.sandbox.held_settings import NOTE
from tests.sandbox.repositories import ENVIRONMENT, RepositoryCase


class HeldCase(RepositoryCase):
    """
    :ivar marker: a file that programs make, if git outside runs what an agent left.
    :ivar program: such a program; :ivar hook: a command of a shell that prints one.
    """

    def setUp(self) -> None:
        super().setUp()
        self.marker = self.top / "marker"
        self.program = self.top / "program"
        text = f"#!/bin/sh\ntouch '{self.marker}'\n"
        self.program.write_text(text)
        self.program.chmod(0o755)
        self.hook = f'printf "%s" "{text}"'

    def attack(self, workspace: Path, own: Path, forge: str, attempts: Iterable[str], around: Path) -> None:
        """
        Let an agent try each, and then run what people run. Afterwards all is as before.

        :param forge: what it does first, which succeeds.
        :param own: the directory in which the workspace's settings are.
        :param around: where people run git, besides the workspace.
        """
        for attempt in attempts:
            kept = {workspace: self.top / "kept-workspace", own: self.top / "kept-own"}
            for place, copy in kept.items():
                shutil.copytree(place, copy, symlinks=True)
            held = self.find(workspace).hold()
            self.assertEqual(self.inside(f"{forge}; ({attempt}) || true", workspace)[0], 0)
            self.use(workspace, around)
            held.release()
            self.use(workspace, around)
            self.assertFalse(self.marker.exists(), attempt)
            for place, copy in kept.items():
                shutil.rmtree(place)
                copy.rename(place)

    def use(self, *places: Path) -> None:
        """Run what people run, in directories where an agent worked, or around these."""
        for place in places:
            for words in ("status", "diff", "add -u", "commit -qm x --allow-empty", "checkout -qf HEAD"):
                line = ["git", *words.split()]
                subprocess.run(line, cwd=place, env=ENVIRONMENT, capture_output=True, timeout=60, check=False)

    def meanwhile(self, directory: Path, script: str, *words: str) -> tuple[str, str]:
        """
        :param script: what the agent does once git has run outside.
        :returns: what git said, and what the agent's shell said.
        """
        for name in ("begun", "done"):
            os.mkfifo(directory / name)
        said: list[str] = []

        def outside() -> None:
            (directory / "begun").read_bytes()
            done = subprocess.run(["git", *words], cwd=directory, env=ENVIRONMENT, capture_output=True, check=False)
            said.append(done.stderr.decode())
            (directory / "done").write_bytes(b"\n")

        thread = Thread(target=outside)
        thread.start()
        agent = self.inside(f"echo >begun; read x <done; {script}", directory)[1]
        thread.join()
        return said[0], agent


class SubmoduleTests(HeldCase):
    def setUp(self) -> None:
        super().setUp()
        self.part = self.submodule()
        self.own = self.common / "modules/libs/part"

    def test_git_outside_runs_nothing_that_an_agent_left(self) -> None:
        self.git(self.part, "config", "extensions.worktreeConfig", "true")
        own, evil, attempts = self.own, self.part / "evil", list[str]()
        forge = f"cp -r '{own}' evil; rm evil/*.lock evil/commondir; {self.hook} >evil/hooks/post-checkout; "
        forge += "chmod +x evil/hooks/post-checkout; cp evil/hooks/post-checkout evil/hooks/post-commit; "
        forge += f"git config -f evil/config core.fsmonitor '{self.program}'"
        for name, source in (
            ("commondir", f"echo '{evil}'"),
            ("config", "cat evil/config"),
            ("config.worktree", "cat evil/config"),
        ):
            path = own / name
            attempts += [
                f"{source} >'{path}'",
                f"{source} >new; mv -f new '{path}'",
                f"mv '{path}' '{own}/x'; {source} >'{path}'",
                f"rm '{path}' '{path}.lock'; {source} >'{path}'",
                f"ln -f evil/config '{path}'",
            ]
        attempts += [
            f"git config core.fsmonitor '{self.program}'",
            f"git config --worktree core.fsmonitor '{self.program}'",
            f"cp evil/hooks/post-* '{own}/hooks'",
            f"mv '{own}/hooks' '{own}/x'; cp -r evil/hooks '{own}/hooks'",
            f"mv '{own}' '{own}2'; cp -r evil '{own}'",
            f"mkdir -p '{own}/modules'; cp -r evil '{own}/modules/x'; cp -r evil '{own}/worktrees'",
            f"echo '* filter=x' >'{own}/info/attributes'; echo '{evil}' >'{own}/gitdir'",
        ]
        self.attack(self.part, own, forge, attempts, self.repository)
        self.assertEqual(self.git(self.part, "config", "core.worktree"), "../../../../libs/part\n")

    def test_what_an_agent_left_would_run(self) -> None:
        self.git(self.part, "config", "core.fsmonitor", str(self.program))
        self.git(self.repository, "status", "--ignore-submodules=dirty")
        self.assertFalse(self.marker.exists())
        self.use(self.repository)
        self.assertTrue(self.marker.exists())

    def test_repository_in_a_submodule_is_obeyed_unless_git_ignores_submodules(self) -> None:
        held = self.find(self.part).hold()
        script = "git init -q inner; git -C inner commit -q --allow-empty -m x; git add inner; "
        script += f"git -C inner config core.fsmonitor '{self.program}'"
        self.assertEqual(self.inside(script, self.part)[0], 0)
        held.release()
        self.git(self.repository, "status", "--ignore-submodules=dirty")
        self.assertFalse(self.marker.exists())
        self.use(self.repository)
        self.assertTrue(self.marker.exists())

    def test_people_cannot_change_settings_meanwhile_which_would_lose_the_mount(self) -> None:
        self.hold(self.part)
        people, agent = self.meanwhile(self.part, f"echo x >>'{self.own}/config'", "config", "user.name", "x")
        self.assertIn("could not lock config file", people)
        self.assertIn("Read-only file system", agent)

    def test_git_only_reads_where_settings_are_not_held(self) -> None:
        self.assertIn("git only reads", str(self.find(self.part)))
        self.assertEqual(self.inside("git log --format=%s", self.part), (0, "first\n"))
        for script in ("git branch new", f"echo x >'{self.own}/commondir'"):
            status, said = self.inside(script, self.part)
            self.assertNotEqual(status, 0)
            self.assertIn("Read-only file system", said)

    def test_people_are_told_to_run_no_git_meanwhile(self) -> None:
        self.hold(self.part)
        self.assertIn("meanwhile run no git in it or around it", str(self.find(self.part)))

    def test_repository_is_as_before_when_the_last_session_ends(self) -> None:
        self.find(self.part)
        before = {path: path.read_bytes() for path in self.own.iterdir() if path.is_file()}
        first, second = (self.find(self.part).hold() for _ in range(2))
        first.release()
        self.assertTrue((self.own / "commondir").exists())
        self.assertEqual(self.git(self.part, "status", "--short"), "")
        second.release()
        self.assertEqual({path: path.read_bytes() for path in self.own.iterdir() if path.is_file()}, before)

    def test_repository_that_is_removed_meanwhile_needs_no_release(self) -> None:
        held = self.find(self.part).hold()
        shutil.rmtree(self.own)
        held.release()
        self.assertFalse(self.own.exists())

    def test_what_a_crash_left_is_removed_by_the_next_session(self) -> None:
        (self.own / "config.lock").write_bytes(NOTE)
        self.find(self.part).hold().release()
        self.assertEqual([path.name for path in self.own.glob("*.lock")], [])

    def test_settings_that_git_changes_now_are_not_held(self) -> None:
        for name in ("config.lock", "config.worktree.lock"):
            (self.own / name).write_text("[core]\n")
            error = self.assertRaises(Unavailable, self.find(self.part).hold)
            self.assertIn(f"{self.own / name} exists", str(error))
            self.assertEqual((self.own / name).read_text(), "[core]\n")
            (self.own / name).unlink()
        self.assertEqual([path.name for path in self.own.iterdir() if path.name in ("config.lock", "commondir")], [])

    def test_nothing_is_left_where_the_file_system_has_no_locks(self) -> None:
        found, before = self.find(self.part), sorted(self.own.iterdir())

        def flock(descriptor: int, operation: int) -> None:
            raise OSError(errno.ENOLCK, "No locks available")

        self.patch(fcntl, "flock", flock)
        self.assertIn("No locks", str(self.assertRaises(OSError, found.hold)))
        self.assertEqual(sorted(self.own.iterdir()), before)

    def test_nothing_is_left_where_the_disk_is_full(self) -> None:
        found, before = self.find(self.part), sorted(self.own.iterdir())
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_FSIZE, limits)
        self.addCleanup(signal.signal, signal.SIGXFSZ, signal.signal(signal.SIGXFSZ, signal.SIG_IGN))
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, limits[1]))
        self.assertRaises(OSError, found.hold)
        self.assertEqual(sorted(self.own.iterdir()), before)

    def test_settings_are_not_held_while_the_last_session_removes_the_files(self) -> None:
        found = self.find(self.part)
        (self.own / "config.lock").write_bytes(NOTE)
        with open(self.own / "config.lock", "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.assertIn("another session ends", str(self.assertRaises(Unavailable, found.hold)))

    def test_files_that_people_removed_and_another_session_made_anew_stay(self) -> None:
        names, found = ("config.lock", "config.worktree.lock", "commondir"), self.find(self.part)
        first = found.hold()
        (self.own / "config.lock").unlink()
        second = found.hold()
        first.release()
        self.assertEqual([(self.own / name).exists() for name in names], [True] * 3)
        (self.own / "config.lock").unlink()
        second.release()
        self.assertEqual([(self.own / name).exists() for name in names], [False] * 3)

    def test_link_in_place_of_a_lock_is_not_followed(self) -> None:
        found = self.find(self.part)
        for target in (self.top / "new", self.program):
            (self.own / "config.lock").symlink_to(target)
            self.assertRaises(Unavailable, found.hold)
            (self.own / "config.lock").unlink()
        self.assertFalse((self.top / "new").exists())

    def test_worktree_of_a_submodule_keeps_all_of_its_repository_read_only(self) -> None:
        apart = self.top / "apart"
        self.git(self.part, "worktree", "add", "-q", str(apart), "-b", "apart")
        self.assertEqual(self.inside("echo 2 >file; git commit -qam two", apart), (0, ""))
        self.assertIn("Read-only file system", self.inside(f"echo x >'{self.own}/commondir'", apart)[1])
        self.assertEqual(self.git(self.part, "log", "-1", "--format=%s", "apart"), "two\n")


class WorktreeTests(HeldCase):
    def setUp(self) -> None:
        super().setUp()
        self.own = self.common / "worktrees/workspace"
        self.git(self.workspace, "config", "extensions.worktreeConfig", "true")

    def test_own_settings_are_read(self) -> None:
        self.git(self.workspace, "config", "--worktree", "status.short", "true")
        self.assertEqual(self.inside("echo 2 >file; git status"), (0, " M file\n"))

    def test_git_outside_runs_nothing_that_an_agent_left(self) -> None:
        path = self.own / "config.worktree"
        text = f"printf '[core]\\n\\tfsmonitor = {self.program}\\n'"
        attempts = (
            f"git config --worktree core.fsmonitor '{self.program}'",
            f"{text} >'{path}'",
            f"{text} >new; mv -f new '{path}'",
            f"rm -f '{path}' '{path}.lock'; {text} >'{path}'",
            f"cd '{self.own}'; mkdir hooks; {self.hook} >hooks/post-commit; chmod +x hooks/post-commit",
            f"{text} >'{self.own}/config'",
            f"cp -r '{self.common}' evil; {text} >evil/config; echo \"$PWD/evil\" >'{self.own}/commondir'",
        )
        self.attack(self.workspace, self.own, "true", attempts, self.repository)

    def test_people_cannot_change_own_settings_meanwhile(self) -> None:
        self.hold()
        words = ("config", "--worktree", "user.name", "x")
        people, agent = self.meanwhile(self.workspace, f"echo x >>'{self.own}/config.worktree'", *words)
        self.assertIn("could not lock config file", people)
        self.assertIn("Read-only file system", agent)

    def test_repository_is_writable_where_settings_are_not_held(self) -> None:
        self.assertEqual(self.inside("git branch new"), (0, ""))
        self.assertIn("Read-only file system", self.inside(f"echo x >'{self.own}/config.worktree'")[1])
