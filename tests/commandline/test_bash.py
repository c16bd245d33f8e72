"""What bash runs is in the reading."""

from __future__ import annotations

import shutil
import subprocess

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.commandline import read_command

SCRIPT = """
command_not_found_handle() { local all; printf -v all '%s\\1' "$@"; printf '%s\\2' "$all" >&9; }
PATH=/nonexistent; exec 9>&1 >/dev/null 2>/dev/null; cd /
eval "$1"
wait
"""
"""Runs a line in which no command is found, and prints the arguments of each that bash looked for."""

LINES = (
    r"""r\m 'a b' "c$(d)" $'\x41\'' {e,f}g h"i"'j'\k""",
    "a > /dev/null b 2>&1 c <<< d e",
    "a 2>&1 b",
    "> /dev/null a b < /dev/null c",
    "x=1 y=(2 3) a; z= b",
    r"""a 'b'\$ c<(d) "e"$'f'""",
    r"""a `b \`c\`` "`d "e"`" """,
    "case x in (a|x) b;; *) c;; esac; d",
    "if ! a; then b; else c; fi | d",
    "a && b || c & d; wait; e",
    'f() { a "$@"; b; }; f x y; command c',
    "for i in 1 {2,3}; do a $i; done; b",
    "{ a; (b; c) } 2>&1 | d",
    """eval 'a "b c"' d; eval a\\;b""",
    "a \\\n  b \\#c #d",
    "cat <<E; a ${x:-$(b)}\n$(c d)\nE\n",
    "a <<'E' b\n$(c)\nE\n",
    "a <<-E | b\n\t`c`\n\tE\nd",
    "time a -; ! b; time -p c",
    "time x=1 a b",
    "a \"b\nc\" '\n' d",
    "a ;b&c|d",
    """echo "$((1+$(a)))" "${x:=$(b)}" """,
    "trap 'a b' EXIT; c",
    "eval [ab]",
    "eval 1==a",
    "a - 2>&1",
    "a {,x} {b}",
    "\\ a",
    "a \\  b",
    "coproc a; b",
    "select x in a; do b; break; done <<< 1; c",
    "((a=1)) && [[ -n $(b) ]] && [ -z '' ] && c",
    "a |& b | (c) | { d; }",
    "a <(b) > >(c)",
)


class BashTests(SynchronousTestCase):
    """:func:`read_command`"""

    def test_bash_runs_nothing_else(self) -> None:
        bash = shutil.which("bash")
        if bash is None:
            self.skipTest("bash is not installed")
        for line in LINES:
            program = [bash, "--norc", "-c", SCRIPT, "sh", line]
            done = subprocess.run(program, capture_output=True, text=True, timeout=60)
            ran = {tuple(argv.split("\1")[:-1]) for argv in done.stdout.split("\2")[:-1]}
            self.assertTrue(ran, line)
            read = read_command(line)
            if read.doubts:
                continue
            names = {words[0].text for command in read.commands for words in command.levels}
            self.assertEqual({argv[0] for argv in ran} - names, set(), line)
            if all(word.known for command in read.commands for word in command.words):
                self.assertEqual(ran - {command.argv for command in read.commands}, set(), line)
