"""What is found of a program's installation: enough to run it, and nothing else of a home."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.sandbox.installation import Installation


class InstallationCase(SynchronousTestCase):
    """:ivar home: a home in a temporary directory, with ``workspace`` beside it."""

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

    def found(self, program: Path | str, *arguments: str, path: str = "", cwd: str = "", **variables: str) -> set[str]:
        """
        :param cwd: a directory in the home; empty: the workspace.
        :returns: what is found, below the home as it stands there.
        """
        installation = Installation([str(self.home)], path, str(self.workspace), variables)
        places = installation.of(str(program), arguments, str(self.home / cwd) if cwd else str(self.workspace))
        return {os.path.relpath(place, self.home) for place in places if place != str(self.workspace)}

    def python(self, prefix: str) -> Path:
        self.file(f"{prefix}/lib/python3.11/os.py")
        return self.file(f"{prefix}/bin/python3")


class InstallationTests(InstallationCase):
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

    def test_files_of_an_environment_that_begin_with_a_byte_order_mark(self) -> None:
        python, source = self.python(".pyenv/versions/3.11.7"), self.file("work/mine/mine.py").parent
        self.file("venv/pyvenv.cfg", f"\ufeffhome = {python.parent}\r\n")
        self.file("venv/lib/python3.11/site-packages/mine.pth", f"\ufeff{source}\r\n")
        self.assertEqual(self.found(self.file("venv/bin/server")), {"venv", ".pyenv/versions/3.11.7", "work/mine"})

    def test_shims(self) -> None:
        self.assertEqual(self.found(self.file(".pyenv/shims/python", "#!/bin/sh\n")), {".pyenv"})

    def test_node_of_nvm(self) -> None:
        prefix = ".nvm/versions/node/v22.1.0"
        self.file(f"{prefix}/bin/node")
        script = self.file(f"{prefix}/lib/node_modules/npm/bin/npx-cli.js", "#!/usr/bin/env node\n")
        npx = self.link(f"{prefix}/bin/npx", script)
        self.assertEqual(self.found(npx, path=str(npx.parent)), {prefix})

    def test_a_package_of_a_project(self) -> None:
        self.file("work/package.json")
        script = self.file("work/node_modules/server/cli.js", "#!/usr/bin/env node\n")
        self.file("work/node_modules/other/index.js")
        self.assertEqual(self.found(self.link("work/node_modules/.bin/server", script)), {"work/node_modules"})

    def test_a_script_of_a_project(self) -> None:
        self.file("work/pyproject.toml")
        script = self.file("work/src/server.py")
        self.assertEqual(self.found(Path("/usr/bin/python3"), "-u", str(script), "x"), {"work"})

    def test_a_script_of_a_project_without_packages(self) -> None:
        for mark in (".git/HEAD", "requirements.txt", "deno.json"):
            self.file(f"{mark[:3]}/{mark}")
            script = self.file(f"{mark[:3]}/src/server.py")
            self.assertEqual(self.found(Path("/usr/bin/python3"), str(script)), {mark[:3]})

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

    def test_links_of_directories_that_pass_the_workspace_lead_nowhere(self) -> None:
        self.file("private-bin/server")
        self.link(self.workspace / "bin", self.home / "private-bin")
        self.link("bin", self.workspace / "bin")
        self.assertEqual(self.found(self.home / "bin/server"), {"bin/server"})


class CommandLineTests(InstallationCase):
    """Programs and files that a command line names."""

    def test_script_after_an_option_with_a_value(self) -> None:
        script = str(self.file("srv/server.py"))
        self.assertEqual(self.found("/usr/bin/python3", "-W", "ignore", script, "/etc/hosts"), {"srv/server.py"})

    def test_preloaded_files_and_search_paths(self) -> None:
        script, hook = str(self.file("srv/a.js")), str(self.file("hooks/b.js"))
        self.assertEqual(self.found("/usr/bin/node", "--require", hook, script), {"srv/a.js", "hooks/b.js"})
        self.file("lib/x.rb")
        self.assertEqual(self.found("/usr/bin/ruby", "-I", f"{self.home}/lib", "-e", "1"), {"lib"})

    def test_script_without_its_ending_and_directory_of_a_package(self) -> None:
        self.file("srv/package.json", '{"name": "a"}')
        self.file("srv/dist/index.js")
        for name in ("dist/index", "dist", "."):
            self.assertEqual(self.found("/usr/bin/node", name, cwd="srv"), {"srv"}, name)

    def test_programs_behind_env_and_a_shell(self) -> None:
        script = self.file("srv/server.py")
        self.assertEqual(self.found("/usr/bin/env", "A=b", "/usr/bin/python3", str(script)), {"srv/server.py"})
        line = f"cd {self.home}/srv && exec /usr/bin/python3 -u server.py"
        self.assertEqual(self.found("/bin/sh", "-c", line), {"srv/server.py"})

    def test_directories_in_variables(self) -> None:
        self.file("modules/x.py")
        path = f"{self.home}/modules:{self.home}:/usr/lib:"
        self.assertEqual(self.found("/usr/bin/python3", PYTHONPATH=path), {"modules"})
        self.link(self.workspace / "modules", self.home / "modules")
        self.assertEqual(self.found("/usr/bin/python3", PYTHONPATH=f"{self.workspace}/modules"), set())

    def test_project_of_uv_with_the_environment_of_its_workspace(self) -> None:
        python = self.python(".local/share/uv/python/cpython-3.12")
        uv = self.file(".local/bin/uv")
        self.file("mono/.venv/pyvenv.cfg", f"home = {python.parent}\n")
        self.link("mono/.venv/bin/python", python)
        self.file("mono/packages/one/pyproject.toml")
        found = self.found(uv, "run", "--directory", f"{self.home}/mono/packages/one", "server")
        python_prefix = ".local/share/uv/python/cpython-3.12"
        self.assertEqual(found, {".local/bin/uv", "mono/packages/one", "mono/.venv", python_prefix})

    def test_shims_with_the_files_that_choose_their_versions(self) -> None:
        self.file(".tool-versions")
        self.assertEqual(self.found(self.file(".asdf/shims/node", "#!/bin/sh\n")), {".asdf", ".tool-versions"})

    def test_volta(self) -> None:
        self.file(".volta/tools/image/node/22/bin/node")
        shim = self.link(".volta/bin/node", self.file(".volta/bin/volta-shim"))
        self.assertEqual(self.found(shim), {".volta"})

    def test_homebrew_without_its_settings_and_the_data_of_its_services(self) -> None:
        real = self.file("brew/Cellar/server/1.0/bin/server")
        for path in ("opt/keep", "lib/libx.so", "etc/password", "var/postgres/data", "Homebrew/.git/config"):
            self.file(f"brew/{path}")
        server = self.link("brew/bin/server", real)
        pieces = {f"brew/{name}" for name in ("Cellar", "opt", "bin", "lib")}
        for program in (server, real):
            self.assertEqual(self.found(program), pieces)

    def test_release_of_the_installer_of_codex(self) -> None:
        real = self.file(".codex/packages/standalone/releases/1.0/bin/codex")
        self.file(".codex/auth.json")
        link = self.link(".local/bin/codex", real)
        self.assertEqual(self.found(link), {".local/bin/codex", ".codex/packages/standalone/releases/1.0"})

    def test_directory_that_fnm_makes_for_a_shell(self) -> None:
        node = self.file("fnm/node-versions/v22/installation/bin/node")
        self.file("fnm/node-versions/v22/installation/lib/node_modules/npm/package.json")
        self.link("state/fnm_multishells/1_2", node.parent.parent)
        found = self.found(self.home / "state/fnm_multishells/1_2/bin/node")
        self.assertEqual(found, {"state/fnm_multishells/1_2", "fnm/node-versions/v22/installation"})
