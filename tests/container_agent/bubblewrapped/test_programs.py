from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.container_agent.bubblewrapped.programs import AgentProgram, find, needed, version
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
        def ask(words: Sequence[str]) -> str:
            self.asked = list(words)
            return said

        return find("claude", search, [str(self.home)], ask)


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
        self.assertEqual(self.find(f"{self.home}/mine"), AgentProgram("claude", mine, "native"))

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

    def test_shim_is_resolved_by_its_manager(self) -> None:
        self.program(".volta/bin/claude")
        tool, real = self.program(".volta/bin/volta"), self.program(".volta/tools/image/packages/p/bin/claude")
        self.assertEqual(self.find(said=f"{real}\n"), AgentProgram("claude", real, "volta"))
        self.assertEqual(self.asked, [tool, "which", "claude"])

    def test_shim_without_a_program_is_passed_over(self) -> None:
        self.program(".volta/bin/claude")
        self.program(".volta/bin/volta")
        self.assertIsNone(self.find(said=""))

    def test_version_manager_in_the_project_is_not_run(self) -> None:
        project, real = str(self.home / "project"), self.program(".local/bin/real")
        self.program("project/bin/mise")
        self.program(".local/share/mise/shims/claude")
        (self.home / "link").symlink_to("project/bin")
        for search in (f"{project}/bin", f"{self.home}/link"):
            self.assertIsNone(find("claude", search, [str(self.home)], lambda words: real, project))


class NeededTests(ProgramCase):
    def needed(self, path: str, workspace: str = "/nonexistent", protected: Sequence[str] = ()) -> tuple[str, ...]:
        program = AgentProgram("claude", path, "native")
        return needed(program, "/usr/bin:relative", [str(self.home)], protected, workspace).paths

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
