"""What command lines of interpreters and wrappers name."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.sandbox.command_lines import CommandLine, read_command_line

PROGRAMS = ("python3", "node", "deno", "bun", "ruby", "perl", "sh", "env", "uv", "other")
WORDS = st.one_of(
    st.text(max_size=8), st.sampled_from(("-W", "-c", "-m", "--", "-", "run", "--require", "-S", "a=b", "-uW", "x.py"))
)


def read(text: str, *more: str) -> CommandLine:
    program, *words = text.split()
    return read_command_line(program, [*words, *more], {"HOME": "/home/ada"})


class ScriptTests(SynchronousTestCase):
    def test_values_of_options_are_not_scripts(self) -> None:
        for text in (
            "python3 -W ignore s x",
            "python3.12 -X dev s x",
            "python3 -uW ignore s x",
            "python3 -Wignore -- s x",
            "python3 --check-hash-based-pycs always s x",
            "node --title t s x",
            "node --max-old-space-size=9 --conditions c s x",
            "deno run --allow-read=/a -A --log-level debug s x",
            "bun run --port 1 s x",
            "bun s x",
            "ruby -E utf-8 -w s x",
            "perl -T -Mstrict s x",
            "perl -i.e s x",
            "bash -o pipefail -e s x",
        ):
            self.assertEqual(read(text).scripts, ("s", "x"), text)

    def test_options_end_at_two_dashes(self) -> None:
        self.assertEqual(read("node -r a -- -s x").scripts, ("-s", "x"))

    def test_code_and_modules_leave_no_script(self) -> None:
        for text in ("python3 -c s", "python3 -Im mod s", "node -e s", "node --eval=1 s", "perl -e s", "ruby -w -e s"):
            self.assertEqual(read(text).scripts, (), text)

    def test_unknown_program_names_nothing(self) -> None:
        self.assertEqual(read("other -c s"), CommandLine())


class FilesTests(SynchronousTestCase):
    def test_files_that_are_read_first(self) -> None:
        line = read("node --require ./a.js --import=b.mjs -r c --env-file .env s.js")
        self.assertEqual((line.files, line.scripts), (["./a.js", "b.mjs", "c", ".env"], ("s.js",)))
        self.assertEqual(read("deno run -A --import-map m.json s.ts").files, ["m.json"])
        self.assertEqual(read("bash --rcfile r s").files, ["r"])

    def test_directories_with_modules(self) -> None:
        self.assertEqual(read("ruby -I a -Ib s").directories, ["a", "b"])
        self.assertEqual(read("perl -Ilib s").directories, ["lib"])

    def test_packages_of_a_person(self) -> None:
        self.assertTrue(read("python3 -m mod").own_packages)
        self.assertFalse(read("python3 -Im mod").own_packages)
        self.assertFalse(read_command_line("python3", ["s"], {"PYTHONNOUSERSITE": "1"}).own_packages)


class CommandTests(SynchronousTestCase):
    def test_env(self) -> None:
        line = read("env -i -u X PYTHONPATH=/a:/b VAR=x python3 s.py")
        self.assertEqual(line.commands, [("python3", ("s.py",))])
        self.assertEqual(line.directories, ["/a", "/b"])
        self.assertEqual(read("env -C /d node s").cwd, "/d")
        self.assertEqual(read("env", "-S", "A=1 node --x", "s").commands, [("node", ("--x", "s"))])

    def test_shell(self) -> None:
        line = read("bash -lc", "cd ~/srv && cd sub; A=1 exec node $HOME/a.js 2>/dev/null | tee x", "ignored")
        self.assertEqual(line.cwd, "/home/ada/srv/sub")
        self.assertEqual(line.commands, [("node", ("/home/ada/a.js", "2")), ("tee", ("x",))])
        self.assertEqual(read("sh -c", ". ./env.sh; x").files, ["./env.sh"])
        self.assertEqual(read("sh -c", "it's").commands, [])

    def test_uv(self) -> None:
        line = read("uv --directory /d run --with x --frozen script -v")
        self.assertEqual((line.cwd, line.project, line.commands), ("/d", ".", [("script", ("-v",))]))
        line = read("uv run --project /p -m mod")
        self.assertEqual((line.cwd, line.project, line.commands), ("", "/p", []))
        self.assertIsNone(read("uv tool run x").project)

    @given(st.sampled_from(PROGRAMS), st.lists(WORDS, max_size=6))
    def test_any_words_are_read(self, program: str, words: list[str]) -> None:
        line = read_command_line(program, words, {})
        for command in line.commands:
            self.assertTrue(set(" ".join(command[1])) <= set(" ".join(words) + "/"))
