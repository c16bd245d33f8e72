"""``diff`` and ``export``, and what ``start`` refuses, as processes."""

from __future__ import annotations

import os
import subprocess

from twisted.trial.unittest import SynchronousTestCase

from tests.product import Product

WRITE = {"code": "filesystem.write_file('made.txt', 'hello\\n')\nfilesystem.write_file('.envrc', 'evil\\n')"}
DONE = {"text": "All done."}


class WorkspaceCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.product = Product()
        self.addCleanup(lambda: self.assertEqual(self.product.close(), []))

    def work(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Let an agent write two files."""
        done = self.product.run("start", "--backend", self.product.script(WRITE, DONE), *words, "do it")
        self.assertEqual(done.returncode, 0, done.stderr)
        return done


class DiffTests(WorkspaceCase):
    def test_what_changed_and_what_to_look_at(self) -> None:
        done = self.work()
        self.assertIn("Review these files before you continue in the workspace:\n  added    .envrc\n", done.stderr)
        diff = self.product.run("diff")
        self.assertEqual(diff.returncode, 0, diff.stderr)
        self.assertIn("--- /dev/null\n+++ b/made.txt\n@@ -0,0 +1 @@\n+hello\n", diff.stdout)
        self.assertIn(".envrc", diff.stderr)
        changed = [{"path": ".envrc", "what": "added"}, {"path": "made.txt", "what": "added"}]
        self.assertEqual(self.product.json("diff", "1"), changed)

    def test_installed_packages_are_counted_unless_all_is_asked_for(self) -> None:
        code = (
            "filesystem.create_directory('node_modules/x')\nfilesystem.write_file('node_modules/x/index.js', 'evil\\n')"
        )
        script = self.product.script({"code": code}, DONE)
        self.assertEqual(self.product.run("start", "--backend", script, "do it").returncode, 0)
        done = self.product.run("diff")
        self.assertEqual(done.stdout, "")
        self.assertIn("Not shown: 1 file of installed packages", done.stderr)
        self.assertIn("+evil\n", self.product.run("diff", "--all").stdout)

    def test_removed_files_are_what_is_missing(self) -> None:
        self.work()
        self.assertEqual(self.product.json("cleanup", "--older-than", "0h", "--yes")["removed"], [1])
        for words in (("diff", "1"), ("export", "1", "copy"), ("undo", "--session", "1", "-y"), ("replay", "1")):
            done = self.product.run(*words)
            self.assertEqual(done.returncode, 69)
            self.assertIn("session 1: its files but the audit log were removed as those of an old session", done.stderr)

    def test_what_is_in_git_s_directory_is_counted_unless_all_is_asked_for(self) -> None:
        project = self.product.project
        subprocess.run(["git", "init", "-q"], cwd=project, env=self.product.environ, check=True)
        script = "git config a.b c; echo hello >made.txt; echo tool >tool; chmod 4755 tool"
        done = self.product.run("loop", "-n", "1", "-p", "x", "--", "sh", "-c", script)
        self.assertEqual(done.returncode, 3, done.stderr)
        diff = self.product.run("diff")
        self.assertIn("Not shown: 1 file in .git, where 'git apply' changes nothing", diff.stderr)
        for name in ("made.txt", "tool"):
            (project / name).unlink()
        subprocess.run(
            ["git", "apply"], cwd=project, env=self.product.environ, input=diff.stdout, text=True, check=True
        )
        self.assertEqual((project / "made.txt").read_text(), "hello\n")
        self.assertEqual((project / "tool").stat().st_mode & 0o7777, 0o755)
        self.assertIn("b/.git/config", self.product.run("diff", "--all").stdout)
        self.assertIn({"path": ".git/config", "what": "changed"}, self.product.json("diff"))

    def test_a_project_of_the_user_s_is_compared_with_what_it_was(self) -> None:
        (self.product.project / "made.txt").write_text("before\n")
        self.product.project.chmod(0o755)
        self.work("--workspace", ".")
        self.assertIn("-before\n+hello\n", self.product.run("diff", "last").stdout)
        (self.product.project / "made.txt").write_text("before\n")
        (self.product.project / ".envrc").unlink()
        diff = self.product.run("diff")
        self.assertEqual((diff.stdout, diff.stderr), ("", ""))

    def test_bytes_that_are_no_text_come_through(self) -> None:
        (self.product.project / "made.txt").write_bytes(b"caf\xe9\n")
        self.work("--workspace", ".")
        command = self.product.command("diff")
        done = subprocess.run(command, env=self.product.environ, capture_output=True, check=True)
        self.assertIn(b"-caf\xe9\n+hello\n", done.stdout)

    def test_sessions_that_there_are_not(self) -> None:
        for words in (["diff"], ["diff", "7"], ["export", "last", "copy"]):
            done = self.product.run(*words)
            self.assertEqual(done.returncode, 69, words)

    def test_sessions_whose_workspace_nobody_looks_at(self) -> None:
        self.assertEqual(self.product.run("mcp-proxy", stdin="").returncode, 0)
        done = self.product.run("diff")
        self.assertEqual((done.returncode, "mcp-proxy" in done.stderr), (69, True), done.stderr)

    def test_what_an_earlier_look_found_is_not_told_again(self) -> None:
        self.work()
        (manifest,) = self.product.home.glob("sessions/*/manifest.jsonl")
        manifest.write_bytes(b"damaged")
        done = self.product.run("start", "-r", "last", "--backend", self.product.script(WRITE, DONE, DONE), "go on")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn(".envrc", done.stderr)
        self.assertIn("Not all files in the workspace could be checked", done.stderr)


class ExportTests(WorkspaceCase):
    def test_a_copy_without_what_leads_elsewhere(self) -> None:
        (self.product.project / "link").symlink_to("/etc/passwd")
        self.work("--workspace", ".")
        done = self.product.run("export", "last", "../copy")
        self.assertEqual(done.returncode, 0, done.stderr)
        copy = self.product.person / "copy"
        self.assertEqual(sorted(os.listdir(copy)), [".envrc", "made.txt"])
        self.assertIn("left out: link", done.stderr)

    def test_what_is_left_out_does_not_flood_the_screen(self) -> None:
        for number in range(25):
            (self.product.project / f"link{number:02}").symlink_to("/etc/passwd")
        self.work("--workspace", ".")
        lines = self.product.run("export", "last", "../copy").stderr.splitlines()
        told = [line.split(":")[1].strip() for line in lines if line.startswith("left out: ")]
        self.assertEqual(told, [f"link{number:02}" for number in range(20)])
        self.assertEqual(lines[20:], ["and 5 more left out"])
        (self.product.project / "link24").unlink()
        for number in range(21, 24):
            (self.product.project / f"link{number:02}").unlink()
        self.assertEqual(
            self.product.run("export", "last", "../one-more").stderr.splitlines()[20:], ["and 1 more left out"]
        )
        (self.product.project / "link20").unlink()
        self.assertEqual(self.product.run("export", "last", "../twenty").stderr.splitlines()[20:], [])

    def test_a_place_that_is_not_empty_stays_as_it_is(self) -> None:
        self.work()
        copy = self.product.person / "copy"
        copy.mkdir()
        (copy / "mine").write_text("x")
        self.assertEqual(self.product.run("export", "last", str(copy)).returncode, 64)
        self.assertEqual(os.listdir(copy), ["mine"])


class StartTests(WorkspaceCase):
    def refused(self, *words: str) -> str:
        """:returns: what is said of wrong usage."""
        done = self.product.run("start", *words, "do it")
        self.assertEqual(done.returncode, 64, done.stderr)
        return done.stderr

    def test_options_that_do_not_fit_together(self) -> None:
        self.assertIn("--repo", self.refused("--workspace", ".", "--repo", "https://host.test/x"))
        self.assertIn("--backend", self.refused("--agent", "claude-code", "--backend", "anthropic"))
        self.assertIn("https or ssh", self.refused("--repo", "http://host.test/x"))
        self.assertIn("is no address", self.refused("--repo", "ext::sh"))
        self.assertIn("there is no agent", self.refused("--agent", "nobody"))

    def test_agents_are_listed(self) -> None:
        listed = self.product.run("start", "--list-agents")
        self.assertEqual(listed.returncode, 0)
        self.assertIn("builtin", listed.stdout)
        self.assertIn("Goose (untested)", listed.stdout)
        self.assertFalse(self.product.home.exists())

    def test_going_on(self) -> None:
        self.work()
        script = self.product.script(WRITE, DONE, {"text": "Went on."})  # the model remembers its earlier answers
        done = self.product.run("start", "-r", "last", "--backend", script, "go on")
        self.assertEqual((done.returncode, done.stdout), (0, "Went on.\n"), done.stderr)
        self.assertIn("to resume session 1", done.stderr)
        self.assertEqual(len(list(self.product.home.glob("sessions/*"))), 1)
        verified = self.product.run("audit", "verify")
        self.assertEqual(verified.returncode, 0, verified.stdout)
        unknown = self.product.run("start", "-r", "no-such")  # a short number could begin the id
        self.assertEqual(unknown.returncode, 69, unknown.stderr)
        self.assertIn("resumed session keeps its workspace", self.refused("-r", "last", "--workspace", "."))
        self.assertIn("cannot be resumed with", self.refused("-r", "last", "--agent", "claude-code"))
