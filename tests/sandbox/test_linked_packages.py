"""Packages that lie elsewhere than where they are installed."""

from __future__ import annotations

import json

from tests.sandbox.test_installation import InstallationCase


class PythonTests(InstallationCase):
    def setUp(self) -> None:
        super().setUp()
        self.file("venv/pyvenv.cfg")
        self.server = self.file("venv/bin/server")
        self.site = "venv/lib/python3.11/site-packages"
        self.package = self.file("project/mine/__init__.py").parent

    def test_import_hook_of_an_editable_installation(self) -> None:
        self.file(
            f"{self.site}/__editable__.mine-1.pth", "import __editable___mine_finder; __editable___mine_finder.x()"
        )
        mapping = json.dumps({"mine": str(self.package), "home": str(self.home), "none": "/none"})
        self.file(f"{self.site}/__editable___mine_finder.py", f"MAPPING: dict[str, str] = {mapping}\n")
        self.assertEqual(self.found(self.server), {"venv", "project/mine"})

    def test_relative_line(self) -> None:
        self.file(f"{self.site}/mine.pth", "# a comment\n../../../../project/mine\n")
        self.assertEqual(self.found(self.server), {"venv", "project/mine"})

    def test_hook_that_is_no_python_is_left_out(self) -> None:
        self.file(f"{self.site}/a.pth", "import hook\nimport missing\n")
        self.file(f"{self.site}/hook.py", "not python (")
        self.assertEqual(self.found(self.server), {"venv"})

    def test_line_that_leads_through_the_workspace_is_left_out(self) -> None:
        self.link(self.workspace / "link", self.home / "project")
        self.file(f"{self.site}/a.pth", f"{self.workspace}/link/mine\n")
        self.link("through", self.workspace / "link")
        self.file(f"{self.site}/b.pth", f"{self.home}/through/mine\n")
        self.assertEqual(self.found(self.server), {"venv"})

    def test_packages_of_a_person_for_the_python_of_the_system(self) -> None:
        site = ".local/lib/python3.11/site-packages"
        self.file(f"{site}/mine.pth", str(self.package))
        self.assertEqual(self.found("/usr/bin/python3", "-m", "x"), {site, "project/mine"})
        self.assertEqual(self.found("/usr/bin/python3", "-Im", "x"), set())


class NodeTests(InstallationCase):
    def package(self, path: str, name: str = "a") -> str:
        self.file(f"{path}/package.json", json.dumps({"name": name}))
        return str(self.file(f"{path}/index.js"))

    def test_hoisted_packages_of_a_workspace(self) -> None:
        self.package("mono")
        script = self.package("mono/packages/one")
        self.file("mono/packages/one/dist/package.json", '{"type": "module"}')
        built = str(self.file("mono/packages/one/dist/index.js"))
        self.package("mono/node_modules/dep")
        for path in (script, built):
            self.assertEqual(self.found("/usr/bin/node", path), {"mono/packages/one", "mono/node_modules"})

    def test_packages_of_a_workspace_that_link_to_each_other(self) -> None:
        script = self.package("mono/packages/one")
        self.package("mono/packages/two")
        self.package("other/three")
        self.package("other/node_modules/dep")
        self.link("mono/node_modules/@mine/two", self.home / "mono/packages/two")
        self.link("mono/packages/two/node_modules/three", self.home / "other/three")
        self.assertEqual(
            self.found("/usr/bin/node", script),
            {"mono/packages/one", "mono/node_modules", "mono/packages/two", "other/three", "other/node_modules"},
        )

    def test_store_of_pnpm(self) -> None:
        script = self.package("mono/packages/one")
        self.package("store/dep/1.0/node_modules/dep")
        self.link("mono/packages/one/node_modules/dep", self.home / "store/dep/1.0/node_modules/dep")
        self.assertEqual(self.found("/usr/bin/node", script), {"mono/packages/one", "store/dep/1.0/node_modules"})

    def test_links_that_lead_to_no_package_are_left_out(self) -> None:
        script = self.package("work")
        self.file(".ssh/id")
        self.file("package.json", "{}")
        self.link("work/node_modules/keys", self.home / ".ssh")
        self.link("work/node_modules/home", self.home)
        self.package("private-package")
        self.link(self.workspace / "planted", self.home / "private-package")
        self.link("work/node_modules/planted", self.workspace / "planted")
        self.assertEqual(self.found("/usr/bin/node", script), {"work"})

    def test_shell_script_of_pnpm(self) -> None:
        script = self.package("pnpm/global/5/node_modules/server")
        text = 'exec node "$basedir/global/5/node_modules/server/index.js" "$@"\n'
        node = self.file("node/bin/node")
        for shim in (f"#!/bin/sh\n{text}# cmd-shim-target={script}\n", f"#!/bin/sh\n{text}"):
            program = self.file("pnpm/server", shim)
            found = self.found(program, path=str(node.parent))
            self.assertEqual(found, {"pnpm/server", "pnpm/global/5/node_modules", "node/bin/node"})

    def test_wrapper_whose_target_lies_elsewhere(self) -> None:
        script = self.package("elsewhere/node_modules/claude")
        link = self.link(".claude/local/node_modules/.bin/claude", self.home / "elsewhere/node_modules/claude/index.js")
        program = self.file(".claude/local/claude", f'#!/bin/bash\nexec "{link}" "$@"\n')
        self.file(".claude/local/package.json", '{"name": "x"}')
        self.assertEqual(self.found(program), {".claude/local", "elsewhere/node_modules"})
        self.assertTrue(script)

    def test_plug_and_play_of_yarn(self) -> None:
        self.file("mono/.pnp.cjs")
        self.assertEqual(self.found("/usr/bin/node", self.package("mono/packages/one")), {"mono"})
