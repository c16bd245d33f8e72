"""The small grammar of lines that may run unasked, and what shells make of such lines."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.commandline.builtins import OWN
from ironcurtain.commandline.plain import NotPlain, Pipeline, read_plain
from tests.commandline.strategies import PLAIN_OPERATORS, PLAIN_REDIRECTIONS, PLAIN_WORDS, lines
from tests.programs import program

SHELLS = {"bash": ("bash", "--norc"), "zsh": ("zsh", "-f"), "fish": ("fish", "-N")}
"""Each shell, and how it is started without anybody's files."""

PARTS = (
    *(written for written, _ in PLAIN_WORDS),
    *(
        "$V",
        '"$V"',
        "${V}",
        "'!x'",
        "'a != b'",
        "HEAD~2",
        "HEAD^",
        "x@{1}",
        "[",
        "!",
        "!=",
        "*.zz",
        "?",
        "[a]",
        "$?",
        "a{",
        "}",
    ),
    *(
        "~a",
        "a~b",
        "==",
        "^a",
        "%a",
        "=ls",
        "<1-5>",
        "a#b",
        "#c",
        "!!",
        "!x",
        "$V[1]",
        "$V:h",
        "${V:-y}",
        "$'a'",
        "a&b",
    ),
    *("(a)", "**", "{a,b}", "\\n", "\\!", '"!"', '"`x`"', '"$(rm V)"', "$(rm V)", "`rm V`", "<(rm V)", "'\\'", "\\\n"),
    *("=(rm V)", "*(e:'rm V':)", "${(e)V}", "$[V]", "&", "|&", ">|", ">!", ">?", "<<<", "a'", 'a"', "\u00a0", "\u202e"),
)
"""Parts of words: those of the grammar, and such as mean something in one of the shells."""

SPECIAL = re.compile(r"[`()&{}#<!]|\$[^A-Za-z_{?]|>[^> \t\w./'\"$~-]|\*\*|\\[A-Za-z0-9]")
"""What a shell would not take for itself, outside of quotes; operators and redirections are taken away before."""


def read(text: str, shell: str = "bash") -> tuple[Pipeline, ...] | None:
    """:returns: the pipelines of a line; ``None`` if it is not of the grammar."""
    try:
        return read_plain(text, {"HOME": "/home/ann"}, shell)
    except NotPlain:
        return None


def _whole(line: str) -> str:
    """:returns: a line for fish, which reads the lines after an error only if it is quoted."""
    return "eval '" + line.replace("\\", "\\\\").replace("'", "\\'") + "'"


class GrammarTests(SynchronousTestCase):
    """:func:`read_plain`"""

    @given(
        st.lists(
            st.tuples(
                st.lists(st.sampled_from(PLAIN_WORDS), max_size=4),
                st.sampled_from(PLAIN_REDIRECTIONS),
                st.sampled_from(PLAIN_OPERATORS),
            ),
            min_size=1,
            max_size=4,
        ),
        st.sampled_from(tuple(SHELLS)),
    )
    def test_simple_commands_come_back_as_they_are(
        self, parts: list[tuple[list[tuple[str, str]], tuple[str, str, str], str]], shell: str
    ) -> None:
        text = "".join(
            f"tool {' '.join(written for written, _ in words)} {redirection[0]}{operator}"
            for words, redirection, operator in parts
        )
        found = read(f"{text}last", shell)
        assert found is not None, text
        commands = [command for pipeline in found for command in pipeline]
        self.assertEqual(
            [[word.text for word in command.words] for command in commands],
            [["tool", *(meant for _, meant in words)] for words, _, _ in parts] + [["last"]],
        )
        for command, (_, (_, reads, writes), _) in zip(commands, parts, strict=False):
            self.assertEqual([word.text for word in command.reads], reads.split())
            self.assertEqual([word.text for word in command.writes], writes.split())
        self.assertEqual(len(found), 1 + sum(operator.strip() != "|" for _, _, operator in parts))

    @given(st.text() | lines | st.lists(st.sampled_from(PARTS)).map("".join), st.sampled_from(tuple(SHELLS)))
    @example("functions[ls]='rm x'; ls", "zsh")
    @example("(" * 9000, "bash")
    def test_nothing_that_means_more_is_in_it(self, text: str, shell: str) -> None:
        if read(text, shell) is None:
            return
        bare = re.sub(r"'[^']*'|\\[^A-Za-z0-9]|[12]?>&[12]|&>|&&|@\{[0-9]+\}|\$\{\w+\}", "_", text)
        bare = re.sub(r'"(?:[^"\\]|\\.)*"', lambda quotes: re.sub(r"[^$`!]", "_", quotes[0]), bare)
        bare = re.sub(r"(?<=[ \t])(?:\{\}|!=?|<)(?=[ \t'\"/\w.$~-]|$)", "_", bare)
        self.assertIsNone(SPECIAL.search(bare), text)

    def test_the_rest_is_not_in_it(self) -> None:
        for text in (
            *("x=1", "x=1 ls", "PATH=. ls", "x+=1", "a[0]=1", "functions[ls]='x'", "$x", "'ls", "l?", "*", "ls;;ls"),
            *("if ls", "for x in a", "{ ls", "( ls )", "f() ls", "! ls", "[[ a", "select x", "function f", "not ls"),
            *("ls &", "ls & rm", "ls |& rm", "ls $(rm)", "ls `rm`", 'ls "$(rm)"', 'ls "`rm`"', "ls <(rm)", "ls =(rm)"),
            *("ls <<E", "ls <<<x", "ls >| x", "ls >& x", "ls <> x", "ls > *", "ls >", "> x", "ls 3> x", "ls 2<x"),
            *("ls *(e:'rm':)", "ls **", "ls ${x:-y}", "ls ${(e)x}", "ls $x[1]", "ls $((1))", "ls $'a'", 'ls $"a"'),
            *("ls #x", "ls a#b", "ls !x", 'ls "!x"', "ls {a,b}", "=ls", "ls =ls", "ls ~ann", "ls a=~/x", "ls %1"),
            *(
                "r\\m x",
                "ls \\n",
                "ls\\\n x",
                "ls 'a",
                'ls "a',
                "ls \u00a0",
                "ls '\u202e'",
                "-",
                ".",
                "ls ;; rm",
                "| ls",
            ),
            *("ls ||", "ls &&", "ls a>b", "ls &&& rm", "ls 'x' '!y' \"z\""),
        ):
            self.assertIsNone(read(text), text)


class ShellTests(SynchronousTestCase):
    """What real shells run."""

    def setUp(self) -> None:
        self.home = tempfile.mkdtemp(prefix="ic-")
        self.addCleanup(shutil.rmtree, self.home)

    def test_shells_give_programs_these_words(self) -> None:
        choose = random.Random(27)
        for shell, command in SHELLS.items():
            program(shell)
            expected, script = list[str](), list[str]()
            while len(script) < 250:
                words = ["".join(choose.choices(PARTS, k=choose.choice((1, 1, 2)))) for _ in range(choose.randrange(4))]
                if (found := read(line := f"tool '<%s>' end {' '.join(words)}", shell)) is None:
                    continue
                given = found[0][0].words
                exact = len(found) == 1 and all(word.known and not word.is_glob for word in given)
                script += [_whole(line) if shell == "fish" else line, "tool '\\n'"]
                expected.append(
                    "".join(f"<{self._meant(word.pattern, word.text)}>" for word in given[2:]) if exact else ""
                )
            said, canary = self._said(command, "\n".join(script))
            self.assertEqual(canary, ["V", "bin"], shell)
            self.assertEqual(len(said), len(expected), shell)
            wrong = [pair for pair in zip(expected, said, strict=True) if pair[0] and pair[0] != pair[1]]
            self.assertEqual(wrong, [], shell)

    def _meant(self, pattern: str, text: str) -> str:
        return f"{self.home}{text[1:]}" if pattern.startswith("~") else text

    def _said(self, command: tuple[str, ...], script: str) -> tuple[list[str], list[str]]:
        """:returns: what the lines print, and the files that are there afterwards."""
        with tempfile.TemporaryDirectory(prefix="ic-") as directory:
            Path(directory, "V").touch()
            Path(directory, "bin").mkdir()
            os.symlink("/usr/bin/printf", Path(directory, "bin/tool"))
            environ = {"PATH": f"{directory}/bin:/usr/bin:/bin", "HOME": self.home, "V": "*; rm V $(rm V)"}
            before = "set -o histexpand -o history\n" if command[0] == "bash" else ""
            done = subprocess.run(
                command, cwd=directory, env={**environ, "LC_ALL": "C.UTF-8"}, input=f"{before}{script}\n",
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=60, check=False,
                start_new_session=True,
            )  # fmt: skip
            return done.stdout.split("\n")[:-1], sorted(os.listdir(directory))

    def test_all_builtins_of_the_shells_are_known(self) -> None:
        for shell, question in (
            ("bash", "compgen -b"),
            ("zsh", "zmodload zsh/sched zsh/parameter; print -rl -- ${(k)builtins}"),
            ("fish", "builtin -n"),
        ):
            words = [*SHELLS[shell], "-c", question]
            program(words[0])
            said = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout.split()
            self.assertGreater(len(said), 40)
            self.assertEqual([name for name in said if name not in OWN], [], shell)
