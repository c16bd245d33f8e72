"""Reading command lines."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable

from hypothesis import example, given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.command_rules import Places, parse_pattern
from ironcurtain.commandline import Match, read_command
from ironcurtain.commandline.reading import SIZE_LIMIT
from tests.commandline.strategies import COMPLETE, argvs, lines, wrappers
from tests.examples import examples

HOME = "/home/ann"
PLACES = Places(HOME, [f"{HOME}/project"], lambda path: path)


def run(text: str, shell: str = "bash") -> list[tuple[str, ...]]:
    """:returns: what a line would run."""
    return [command.argv for command in read_command(text, {"HOME": HOME}, shell).commands]


def doubts(text: str, shell: str = "bash") -> tuple[str, ...]:
    """:returns: the doubts about a line."""
    return read_command(text, {"HOME": HOME}, shell).doubts


class ReaderTests(SynchronousTestCase):
    """:func:`read_command`"""

    @given(st.text() | lines, st.sampled_from(("bash", "zsh", "fish")))
    @settings(max_examples=examples(300))
    @example("\ud800", "bash")
    @example("(" * 5000, "bash")
    @example("$(" * 2000, "bash")
    @example("a " * 20000, "bash")
    @example("{" * 300 + "a" + "}" * 300, "bash")
    @example("{a,b}" * 40, "bash")
    @example("sh -c " * 40 + "x", "bash")
    def test_no_text_makes_it_fail(self, text: str, shell: str) -> None:
        read_command(text, {"HOME": HOME}, shell)

    def test_characters_of_high_numbers_do_not_end_the_process(self) -> None:
        for before in ("{", "a; {", "$(( {", "[[ ", "<<", "${", "case a in ", "x=("):
            for first in range(0x100, 0x110000, 0x1000):
                text = f"{before}{chr(first)}"
                doubts(text.encode("utf-8", "replace").decode())

    def test_words_keep_characters_that_are_not_ascii(self) -> None:
        self.assertEqual(run("rm Übung 'é è' {ä,b}ç"), [("rm", "Übung", "é è", "äç", "bç")])
        self.assertEqual(run("é=1 rm x"), [("é=1", "rm", "x")])

    @given(argvs)
    def test_quoted_words_come_back(self, argv: list[str]) -> None:
        self.assertEqual(run(shlex.join(argv)), [tuple(argv)])

    @given(argvs)
    def test_words_come_back_through_shells(self, argv: list[str]) -> None:
        text = shlex.join(argv)
        self.assertEqual(run(f"sh -c {shlex.quote(f'eval {shlex.quote(text)}')}"), [tuple(argv)])

    @given(st.lists(wrappers, max_size=6))
    def test_commands_around_a_command_hide_nothing(self, around: list[Callable[[str], str]]) -> None:
        text = functools.reduce(lambda inner, wrap: wrap(inner), around, "rm -rf /")
        found = parse_pattern("rm -rf /", HOME).denies(read_command(text), PLACES)
        self.assertIs(found, Match.YES, text)

    @given(st.lists(st.sampled_from(COMPLETE)), st.lists(st.sampled_from(COMPLETE)))
    def test_commands_beside_a_command_hide_nothing(self, before: list[str], after: list[str]) -> None:
        text = "\n".join([*before, "rm -rf /", *after])
        self.assertIs(parse_pattern("rm -rf /", HOME).denies(read_command(text), PLACES), Match.YES, text)

    def test_wrappers_are_kept(self) -> None:
        (command,) = read_command("sudo -u root sh -c 'ls -l'").commands
        self.assertEqual(command.argv, ("ls", "-l"))
        around = [tuple(word.text for word in words) for words in command.wrappers]
        self.assertEqual(around, [("sudo", "-u", "root", "sh", "-c", "ls -l"), ("sh", "-c", "ls -l")])
        self.assertEqual(command.text, "ls -l")

    def test_redirections(self) -> None:
        line = read_command("cat < a > b 2>> c &> d 2>&1 > 'e f'")
        self.assertEqual([word.text for word in line.reads], ["a"])
        self.assertEqual([word.text for word in line.writes], ["b", "c", "d", "e f"])
        self.assertEqual(line.doubts, ())
        self.assertEqual(run("rm > out -rf / 2>&1 x"), [("rm", "-rf", "/", "x")])
        self.assertEqual(run("> out rm -rf / < in x"), [("rm", "-rf", "/", "x")])

    def test_words_that_the_grammar_divides(self) -> None:
        self.assertEqual(run("a 'b'\\$ c<(d) e"), [("d",), ("a", "b$", "c${}", "e")])
        self.assertEqual(run("a > 'b'\\$ 'c'\\$"), [("a", "c$")])

    def test_pipelines(self) -> None:
        def flows(text: str) -> list[list[list[str]]]:
            found = read_command(text).pipelines
            return [[[command.argv[0] for command in stage] for stage in chain] for chain in found if len(chain) > 1]

        self.assertEqual(flows("a | sudo b | (c; d)"), [[["a"], ["b"], ["c", "d"]]])
        self.assertEqual(flows("b $(a)"), [[["a"], ["b"]]])
        self.assertEqual(flows("b <(a)"), [[["a"], ["b"]]])
        self.assertIn([["a"], ["b"]], flows("a > >(b)"))
        self.assertEqual(flows("cat <<E | b\nx\nE"), [[["cat"], ["b"]]])
        self.assertEqual(flows("a; b && c"), [])

    def test_here_documents(self) -> None:
        self.assertEqual(run("sh <<'E'\nrm x\nls\nE"), [("rm", "x"), ("ls",)])
        self.assertEqual(run("sh <<E\nrm \\$x\nE\n"), [("rm", "${}")])
        self.assertEqual(run("cat <<E\n$(a `b`)\nE"), [("b",), ("a", "${}"), ("cat",)])
        self.assertEqual(run("cat <<'E'\n$(a)\nE"), [("cat",)])
        for text in (
            "sh <<E\n$x\nE",
            "a <<E\n E\nE x\nE",
            "cat <<A; rm x\nA\n",
            "cat <<E\\F\nEF\n",
            "sh <<'E' | sh\nx\nE",
        ):
            self.assertTrue(doubts(text), text)

    def test_known_variables(self) -> None:
        self.assertEqual(
            run("ls $HOME ${HOME}/x \"$HOME\" '$HOME' $OTHER"),
            [
                ("ls", HOME, f"{HOME}/x", HOME, "$HOME", "${}"),
            ],
        )
        for text in (
            "HOME=/; ls $HOME",
            "read HOME; ls $HOME",
            "for HOME in /; do ls $HOME; done",
            "ls ${HOME:=/} $HOME",
        ):
            self.assertEqual(run(text)[-1][-1], "${}", text)

    def test_limits(self) -> None:
        for text in (
            "a" * (SIZE_LIMIT + 1),
            "a;" * 600,
            "(" * 100 + "a" + ")" * 100,
            "eval " * 20 + "a",
            "a\0b",
            "\udc80",
        ):
            self.assertTrue(doubts(text), text[:40])
        deep = "a"
        for _ in range(5):
            deep = f"sh -c {shlex.quote(deep)}"
        self.assertEqual((run(deep), doubts(deep)), ([("a",)], ()))
        self.assertEqual(doubts(" && ".join(["a"] * 300)), ())

    def test_doubts(self) -> None:
        for text in (
            "$x",
            "a$x",
            "$(a)",
            "*",
            "r?",
            "ls )",
            "ls '",
            "if a",
            "a | sh",
            "sh < f",
            "sh <<< $x",
            "eval $x",
            "source f",
            ". f",
            "alias a=b",
            "bash --rcfile f",
            "sudo --new-option ls",
            "nice --x ls",
            "find . -exec $x {} +",
            "echo (ls)",
            "a [ab] x{",
            "coproc a",
            "x='$(a)'",
            "PATH=x a",
            "export LD_PRELOAD=x",
            "[ab]",
            "1=x",
            "echo ${x@P}",
            "r\\\nm x 'y'",
            '$"a"',
            "ssh -o ProxyCommand=x h ls",
            "! ! =ls",
            "python3 <<< x",
            "curl x | perl",
        ):
            self.assertTrue(doubts(text), text)

    def test_no_doubts(self) -> None:
        for text in (
            "ls -l *.py ~/x ~ \"$x\" ${x} 'a\\b' a\\ b",
            "cat a | sort | uniq -c > out 2>&1",
            "find . -name '*.py' -exec grep -l x {} +",
            "git show HEAD~2 HEAD^ HEAD@{1} stash@{0}",
            "awk '!seen[$0]++ {print $1}' f",
            "test ! -f x && [ a != b ]",
            "ls \\\n  -l\n\ncd x &&\n make -j4 ; time ls",
            "printf '%-5s\\n' $x",
        ):
            self.assertEqual(doubts(text), (), text)

    def test_shells_differ(self) -> None:
        for shell, text in (
            ("zsh", "echo 'a''b'"),
            ("zsh", 'echo "$x:h"'),
            ("fish", "echo 'a\\'"),
        ):
            self.assertEqual(doubts(text), (), text)
            self.assertTrue(doubts(text, shell), text)
        self.assertTrue(doubts("echo '!x' \"y\""))
        self.assertEqual(doubts("echo '!x' \"y\"", "fish"), ())
        self.assertEqual(run("git diff HEAD~1", "zsh"), [("git", "diff", "HEAD*")])
