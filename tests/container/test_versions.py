from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.container.image_choices import shipped_programs
from ironcurtain.container.versions import (
    ImageProgram,
    NoRelease,
    Release,
    moved,
    question,
    read_answer,
    read_versions,
    write_versions,
)
from ironcurtain.errors import ConfigurationError

SUM = "sha512-" + "A" * 86 + "=="
OTHER_SUM = "sha512-" + "B" * 86 + "=="

TEXT = f"""
[base]
version = "2026-01-31"

[my-agent]
version = "1.2.3"
follows = "@scope/my-agent"
packages.amd64 = "@scope/my-agent@{{version}}-linux-x64"
packages.arm64 = "@scope/my-agent@{{version}}-linux-arm64"
integrity.amd64 = "{SUM}"

[script]
version = "7"
packages.any = "script@{{version}}"
integrity.any = "{SUM}"

[new]
packages.any = "new@{{version}}"
"""


class ReadTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.programs = read_versions("v.toml", TEXT)

    def test_a_release_is_named_by_package_and_checksum(self) -> None:
        self.assertEqual(
            self.programs["my-agent"].arguments("amd64"),
            {"MY_AGENT_PACKAGE": "@scope/my-agent@1.2.3-linux-x64", "MY_AGENT_INTEGRITY": SUM},
        )

    def test_a_program_may_be_the_same_for_each_architecture(self) -> None:
        for architecture in ("amd64", "riscv64"):
            self.assertEqual(self.programs["script"].arguments(architecture)["SCRIPT_PACKAGE"], "script@7")

    def test_the_base_image_has_a_day(self) -> None:
        self.assertEqual(self.programs["base"].arguments("amd64"), {"BASE_VERSION": "2026-01-31"})

    def test_nothing_is_downloaded_without_a_checksum(self) -> None:
        for name, architecture in (("my-agent", "arm64"), ("my-agent", "s390x"), ("new", "amd64")):
            refused = self.assertRaises(NoRelease, self.programs[name].arguments, architecture)
            self.assertIn(f"images update {name}", str(refused))

    def test_what_could_be_more_than_a_name_or_checksum_is_refused(self) -> None:
        for wrong in (
            'version = "1; reboot"',
            'follows = "$(reboot)"',
            'packages.any = "a b"',
            'packages.any = "git+ssh://x y"',
            'integrity.any = "sha1-abc"',
            'integrity.any = "sha512-abc"',
            f'integrity.any = "{SUM}\\n"',
            'color = "red"',
        ):
            refused = self.assertRaises(ConfigurationError, read_versions, "v.toml", f"[x]\n{wrong}\n")
            self.assertEqual(refused.line, 2, wrong)

    def test_a_newer_format_is_refused(self) -> None:
        self.assertRaises(ConfigurationError, read_versions, "v.toml", "version = 2")

    def test_what_is_shipped_can_be_built(self) -> None:
        programs = shipped_programs()
        for name in ("claude-code", "codex", "gemini", "node", "opencode"):
            package = programs[name].arguments("amd64")[f"{name.upper().replace('-', '_')}_PACKAGE"]
            self.assertIn(f"@{programs[name].version}", package)
            self.assertTrue(programs[name].follows)
        self.assertRaises(NoRelease, programs["goose"].arguments, "amd64")


class MoveTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.programs = read_versions("v.toml", TEXT)

    def test_the_homes_file_comes_first_and_says_only_what_differs(self) -> None:
        after = moved(self.programs, [Release("new", "2", {"any": OTHER_SUM}), Release("base", "2026-02-01", {})])
        text = write_versions([after["new"], after["base"]])
        self.assertEqual(read_versions("home.toml", text, self.programs), after)
        self.assertNotIn("packages", text)

    def test_a_release_brings_its_own_checksums_only(self) -> None:
        after = moved(self.programs, [Release("my-agent", "1.2.4", {"arm64": OTHER_SUM})])["my-agent"]
        self.assertRaises(NoRelease, after.arguments, "amd64")
        self.assertEqual(after.arguments("arm64")["MY_AGENT_PACKAGE"], "@scope/my-agent@1.2.4-linux-arm64")

    def test_the_homes_file_cannot_name_packages_or_programs(self) -> None:
        text = f'[script]\nversion = "8"\npackages.any = "evil@1"\nintegrity.any = "{SUM}"\n[other]\nversion = "1"\n'
        after = read_versions("home.toml", text, self.programs)
        self.assertEqual(after["script"].arguments("amd64")["SCRIPT_PACKAGE"], "script@8")
        self.assertNotIn("other", after)


class AnswerTests(SynchronousTestCase):
    def test_a_question_names_everything(self) -> None:
        program = ImageProgram("a", "1", "@s/a", {"amd64": "@s/a@{version}", "arm64": "b"}, {})
        self.assertEqual(question(program), "a @s/a amd64=@s/a@{version} arm64=b")

    def test_an_answer_is_read(self) -> None:
        answer = read_answer(f"newest my-agent 1.2.4-rc.1 amd64={SUM} arm64={OTHER_SUM}")
        self.assertEqual(answer, Release("my-agent", "1.2.4-rc.1", {"amd64": SUM, "arm64": OTHER_SUM}))
        self.assertEqual(read_answer("newest a 1\r"), Release("a", "1", {}))

    def test_other_lines_are_no_answer(self) -> None:
        for line in ("", "newest", "newest a", "newest a -1", "npm WARN newest a 1", f"newest a 1 amd64={SUM} x"):
            self.assertIsNone(read_answer(line), line)

    @given(st.text())
    def test_an_answer_can_be_read_again_once_written(self, line: str) -> None:
        answer = read_answer(f"newest {line}")
        if answer is not None and not answer.integrity:
            program = ImageProgram(answer.name, answer.version, "", {}, {})
            self.assertIn(answer.version, write_versions([program]))
