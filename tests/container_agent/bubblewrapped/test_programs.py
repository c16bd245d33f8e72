from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.container_agent.bubblewrapped.programs import AgentProgram, find, lack, needed
from ironcurtain.container_agent.bubblewrapped.version_managers import VersionManagers
from ironcurtain.container_agent.bubblewrapped.versions import version
from ironcurtain.errors import Unavailable


class ProgramCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.home = Path(tempfile.mkdtemp()).resolve()
        self.addCleanup(shutil.rmtree, self.home)

    def program(self, path: str, text: str = "#!/bin/sh\n") -> str:
        """:returns: the path of a new program below the home."""
        place = self.home / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        place.chmod(0o755)
        return str(place)

    def find(self, search: str = "/nonexistent", said: str = "") -> AgentProgram | None:
        """:param said: what version managers answer."""

        def ask(words: Sequence[str]) -> str:
            self.asked = list(words)
            return said

        homes = [str(self.home)]
        return find("claude", search, homes, VersionManagers(search, homes, ask=ask))

    def link(self, path: str, target: str) -> str:
        """:returns: the path of a new link below the home."""
        place = self.home / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)
        return str(place)


class FindTests(ProgramCase):
    def test_nothing_is_found_where_nothing_is(self) -> None:
        self.assertIsNone(self.find())

    def test_relative_entries_of_the_path_are_passed_over(self) -> None:
        self.program("claude")
        here = os.getcwd()
        self.addCleanup(os.chdir, here)
        os.chdir(self.home)
        self.assertIsNone(self.find("."))

    def test_path_comes_before_the_usual_places(self) -> None:
        self.program(".local/bin/claude")
        mine = self.program("mine/claude")
        self.assertEqual(self.find(f"{self.home}/mine"), AgentProgram("claude", mine, "native", f"{self.home}/mine"))

    def test_native_program_and_its_version(self) -> None:
        real = self.program(".local/share/claude/versions/2.1.9")
        (self.home / ".local/bin").mkdir()
        (self.home / ".local/bin/claude").symlink_to(real)
        found = self.find()
        assert found is not None
        self.assertEqual((found.origin, version(found)), ("native", "2.1.9"))

    def test_newest_node_of_nvm_and_its_package(self) -> None:
        for node in ("v20.1.0", "v22.2.0"):
            self.program(f".nvm/versions/node/{node}/lib/node_modules/p/cli.js")
            (self.home / f".nvm/versions/node/{node}/lib/node_modules/p/package.json").write_text(
                f'{{"version": "{node}"}}'
            )
            (self.home / f".nvm/versions/node/{node}/bin").mkdir()
            (self.home / f".nvm/versions/node/{node}/bin/claude").symlink_to("../lib/node_modules/p/cli.js")
        found = self.find()
        assert found is not None
        self.assertEqual((found.origin, version(found)), ("nvm", "v22.2.0"))

    def test_program_of_pnpm_and_its_package(self) -> None:
        package = self.program("pnpm/global/v11/node_modules/p/cli.js", "#!/usr/bin/env node\n")
        (Path(package).parent / "package.json").write_text('{"version": "3.1.0"}')
        text = f'#!/bin/sh\nexec node "$basedir/../x" "$@"\n# cmd-shim-target={package}\n'
        self.program(".local/share/pnpm/bin/claude", text)
        found = self.find()
        assert found is not None
        self.assertEqual((found.origin, version(found)), ("pnpm", "3.1.0"))

    def test_package_that_cannot_be_read_names_no_version(self) -> None:
        package = self.home / "bin/package.json"
        program = AgentProgram("claude", self.program("bin/claude"), "npm", str(package.parent))
        for text in ("[" * 200_000, "[]", "{", "\xff"):
            package.write_text(text)
            self.assertEqual(version(program), "", text[:9])

    def test_programs_of_homebrew(self) -> None:
        self.program(".linuxbrew/opt/keep")
        for kind, package in (("Cellar", "claude/2.1.9/bin"), ("Caskroom", "claude/2.1.9")):
            real = self.program(f".linuxbrew/{kind}/{package}/claude")
            link = self.home / ".linuxbrew/bin/claude"
            link.unlink(missing_ok=True)
            found = self.find(os.path.dirname(self.link(".linuxbrew/bin/claude", real)))
            assert found is not None
            self.assertEqual((found.origin, version(found)), ("Homebrew", "2.1.9"), kind)

    def test_program_of_the_installer_of_codex(self) -> None:
        real = self.program(".codex/packages/standalone/releases/0.171.0-beta.1-x86_64-unknown-linux-musl/bin/claude")
        found = self.find(os.path.dirname(self.link(".local/bin/claude", real)))
        assert found is not None
        self.assertEqual((found.origin, version(found)), ("native", "0.171.0-beta.1"))


class ShimTests(ProgramCase):
    """Each shim as its manager makes it, in a directory of any name."""

    def test_shim_of_volta(self) -> None:
        self.link("v/bin/claude", self.program("v/bin/volta-shim"))
        self.assert_asked(self.program("v/bin/volta"), "v/bin")

    def test_shim_of_mise(self) -> None:
        tool = self.program(".local/bin/mise")
        self.link("shims/claude", tool)
        self.assert_asked(tool, "shims")

    def test_shim_of_asdf_with_its_path(self) -> None:
        tool = self.program(".asdf/bin/asdf")
        self.program("shims/claude", f'#!/usr/bin/env bash\n# asdf-plugin: nodejs 22\nexec {tool} exec "claude" "$@"\n')
        self.assert_asked(tool, "shims")

    def test_shim_of_asdf_whose_program_is_in_the_home(self) -> None:
        tool = self.program(".local/bin/asdf")
        self.program("shims/claude", '#!/usr/bin/env bash\n# asdf-plugin: nodejs 22\nexec asdf exec "claude" "$@"\n')
        self.assert_asked(tool, "shims")

    def test_shim_without_a_program_is_passed_over(self) -> None:
        self.link("shims/claude", self.program("tools/mise"))
        native = self.program(".local/bin/claude")
        found = self.find(f"{self.home}/shims", said="")
        assert found is not None
        self.assertEqual(found.path, native)

    def test_no_program_is_run_because_a_shim_names_it(self) -> None:
        """A shim may be in the project, and what it names in the home that an agent has on this machine."""
        agents, real = "sessions/1/home", self.program("real/claude")
        self.link("project/linked/claude", self.program(f"{agents}/mise"))
        self.link("project/volta/claude", self.program(f"{agents}/volta-shim"))
        self.program(f"{agents}/volta")
        named = self.program(f"{agents}/asdf")
        self.program("project/script/claude", f'#!/bin/sh\nexec {named} exec "claude" "$@"\n')
        for directory in ("linked", "volta", "script"):
            self.asked: list[str] = []
            self.assertIsNone(self.find(f"{self.home}/project/{directory}", real))
            self.assertEqual(self.asked, [], directory)

    def test_version_manager_in_the_project_is_not_run(self) -> None:
        project, real = str(self.home / "project"), self.program(".local/bin/real")
        tool = self.program("project/bin/mise")
        self.link("shims/claude", tool)
        self.program("scripts/claude", f'#!/bin/sh\nexec {self.program("project/bin/asdf")} exec "claude" "$@"\n')
        homes = [str(self.home)]
        for search in (f"{self.home}/shims", f"{self.home}/scripts"):
            managers = VersionManagers(search, homes, project, lambda words: real)
            self.assertIsNone(find("claude", search, homes, managers))

    def assert_asked(self, tool: str, directory: str) -> None:
        """Find the program in a directory, and assert that this manager was asked."""
        real = self.program("real/claude")
        found, shims = self.find(f"{self.home}/{directory}", f"{real}\n"), f"{self.home}/{directory}"
        assert found is not None
        self.assertEqual((found.path, found.directory), (real, shims))
        self.assertEqual(self.asked, [tool, "which", "claude"])
        self.assertEqual(found.origin, os.path.basename(tool))


class LackTests(ProgramCase):
    def test_script_without_node(self) -> None:
        script = self.program("bin/claude", "#!/usr/bin/env node\n")
        wrapper = self.program("bin/wrapper", f"#!/bin/sh\n# cmd-shim-target={script}\n")
        node = AgentProgram("node", "/usr/bin/node", "native", "/usr/bin")
        for path in (script, wrapper):
            program = AgentProgram("claude", path, "npm", "/bin")
            self.assertIn("needs Node.js", lack(program, None))
            self.assertEqual(lack(program, node), "")

    def test_program_that_needs_none(self) -> None:
        self.assertEqual(lack(AgentProgram("claude", self.program("bin/claude"), "native", "/bin"), None), "")


class NeededTests(ProgramCase):
    def needed(self, path: str, workspace: str = "/nonexistent", protected: Sequence[str] = ()) -> tuple[str, ...]:
        program = AgentProgram("claude", path, "native", "/bin")
        return needed(program, None, "/usr/bin:relative", [str(self.home)], protected, workspace).paths

    def test_no_directory_appears_that_opencode_takes_for_its_settings(self) -> None:
        real = self.program(".opencode/bin/claude")
        (self.home / ".opencode/package.json").write_text('{"dependencies": {}}')
        for path in (real, self.link(".local/bin/claude", real)):
            program = AgentProgram("claude", path, "native", os.path.dirname(path))
            found = needed(program, None, "/usr/bin", [str(self.home)], (), "/nonexistent")
            self.assertEqual(found.moved, ((real, found.program),))
            self.assertEqual(found.search.split(":")[0], os.path.dirname(found.program))
            self.assertEqual([each for each in (*found.paths, found.program) if ".opencode" in each], [])

    def test_shim_of_a_version_that_is_not_installed_does_not_hide_node(self) -> None:
        shims = os.path.dirname(self.link("mise/shims/node", self.program("tools/mise")))
        program = AgentProgram("claude", self.program("p/claude", "#!/usr/bin/env node\n"), "npm", f"{self.home}/p")
        node = AgentProgram("node", "/usr/bin/node", "native", "/usr/bin")
        found = needed(program, node, f"{shims}:/usr/bin", [str(self.home)], (), "/nonexistent")
        self.assertNotIn(shims, found.search.split(":"))
        self.assertNotIn(os.path.dirname(shims), found.paths)

    def test_node_itself_takes_the_place_of_its_shim(self) -> None:
        shims = os.path.dirname(self.link("shims/node", self.program("tools/mise")))
        script = self.program("packages/claude/bin/claude", "#!/usr/bin/env node\n")
        node = self.program("installs/node/22/bin/node")
        self.program("installs/node/22/lib/node_modules/npm/package.json", "{}")
        found = needed(
            AgentProgram("claude", script, "mise", shims),
            AgentProgram("node", node, "mise", shims),
            f"/usr/bin:{shims}",
            [str(self.home)],
            (),
            "/nonexistent",
        )
        directories = found.search.split(":")
        self.assertEqual(directories[:3], [os.path.dirname(script), os.path.dirname(node), "/usr/bin"])
        self.assertNotIn(shims, directories)
        self.assertIn(f"{self.home}/installs/node/22", found.paths)

    def test_program_in_the_project_is_refused(self) -> None:
        program = self.program("project/node_modules/.bin/claude")
        with self.assertRaisesRegex(Unavailable, "in the project"):
            self.needed(program, str(self.home / "project"))

    def test_home_and_its_secrets_are_never_given(self) -> None:
        program = self.program(".local/bin/claude")
        for secret in (".ssh/id", ".claude/.credentials.json", ".cargo/credentials.toml"):
            self.program(secret)
        self.program(".cargo/bin/cargo")
        paths = self.needed(program)
        self.assertIn(str(self.home / ".cargo/bin"), paths)
        for path in paths:
            for secret in (".ssh/id", ".claude/.credentials.json", ".cargo/credentials.toml"):
                self.assertFalse((self.home / secret).is_relative_to(path), path)

    def test_protected_part_of_a_toolchain_is_left_out(self) -> None:
        program = self.program(".local/bin/claude")
        self.program(".pyenv/secret")
        self.program(".pyenv/versions/python")
        paths = self.needed(program, protected=[f"{self.home}/.pyenv/secret"])
        self.assertIn(f"{self.home}/.pyenv/versions", paths)
        self.assertNotIn(f"{self.home}/.pyenv", paths)
