"""What is found of a program's installation: enough to run it, and nothing else of a home."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.sandbox.installation import Installation


class InstallationTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.top = Path(tempfile.mkdtemp(prefix="ic", dir="/tmp")).resolve()
        self.addCleanup(shutil.rmtree, self.top)
        self.home, self.workspace = self.top / "home", self.top / "workspace"
        self.home.mkdir()
        self.workspace.mkdir()
        (self.home / "private").write_text("x")

    def file(self, path: str, text: str = "") -> Path:
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)
        return file

    def link(self, path: str | Path, target: Path) -> Path:
        link = self.home / path
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)
        return link

    def found(self, program: Path, *arguments: str, path: str = "") -> set[str]:
        """:returns: what is found, below the home as it stands there."""
        places = Installation([str(self.home)], path, str(self.workspace)).of(
            str(program), arguments, str(self.workspace)
        )
        return {os.path.relpath(place, self.home) for place in places if place != str(self.workspace)}

    def python(self, prefix: str) -> Path:
        self.file(f"{prefix}/lib/python3.11/os.py")
        return self.file(f"{prefix}/bin/python3")

    def test_a_virtual_environment_and_its_python(self) -> None:
        python = self.python(".pyenv/versions/3.11.7")
        self.file("venv/pyvenv.cfg", f"home = {python.parent}\n")
        self.link("venv/bin/python3", python)
        server = self.file("venv/bin/server", f"#!{self.home}/venv/bin/python3\n")
        self.assertEqual(self.found(server), {"venv", ".pyenv/versions/3.11.7"})

    def test_packages_that_are_linked_into_it(self) -> None:
        self.file("venv/pyvenv.cfg")
        source = self.file("work/mine/mine.py").parent
        self.file("venv/lib/python3.11/site-packages/mine.pth", f"{source}\n{self.home}\nimport os\n")
        self.assertEqual(self.found(self.file("venv/bin/server")), {"venv", "work/mine"})

    def test_shims(self) -> None:
        self.assertEqual(self.found(self.file(".pyenv/shims/python", "#!/bin/sh\n")), {".pyenv"})

    def test_node_of_nvm(self) -> None:
        prefix = ".nvm/versions/node/v22.1.0"
        self.file(f"{prefix}/bin/node")
        script = self.file(f"{prefix}/lib/node_modules/npm/bin/npx-cli.js", "#!/usr/bin/env node\n")
        npx = self.link(f"{prefix}/bin/npx", script)
        self.assertEqual(self.found(npx, path=str(npx.parent)), {prefix, f"{prefix}/lib/node_modules"})

    def test_a_package_of_a_project(self) -> None:
        self.file("work/package.json")
        script = self.file("work/node_modules/server/cli.js", "#!/usr/bin/env node\n")
        self.file("work/node_modules/other/index.js")
        self.assertEqual(self.found(self.link("work/node_modules/.bin/server", script)), {"work/node_modules"})

    def test_a_script_of_a_project(self) -> None:
        self.file("work/pyproject.toml")
        script = self.file("work/src/server.py")
        self.assertEqual(self.found(Path("/usr/bin/python3"), "-u", str(script), "x"), {"work"})

    def test_a_program_beside_others_in_a_home(self) -> None:
        self.file(".local/lib/python3.11/site-packages/a.py")
        self.assertEqual(self.found(self.file(".local/bin/server")), {".local/bin/server", ".local/lib/python3.11"})
        self.assertEqual(self.found(self.file("server")), {"server"})

    def test_links_in_the_workspace_lead_to_no_file_of_the_person(self) -> None:
        private = self.home / "private"
        self.assertEqual(self.found(self.link(self.workspace / "server", private)), set())
        self.file("work/package.json")
        self.assertEqual(self.found(self.link(self.workspace / "python3", self.file("work/python3"))), set())

    def test_an_environment_in_the_workspace_has_its_python(self) -> None:
        python = self.python(".pyenv/versions/3.11.7")
        linked = self.link(self.workspace / "venv/bin/python3", python)
        self.assertEqual(self.found(linked), {".pyenv/versions/3.11.7"})
        server = self.workspace / "venv/bin/server"
        server.write_text(f"#!{linked}\n")
        self.assertEqual(self.found(server), {".pyenv/versions/3.11.7"})

    def test_what_a_script_in_the_workspace_names_is_no_file_of_the_person(self) -> None:
        server = self.workspace / "server"
        server.write_text(f"#!{self.home}/private\n")
        self.assertEqual(self.found(server), set())
        server.unlink()
        os.mkfifo(server)
        self.assertEqual(self.found(server), set())
