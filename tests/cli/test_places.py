"""Commands in places with unusual names, and paths that no shell expanded."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.product import LIMIT, Product

LATIN = os.fsdecode(b"caf\xe9")


class Case(SynchronousTestCase):
    def setUp(self) -> None:
        self.product = Product()
        self.addCleanup(lambda: self.assertEqual(self.product.close(), []))


class NotUtf8Tests(Case):
    def setUp(self) -> None:
        super().setUp()
        self.place = self.product.person / LATIN
        self.place.mkdir()

    def refused(self, *words: str) -> None:
        done = self.product.run(*words)
        self.assertIn("caf\\xe9", done.stderr, words)
        self.assertIn("is not UTF-8 text: rename it", done.stderr, words)
        self.assertNotIn("Traceback", done.stderr, words)
        self.assertEqual(done.returncode, 64, words)

    def test_path_among_the_arguments_is_refused(self) -> None:
        inside = str(self.place / "x")
        for words in (
            ("start", "--workspace", str(self.place), "--backend", "scripted:x", "go"),
            ("start", "--policy", inside, "go"),
            ("start", "--repo", str(self.place), "go"),
            ("start", f"go {LATIN}"),
            ("loop", "--workspace", str(self.place), "-n", "1", "--", "true"),
            ("loop", "-n", "1", "--", "printf", LATIN),
            ("mcp-proxy", "--workspace", str(self.place)),
            ("mitm-proxy", "--socket", inside),
            ("policy", "explain", "filesystem.read_text_file", f"path={inside}"),
            ("export", "last", inside),
            ("audit", "verify", "--key", inside, "last"),
        ):
            self.refused(*words)

    def test_current_directory_is_refused_as_a_workspace(self) -> None:
        self.product.project = self.place
        (self.place / "PROMPT.md").write_text("go")
        for words in (
            ("loop", "-n", "1", "--", "true"),
            ("mcp-proxy",),
            ("shell", "-c", "hi"),
            ("policy", "explain", "filesystem.read_text_file", "path=x"),
        ):
            self.refused(*words)
        self.assertEqual(self.product.run("sessions").returncode, 0, "commands without a workspace work")

    def test_home_is_refused(self) -> None:
        self.product.environ["IRONCURTAIN_HOME"] = str(self.place)
        self.refused("sessions")
        del self.product.environ["IRONCURTAIN_HOME"]
        self.product.environ["HOME"] = str(self.place)
        self.refused("sessions")

    def test_runtime_directory_is_not_used(self) -> None:
        self.product.environ["XDG_RUNTIME_DIR"] = str(self.place)
        self.assertEqual(self.product.run("sessions").returncode, 0)

    def test_session_with_such_files_in_its_workspace_works(self) -> None:
        (self.product.project / LATIN).write_text("x")
        backend = self.product.script({"code": 'print(len(filesystem.list_directory(path=".")) > 0)'}, {"text": "done"})
        done = self.product.run("start", "--backend", backend, "--workspace", str(self.product.project), "go")
        self.assertEqual((done.returncode, done.stdout.strip()[-4:]), (0, "done"), done.stderr)
        (self.product.project / os.fsdecode(b"n\xe9w")).write_text("y")
        for words in (("diff", "last"), ("export", "last", str(self.product.person / "out")), ("audit", "verify")):
            shown = self.product.run(*words)
            self.assertEqual((shown.returncode, "Traceback" in shown.stderr), (0, False), words)
        self.assertTrue((self.product.person / "out" / LATIN).exists())


class UnexpandedTests(Case):
    def test_home_is_expanded_wherever_a_path_is_given(self) -> None:
        person = self.product.person
        (person / "policy.toml").write_text('version = 1\n[[rules]]\nname = "a"\nif = {}\nthen = "deny"\n')
        (person / "ws").mkdir()
        (person / "ws" / "PROMPT.md").write_text("go")
        (person / "ws" / "ralph.yml").write_text("max_iterations: 7\n")
        script = self.product.script({"text": "done"}, {"text": "done"}).removeprefix("scripted:")
        start = ("start", "--workspace=~/ws", f"--backend=scripted:~/{Path(script).name}", "go")
        for home in ("~", "$HOME", "${HOME}"):
            for words in (
                ("policy", "check", f"--policy={home}/policy.toml"),
                ("loop", "config", f"--config={home}/ws/ralph.yml"),
                ("loop", "config", f"--workspace={home}/ws"),
                *([start] if home == "~" else ()),
                ("export", "last", f"{home}/out-{len(home)}"),
            ):
                done = self.product.run(*words)
                self.assertEqual(done.returncode, 0, (words, done.stderr))
                if words[:2] == ("loop", "config"):
                    self.assertRegex(done.stdout, r"max_iterations +7 ")
        self.assertEqual([path.name for path in self.product.project.iterdir()], [])

    def test_home_of_a_variable_that_no_shell_expanded_makes_no_directory(self) -> None:
        for home in ("~", "$HOME", "${HOME}"):
            self.product.environ["IRONCURTAIN_HOME"] = f"{home}/ic"
            done = self.product.run("sessions")
            self.assertEqual(done.returncode, 64)
            self.assertIn(f"which no shell has expanded: write {self.product.person}/ic", done.stderr)
        self.assertEqual([path.name for path in self.product.project.iterdir()], [])

    def test_settings_are_expanded(self) -> None:
        self.product.home.mkdir(mode=0o700)
        key = self.product.person / "key"
        key.write_text("sk-x")
        key.chmod(0o600)
        for home in ("~", "$HOME", "${HOME}"):
            (self.product.home / "config.toml").write_text(
                f'[providers.anthropic]\nkey = {{ file = "{home}/key" }}\n[telemetry]\npath = "{home}/traces"\n'
            )
            done = self.product.run("config", "check")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        (self.product.home / "config.toml").write_text('[providers.anthropic]\nkey = { file = "$KEYS/key" }\n')
        done = self.product.run("config", "check")
        self.assertIn("$KEYS", done.stdout + done.stderr)
        self.assertNotEqual(done.returncode, 0)

    def test_daemons_home_is_expanded(self) -> None:
        import subprocess

        twistd = str(Path(sys.executable).parent / "twistd")
        done = subprocess.run(
            [twistd, "-n", "ironcurtain", "--home", "$NOWHERE/x"],
            env=self.product.environ, cwd=self.product.project, capture_output=True, text=True, timeout=LIMIT,
            check=False,
        )  # fmt: skip
        self.assertIn("contains the variable $NOWHERE", done.stderr)
        self.assertEqual([path.name for path in self.product.project.iterdir()], [])


class ServiceAccountTests(Case):
    def test_session_starts_where_home_does_not_exist(self) -> None:
        backend = self.product.script(
            {"code": 'filesystem.write_file(path="x", content="y")\nprint(filesystem.read_text_file(path="x"))'},
            {"text": "done"},
        )
        self.product.environ["IRONCURTAIN_HOME"] = str(self.product.home)
        for home in ("/nonexistent", "/dev/null"):
            self.product.environ["HOME"] = home
            done = self.product.run("start", "--backend", backend, "--workspace", str(self.product.project), "go")
            self.assertEqual((done.returncode, done.stdout.strip()[-4:]), (0, "done"), done.stderr)
            self.assertEqual((self.product.project / "x").read_text(), "y")

    def test_home_that_does_not_exist_is_named_where_it_is_needed(self) -> None:
        self.product.environ["HOME"] = gone = str(self.product.person / "gone")
        done = self.product.run("sessions")
        self.assertIn(f"HOME is {gone}, which does not exist: set IRONCURTAIN_HOME", done.stderr)
        self.assertFalse(Path(gone).exists())
