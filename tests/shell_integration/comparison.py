"""Shells with marks beside plain ones: what is typed into both, and how they are compared."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from difflib import unified_diff
from pathlib import Path
from types import MappingProxyType

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.shell_integration.marks import (
    CommandBegan,
    CommandEnded,
    DirectoryChanged,
    InstructionTyped,
    PromptEnded,
    VariableReported,
)
from tests.programs import program
from tests.shell_integration.shells import PROMPT, InteractiveShell, pasted

UP, HOME, LEFT, ESC = "\x1b[A", "\x01", "\x1b[D", "\x1b"
CONTROL_C, CONTROL_D, CONTROL_R, CONTROL_U = "\x03", "\x04", "\x12", "\x15"

Step = str | tuple[str, ...]
"""A line to type and to enter at a prompt; or keys, and what to wait for after them, in turn."""

ENVIRONMENT = r"""env | grep -v '^_=\|^SHLVL=' | LC_ALL=C sort"""


class ShellCase(SynchronousTestCase):
    """One shell with marks and one without, in a home directory each that has the same files."""

    maxDiff = None
    files: Mapping[str, str]

    def setUp(self) -> None:
        self.shells: list[InteractiveShell] = []

    def tearDown(self) -> None:
        for shell in self.shells:
            shell.end()

    def start(
        self, *argv: str, wrapped: bool = True, environ: Mapping[str, str] = MappingProxyType({})
    ) -> InteractiveShell:
        home = Path(tempfile.mkdtemp(prefix="shell-"))
        self.addCleanup(shutil.rmtree, home, ignore_errors=True)
        for name, content in self.files.items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(content)
        shell = InteractiveShell(argv, home, wrapped, environ)
        self.shells.append(shell)
        shell.prompts()
        return shell

    def run_in(self, shell: InteractiveShell, steps: Sequence[Step]) -> None:
        for step in steps:
            if isinstance(step, str):
                shell.enter(step)
                continue
            for keys, text in zip(step[::2], step[1::2], strict=True):
                if keys == CONTROL_C:
                    shell.interrupt()
                else:
                    shell.type(keys)
                shell.shows(text)
            shell.prompts()

    def compare(self, argv: Sequence[str], steps: Sequence[Step], *instructions: str, **environ: str) -> None:
        """
        Do the same in both.

        :param instructions: that the one with marks has caught.
        """
        wrapped, plain = self.start(*argv, environ=environ), self.start(*argv, wrapped=False, environ=environ)
        for shell in (wrapped, plain):
            self.run_in(shell, steps)
        self.look_the_same(wrapped, plain)
        self.assertEqual(wrapped.instructions, list(instructions))

    def look_the_same(self, wrapped: InteractiveShell, plain: InteractiveShell) -> None:
        """Compare what their terminals show."""
        seen, expected = ([line.replace(str(shell.home), "~") for line in shell.screen()] for shell in (wrapped, plain))
        self.assertEqual("\n".join(unified_diff(expected, seen, "plain", "wrapped", n=1, lineterm="")), "")

    def programs(self, name: str) -> None:
        """Type into programs that have the screen, or a line editor of their own."""
        program("vim")
        program("less")
        shell = self.start(name)
        shell.enter(name)
        shell.enter("env | grep -c -i ironcurtain")
        self.assertIn("\n0\n", shell.new)
        shell.enter("exit")
        shell.type("vim -u NONE -N file\r")
        shell.shows("~")
        shell.type(f"i# in vim\r# more{ESC}")
        shell.shows("more")
        shell.type(":wq\r")
        shell.prompts()
        shell.enter("cat file")
        self.assertIn("# in vim\n# more\n", shell.new)
        shell.type("less file\r")
        shell.shows("(END)")
        shell.type("/# more\rq")
        shell.prompts()
        shell.type("echo o''n; vim -es -u NONE file; echo e''nd\r")
        shell.shows("on\n")
        shell.type("# ex\rq!\r")
        shell.shows("end\n")
        shell.prompts()
        shell.enter("# after all")
        self.assertEqual(shell.instructions, ["after all"])

    def typed_ahead(self, name: str) -> None:
        """Give an instruction, and a command, while a command runs."""
        wrapped, plain = self.start(name), self.start(name, wrapped=False)
        for shell in (wrapped, plain):
            shell.type("echo wai''t; head -n 1; echo do''ne\r")
            shell.shows("wait\n")
            shell.type("line\r# typed ahead\recho after\r")
            shell.prompted(3)
        self.look_the_same(wrapped, plain)
        self.assertEqual(wrapped.instructions, ["typed ahead"])

    def variables(self, name: str, export: str, unset: str) -> None:
        """
        See what is reported with instructions, and only with these.

        :param export: exports the variable ``marks``, with a blank, a quote and a line break in its value.
        :param unset: takes LANG away.
        """
        shell = self.start(name, environ={"code": "Größe=1"})
        self.run_in(shell, ["true", "# one"])
        reported = {mark.name: mark.value for mark in shell.marks if isinstance(mark, VariableReported)}
        self.assertEqual({**reported, "PATH": ""}, {"PATH": "", **BEFORE})
        self.assertIn("/bin", reported["PATH"] or "")
        shell.marks.clear()
        self.run_in(shell, [export, unset])
        self.assertEqual([mark for mark in shell.marks if isinstance(mark, VariableReported)], [])
        shell.enter("# two")
        reported = {mark.name: mark.value for mark in shell.marks if isinstance(mark, VariableReported)}
        self.assertEqual({**reported, "PATH": ""}, {"PATH": "", **BEFORE, "LANG": None, "marks": "a 'b\nc"})
        kinds = [type(mark) for mark in shell.marks]
        self.assertLess(kinds.index(InstructionTyped), kinds.index(VariableReported))

    def marks(self, name: str) -> None:
        """See which marks there are."""
        shell = self.start(name)
        self.run_in(shell, ["mkdir 'ä b;'; cd ä*; false", "", "sh -c 'exit 7'"])
        self.assertEqual([mark.status for mark in shell.marks if isinstance(mark, CommandEnded)], [1, 7])
        self.assertEqual(sum(isinstance(mark, CommandBegan) for mark in shell.marks), 2)
        self.assertEqual(
            [mark.path for mark in shell.marks if isinstance(mark, DirectoryChanged)],
            [f"{shell.home}", *[f"{shell.home}/ä b;"] * 3],
        )
        self.assertIsInstance(shell.marks[-1], PromptEnded)
        shell.type("exit 5\r")
        self.assertEqual(shell.ended(), 5)


BEFORE = {"LANG": "C.UTF-8", "code": "Größe=1", "marks": None, "value": None}
"""What a shell reports at first, but for ``PATH``."""

EVERYWHERE: Sequence[Step] = (
    "echo one",
    "",
    "echo two # a comment",
    "echo '# quoted'",
    "echo \\# escaped",
    "    # indented",
    "# größer als 日本語",
    "##  double",
    "#",
    "#!/bin/sh",
    "# rm -rf / & b | c > d; `e` $(f) \"g\" 'h' \\",
    "# " + "long " * 60,
    "cd /",
    "pwd",
    "cd",
    "ls -A",
    "nosuchcommand",
    "(",
)
CAUGHT_EVERYWHERE = (
    "größer als 日本語",
    "double",
    "",
    "!/bin/sh",
    "rm -rf / & b | c > d; `e` $(f) \"g\" 'h' \\",
    ("long " * 60).strip(),
)

PROGRAMS: Sequence[Step] = (
    ("echo o''n; cat\r", "on\n", "# cat\r", "# cat\n# cat", CONTROL_D, ""),
    ("python3 -Iq\r", ">>> ", "# python\r", "\n>>> ", "exit()\r", "exit()"),
    ("PS1='n''ested ' sh\r", "nested ", "# sh\r", "\nnested ", "exit\r", "exit"),
    ("echo o''n; head -n 1 | cat\r", "on\n", "# pipe\r", "# pipe\n# pipe"),
    ("sh -c 'echo o''n; read x; echo =$x'\r", "on\n", "# read\r", "=# read"),
    (
        "script -qc 'echo o\"\"n; cat' /dev/null; echo e''nd\r",
        "on\n",
        "# script\r",
        "# script\n# script",
        CONTROL_D,
        "end",
    ),
    "echo after",
)

EDITED: Sequence[Step] = (
    f"free some space{HOME}# ",
    f"echo no{CONTROL_U}# after Ctrl-U",
    f"# corected{LEFT * 6}r",
    f"{UP}",
    f"echo x{HOME}",
    ("# not sent", "# not sent", CONTROL_C, ""),
    "# after Ctrl-C",
    pasted("# first\n# second"),
    pasted("# blank line\n\n  # and indented\n"),
    pasted("# mixed\necho mixed"),
    pasted("echo mixed\n# again"),
    pasted("# one"),
    "echo after",
)
CAUGHT_EDITED = (
    "free some space",
    "after Ctrl-U",
    "corrected",
    "corrected",
    "after Ctrl-C",
    "first\nsecond",
    "blank line\n\nand indented",
    "one",
)

_LENGTHS = range(88 - len(PROMPT), 104 - len(PROMPT))
WRAPPED: Sequence[Step] = (
    *(f": {'x' * length}" for length in _LENGTHS),
    *(f": {'日' * 45}{'x' * length}{HOME}" for length in range(5)),
    *(f"# {'x' * length}{LEFT * 9}" for length in _LENGTHS),
    *(f"# {'x' * length}{HOME}" for length in range(180, 204)),
)
CAUGHT_WRAPPED = (*("x" * length for length in _LENGTHS), *("x" * length for length in range(180, 204)))
