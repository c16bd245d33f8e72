"""Nothing that an agent left in a workspace is imported when a command starts there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.product import LIMIT, Product

TOP = Path(__file__).parents[2]
CODE = "import sys\nsys.stderr.write('CODE OF THE WORKSPACE RAN\\n')\n"
EARLY = ("sitecustomize", "usercustomize", "encodings", "runpy", "codecs")
"""What Python imports before any program of ours runs."""
LATER = ("tomllib", "json", "socket", "click", "msgspec", "twisted", "dulwich")


class Case(SynchronousTestCase):
    def setUp(self) -> None:
        self.product = Product()
        self.addCleanup(lambda: self.assertEqual(self.product.close(), []))
        self.workspace = self.product.project

    def plant(self, directory: Path, names: tuple[str, ...]) -> None:
        directory.mkdir(exist_ok=True)
        for name in names:
            (directory / f"{name}.py").write_text(CODE)

    def run_here(self, *command: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, env={**self.product.environ, **environ}, cwd=self.workspace,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT, check=False,
        )  # fmt: skip

    def works(self, *command: str, **environ: str) -> None:
        done = self.run_here(*command, **environ)
        self.assertEqual(
            (done.returncode, "CODE OF" in done.stderr), (0, False), (environ, command, done.stderr[-500:])
        )


class CommandTests(Case):
    def test_modules_of_the_workspace_are_not_imported(self) -> None:
        names = (*EARLY, *LATER, "ironcurtain")
        self.plant(self.workspace, names)
        self.plant(self.workspace / "lib", names)
        link = self.product.person / "link"
        link.symlink_to(self.workspace)
        startup = self.workspace / "startup.py"
        startup.write_text(CODE)
        environs: tuple[dict[str, str], ...] = (
            {"PYTHONPATH": "/opt/other:"},
            {"PYTHONPATH": ":/opt/other"},
            {"PYTHONPATH": "/opt/a::/opt/b"},
            {"PYTHONPATH": "."},
            {"PYTHONPATH": "./"},
            {"PYTHONPATH": "lib"},
            {"PYTHONPATH": "../project/lib"},
            {"PYTHONPATH": str(self.workspace)},
            {"PYTHONPATH": str(link)},
            {"PYTHONSTARTUP": str(startup)},
            {"PYTHONINSPECT": "1"},
            {"PYTHONHOME": str(self.workspace)},
            {"PYTHONUSERBASE": "."},
            {"PYTHONBREAKPOINT": "startup.main", "PYTHONWARNINGS": "error::startup.X"},
            {"PYTHONPLATLIBDIR": "lib"},
        )
        for environ in environs:
            self.works(*self.product.command("--version"), **environ)
        paths = ":".join(environ.get("PYTHONPATH", ".") for environ in environs)
        every = {name: value for environ in environs for name, value in environ.items()} | {"PYTHONPATH": paths}
        self.works(*self.product.command("sessions"), **every)  # imports far more

    def test_command_through_a_link_and_through_the_search_path(self) -> None:
        self.plant(self.workspace, ("sitecustomize", "ironcurtain"))
        (own,) = self.product.command()
        link, again = self.product.person / "ic", self.product.person / "again"
        link.symlink_to(own)
        again.symlink_to("ic")
        for command in (str(link), str(again), f"../{link.name}"):
            self.works(command, "--version", PYTHONPATH=".")
        self.works(
            "ironcurtain", "--version", PYTHONPATH=".", PATH=f"{Path(own).parent}:{self.product.environ['PATH']}"
        )

    def test_program_is_named_ironcurtain_in_its_help(self) -> None:
        self.assertTrue(self.product.run("sessions", "--help").stdout.startswith("Usage: ironcurtain sessions"))

    def test_words_and_status_pass_the_launcher_unchanged(self) -> None:
        done = self.product.run("loop", "-n", "1", "-p", "x", "--", "printf", "<%s>", "a  b", "", "*", "$HOME", "'\"\\")
        self.assertIn("<a  b><><*><$HOME><'\"\\>", done.stdout)
        self.assertEqual((done.returncode, self.product.run("nothing").returncode), (3, 64))


class LauncherTests(Case):
    def test_python3_of_the_search_path_is_used_where_none_is_beside_it(self) -> None:
        apart = self.product.person / "bin"
        apart.mkdir()
        (apart / "ironcurtain").write_bytes((TOP / "bin" / "ironcurtain").read_bytes())
        (apart / "ironcurtain").chmod(0o755)
        self.plant(self.workspace, (*EARLY, "ironcurtain"))
        beside = Path(sys.executable).parent
        for environ in ({"PYTHONPATH": "."}, {"PYTHONUSERBASE": "."}):
            self.works(str(apart / "ironcurtain"), "--version", PATH=f"{beside}:/usr/bin:/bin", **environ)


class ModuleTests(Case):
    """Started without the launcher: what Python itself imports first is beyond our reach."""

    def test_current_directory_is_no_place_of_modules(self) -> None:
        self.plant(self.workspace, LATER)
        self.plant(self.workspace / "lib", LATER)
        link = self.product.person / "link"
        link.symlink_to(self.workspace)
        for place in ("", ".", "lib", "/opt/other:", str(link)):
            self.works(sys.executable, "-m", "ironcurtain.cli", "config", "check", PYTHONPATH=f"{TOP}:{place}")

    def test_twistd_does_not_import_them_either(self) -> None:
        late = ("sqlite3", "dulwich", "treq", "docker")
        self.plant(self.workspace, late)
        code = f"import ironcurtain.tap, {', '.join(late)}"
        for place in ("", "."):
            self.works(sys.executable, "-c", code, PYTHONPATH=place)

    def test_every_child_of_ours_is_isolated(self) -> None:
        started = re.compile(r"sys\.executable,\s*(\"-\w+\")")
        flags = [
            (path.name, flag)
            for path in (TOP / "ironcurtain").rglob("*.py")
            for flag in started.findall(path.read_text(encoding="utf-8"))
        ]
        self.assertGreater(len(flags), 2)
        self.assertEqual({flag for _, flag in flags}, {'"-I"'}, flags)


class InstalledTests(SynchronousTestCase):
    def test_places_of_modules_that_are_kept(self) -> None:
        code = (
            "import ironcurtain, sys; before = list(sys.path); ironcurtain.import_only_installed(); "
            "print(before == sys.path)"
        )
        for flags in (["-I"], ["-P"]):
            done = subprocess.run(
                [sys.executable, *flags, "-c", code], cwd=TOP, capture_output=True, text=True, check=False,
                env={"PATH": os.environ["PATH"]}, timeout=LIMIT,
            )  # fmt: skip
            self.assertEqual(done.stdout, "True\n", done.stderr)


class SearchPathTests(Case):
    def test_programs_of_the_workspace_are_not_run_outside_its_sandbox(self) -> None:
        bins, mark = self.workspace / ".venv" / "bin", self.product.person / "mark"
        bins.mkdir(parents=True)
        for name in ("bwrap", "env", "find", "git", "mkdir", "prlimit", "python3", "setpriv", "setsid", "systemd-run"):
            if (real := shutil.which(name)) is not None:
                program = bins / name
                program.write_text(f'#!/bin/sh\necho {name} >>{mark}\nexec {real} "$@"\n')
                program.chmod(0o755)
        path = f"{bins}:{self.product.environ['PATH']}"
        script = self.product.script({"code": "print(filesystem.list_directory('.'))"}, {"text": "done"})
        self.works(*self.product.command("start", "--workspace", ".", "--backend", script, "go"), PATH=path)
        self.works(*self.product.command("doctor"), PATH=path)
        self.assertFalse(mark.exists())
