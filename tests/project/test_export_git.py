"""A copy in which the agent's settings and hooks are live is one in which its program runs at the first git command."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from ironcurtain.project.export import Exported, destination, export
from ironcurtain.project.tree import DEPTH_LIMIT
from tests.project.worlds import WorkspaceTestCase

EVIL = "[core]\n\tfsmonitor = ./evil\n"
HARMLESS = "[core]\n\tbare = false\n"


class LiveTestCase(WorkspaceTestCase):
    def export(self) -> tuple[Path, Exported]:
        to = self.top / "to"
        shutil.rmtree(to, ignore_errors=True)
        return to, export(self.comparison(), destination(to, str(self.workspace.resolve())))

    def live(self, to: Path) -> list[str]:
        """:returns: what of the agent's is in the copy."""
        files = [Path(os.fsdecode(path)) for path in to.rglob("*") if path.is_file()]
        return sorted(
            os.fsencode(path.relative_to(to)).decode("latin-1") for path in files if "evil" in path.read_text()
        )


class HeldBackTests(LiveTestCase):
    def test_decoys_push_nothing_out(self) -> None:
        self.write(".git/config", HARMLESS)
        self.begin()
        for number in range(250):
            self.write(f".env.{number:03}")
        self.write(".git/config", EVIL)
        to, done = self.export()
        self.assertEqual((self.live(to), done.restored), ([], [".git/config"]))
        self.assertEqual((to / ".git" / "config").read_text(), HARMLESS)

    def test_everything_in_a_repository_that_is_not_data_is_held_back(self) -> None:
        mine = (".git/rebase-merge/git-rebase-todo", ".git/info/attributes", ".git/unheard-of")
        for path in mine:
            self.write(path, "mine")
        self.begin()
        names = (
            *("rebase-apply/patch", "sequencer/todo", "objects/info/alternates", "modules/refs/hooks/pre-commit"),
            *("branches/origin", "worktrees/a/rebase-merge/git-rebase-todo", "refs/heads/a/.git/hooks/post-checkout"),
        )
        for path in (*mine, *(f".git/{name}" for name in names), "bare/rebase-merge/git-rebase-todo"):
            self.write(path, "exec evil")
        for name in ("HEAD", "objects/ab/cdef", "refs/heads/main"):
            self.write(f"bare/{name}")
        for name in ("HEAD", "index", "logs/HEAD", "refs/heads/main", "modules/a/HEAD", "objects/ab/cdef"):
            self.write(f".git/{name}", "data")
        to, done = self.export()
        self.assertEqual((self.live(to), sorted(done.restored)), ([], sorted(mine)))
        self.assertEqual((to / mine[0]).read_text(), "mine")
        self.assertEqual((to / ".git/modules/a/HEAD").read_text(), "data")
        self.assertEqual(
            {path for path, _ in done.left_out},
            {*(f".git/{name}" for name in names), "bare/rebase-merge/git-rebase-todo"},
        )

    def test_project_with_directories_like_a_repository_s_is_exported_whole(self) -> None:
        for path in ("objects/cup.obj", "refs/papers.bib", "readme"):
            self.write(path)
        self.begin()
        self.assertEqual(self.export()[1].left_out, [])

    def test_what_the_manifest_does_not_cover_is_left_out(self) -> None:
        self.write(".git/config", HARMLESS)
        self.begin()
        lines = self.list.read_bytes().splitlines(keepends=True)
        self.list.write_bytes(b"".join(line for line in lines if b".git/config" not in line))
        self.write(".git/config", EVIL)
        to, done = self.export()
        self.assertEqual((self.live(to), [path for path, _ in done.left_out]), ([], [".git/config"]))

    def test_names_that_are_no_text(self) -> None:
        name = b"s\xff".decode("utf-8", "surrogateescape")
        self.begin()
        self.write(f"{name}/.git/config", EVIL)
        self.write(f"{name}/.git/hooks/pre-commit", "evil")
        self.assertEqual(self.live(self.export()[0]), [])

    def test_links_in_a_repository_lead_nowhere(self) -> None:
        self.write(".git/config", HARMLESS)
        self.write("scripts/pre-push")
        (self.workspace / ".git" / "logs").symlink_to("../scripts")
        self.begin()
        self.write("settings", "# [x]\n" + EVIL)
        (self.workspace / ".git" / "config").unlink()
        (self.workspace / ".git" / "config").symlink_to("../settings")
        (self.workspace / ".git" / "modules").symlink_to("lfs/m")
        (self.workspace / ".git" / "info").symlink_to("../scripts")
        (self.workspace / "sub").mkdir()
        (self.workspace / "sub" / ".git").symlink_to("../scripts")
        to, done = self.export()
        self.assertEqual((to / ".git" / "config").read_text(), HARMLESS)
        self.assertFalse((to / ".git" / "config").is_symlink())
        self.assertEqual({path for path, _ in done.left_out}, {".git/modules", ".git/info", "sub/.git"})
        self.assertEqual(os.readlink(to / ".git" / "logs"), "../scripts")

    def test_links_of_the_person_s_own_bring_what_they_led_to(self) -> None:
        self.write(".git/HEAD")
        self.write("scripts/pre-push", "mine\n", 0o755)
        (self.workspace / ".git" / "hooks").mkdir()
        (self.workspace / ".git" / "hooks" / "pre-push").symlink_to("../../scripts/pre-push")
        (self.workspace / ".git" / "hooks" / "pre-commit").symlink_to("pre-push")
        (self.workspace / "elsewhere").symlink_to("sub/.git")
        (self.workspace / ".git" / "hooks" / "pre-merge").symlink_to("../../elsewhere/../scripts/pre-push")
        self.write("sub/.git/HEAD")
        (self.workspace / "sub" / ".git" / "hooks").symlink_to("../../scripts")
        self.begin()
        to, done = self.export()
        self.assertEqual((to / ".git" / "hooks" / "pre-push").read_text(), "mine\n")
        self.assertEqual(done.restored, [])
        self.write("scripts/pre-push", "evil", 0o755)
        to, done = self.export()
        self.assertEqual((self.live(to), done.restored), (["scripts/pre-push"], [".git/hooks/pre-push"]))
        self.assertEqual((to / ".git" / "hooks" / "pre-push").read_text(), "mine\n")
        left_out = {".git/hooks/pre-commit", ".git/hooks/pre-merge", "sub/.git/hooks"}
        self.assertEqual({path for path, _ in done.left_out}, left_out)
        self.write("scripts/pre-push", "mine\n", 0o755)
        (self.workspace / ".git" / "hooks" / "pre-push").unlink()
        (self.workspace / ".git" / "hooks" / "pre-push").symlink_to("../../elsewhere")
        self.assertEqual(self.export()[1].restored, [".git/hooks/pre-push"])

    def test_repositories_that_are_not_called_so(self) -> None:
        self.write("old.git/HEAD", "ref: refs/heads/main\n")
        self.write("old.git/objects/x")
        self.write("old.git/refs/x")
        self.write("old.git/config", HARMLESS)
        self.begin()
        self.write("old.git/config", EVIL)
        (self.workspace / "old.git" / "HEAD").unlink()  # worktrees share it without that file
        for top in ("new", ".git/lfs/m", ".git/objects/m"):
            self.write(f"{top}/HEAD", "ref: refs/heads/main\n")
            for name in ("objects/x", "refs/heads/config", "refs/heads/hooks/x"):
                self.write(f"{top}/{name}")
            for name in ("config", "config.worktree", "hooks/pre-commit", "commondir", "gitdir", "info/attributes"):
                self.write(f"{top}/{name}", EVIL)
        self.write("tree/HEAD", "ref: refs/heads/main\n")
        self.write("tree/commondir", "evil")
        to, done = self.export()
        self.assertEqual((self.live(to), done.restored), ([], ["old.git/config"]))
        self.assertTrue((to / "new" / "refs" / "heads" / "hooks" / "x").exists())

    def test_the_workspace_itself_as_a_repository(self) -> None:
        self.begin()
        self.git("init", "--bare", ".")
        self.git("config", "core.fsmonitor", "touch ../owned; false")
        self.git("config", "core.bare", "false")
        self.git("config", "core.worktree", ".")
        to, _ = self.export()
        subprocess.run(["git", "status"], cwd=to, capture_output=True, env=self.environment())
        self.assertFalse((self.top / "owned").exists())

    def test_a_hook_that_only_became_executable_is_not(self) -> None:
        hook = self.write(".git/hooks/pre-commit", "#!/bin/sh\n", 0o644)
        self.begin()
        hook.chmod(0o755)
        to, done = self.export()
        self.assertFalse((to / ".git" / "hooks" / "pre-commit").stat().st_mode & 0o111)
        self.assertEqual(done.restored, [".git/hooks/pre-commit"])

    def test_what_is_as_it_was_is_copied_and_not_reported(self) -> None:
        self.git("init")
        self.write(".git/hooks/pre-commit", "#!/bin/sh\n", 0o755)
        self.begin()
        to, done = self.export()
        self.assertEqual((done.left_out, done.restored), ([], []))
        self.assertEqual((to / ".git" / "config").read_text(), (self.workspace / ".git" / "config").read_text())
        self.assertTrue((to / ".git" / "hooks" / "pre-commit").stat().st_mode & 0o100)

    def test_a_repository_that_the_agent_made_is_one_in_the_copy(self) -> None:
        self.begin()
        self.git("init")
        self.git("commit", "--allow-empty", "-m", "first")
        to, done = self.export()
        self.assertEqual([path for path, _ in done.left_out], [".git/config"])
        said = subprocess.run(["git", "log"], cwd=to, capture_output=True, env=self.environment(), check=True)
        self.assertIn(b"first", said.stdout)

    def environment(self) -> dict[str, str]:
        names = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        return {"PATH": os.environ["PATH"], "HOME": str(self.top), **names}

    def git(self, *words: str) -> None:
        subprocess.run(["git", *words], cwd=self.workspace, check=True, capture_output=True, env=self.environment())


class DepthTests(LiveTestCase):
    def deep(self, levels: int) -> None:
        descriptor = os.open(self.workspace, os.O_RDONLY)
        for _ in range(levels):
            os.mkdir("d", dir_fd=descriptor)
            following = os.open("d", os.O_RDONLY, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = following
        os.close(os.open("file", os.O_CREAT, dir_fd=descriptor))
        os.close(descriptor)

    def test_what_is_too_deep_is_left_out_and_told_once(self) -> None:
        self.begin()
        self.write("z/file")
        self.deep(400)
        to, done = self.export()
        self.assertEqual([path for path, _ in done.left_out], ["/".join("d" * DEPTH_LIMIT)])
        self.assertTrue((to / "z" / "file").exists())
        self.assertTrue(Path(to, *"d" * DEPTH_LIMIT).is_dir())
