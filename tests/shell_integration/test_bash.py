from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.shell_integration.comparison import (
    CAUGHT_EDITED,
    CAUGHT_EVERYWHERE,
    CAUGHT_WRAPPED,
    CONTROL_C,
    EDITED,
    ENVIRONMENT,
    ESC,
    EVERYWHERE,
    PROGRAMS,
    WRAPPED,
    ShellCase,
    Step,
)
from tests.shell_integration.shells import PROMPT, pasted


class BashTests(ShellCase):
    files: Mapping[str, str] = {".bashrc": f"PS1='{PROMPT}'\nunset HISTFILE\n"}

    def test_lines(self) -> None:
        self.compare(["bash"], EVERYWHERE[:-1], *CAUGHT_EVERYWHERE)

    def test_programs(self) -> None:
        self.compare(["bash"], PROGRAMS)

    def test_typed_ahead(self) -> None:
        self.typed_ahead("bash")

    def test_lines_that_wrap(self) -> None:
        self.compare(["bash"], WRAPPED, *CAUGHT_WRAPPED)

    def test_programs_with_the_screen(self) -> None:
        self.programs("bash")

    def test_editing(self) -> None:
        self.compare(["bash"], (*EDITED, "fc -l -20"), *CAUGHT_EDITED)

    def test_continued_lines(self) -> None:
        self.compare(
            ["bash"],
            (
                ("cat <<E\r", "> ", "# document\r", "\n> ", "E\r", "# document"),
                ("for x in 1\r", "> ", "# loop\r", "\n> ", "do echo $x; done\r", "1"),
                ("echo 'a\r", "> ", "# quoted\r", "\n> ", "c'\r", "c"),
                ("echo a \\\r", "> ", "# continued\r", "a"),
                ("case x in\r", "> ", "# case\r", "\n> ", "x) echo y;; esac\r", "y"),
                ("f() {\r", "> ", "# function\r", "\n> ", "echo f; }\r", "f"),
                ("true &&\r", "> ", "# list\r", "\n> ", "echo list\r", "list"),
                ("x=(1\r", "> ", "# array\r", "\n> ", "2)\r", "2"),
                ("echo $(\r", "> ", "# substituted\r", "\n> ", ")\r", ")"),
                ("for x in 1\r", "> ", CONTROL_C, ""),
                "# after a continued line",
                pasted("cat <<E\n# document\nE"),
                "fc -l -20",
            ),
            "after a continued line",
        )

    def test_what_reads_in_the_shell(self) -> None:
        self.compare(
            ["bash"],
            (
                ("printf g''o; read x\r", "go", "# read\r", "# read"),
                ("read -e -p 'e''dit? ' x\r", "edit? ", "# edited\r", "# edited"),
                "echo $x",
                ("select x in a b; do echo =$x; break; done\r", "#? ", "# select\r", "\n=\n"),
                ("printf g''o; mapfile -n 1 a\r", "go", "# mapfile\r", "# mapfile"),
                ("bash --norc\r", "bash-", "PS1='n''ested '\r", "nested ", "# nested\r", "\nnested ", "exit\r", "exit"),
                ("(read -e -p 'e''dit? ' x)\r", "edit? ", "# subshell\r", "# subshell"),
                ("while read -e -p 'e''dit? ' x; do break; done\r", "edit? ", "# loop\r", "# loop"),
                "# after all",
            ),
            "after all",
        )

    def test_variables_are_reported(self) -> None:
        self.variables("bash", "export marks=$'a \\'b\\nc'", "unset LANG; value=unexported")

    def test_state_is_kept(self) -> None:
        self.compare(
            ["bash"],
            (
                "(exit 3)",
                "# keeps the status",
                "echo $?",
                "(exit 4)",
                "",
                "echo $?",
                "echo last",
                "# keeps the last argument",
                "echo $_",
                "false | true | false",
                "echo ${PIPESTATUS[*]}",
                "[[ ab =~ a(.) ]]",
                "# keeps matches",
                "echo ${BASH_REMATCH[*]}",
                "set -- a b",
                "echo $# $0 $- $LINENO $SHLVL ${#FUNCNAME[@]} ${BASH_SOURCE[*]}",
                "shopt",
                "set -o",
                "trap",
                "alias",
                "declare -p PS1 PS2 IFS HISTCONTROL",
                "printf '%q ' \"$PS1\"",
                ENVIRONMENT,
                "echo a; exit_code() { return 7; }; exit_code",
                "echo $?",
                "exec >out",
                "echo to a file",
                "# nor does this get there",
                "exec >/dev/tty",
                "cat -v out",
                "set -x",
                "echo traced",
                "set +x",
                "set -u",
                "# unset is an error",
                "set +u",
                "set -C",
                "# no clobber",
                "set +C",
                "set -a",
                "# all is exported",
                "set +a",
                ENVIRONMENT,
                "IFS=0123456789abcdef",
                "# other separators",
                "cd /usr",
                "unset IFS",
                "set -f; shopt -s nocasematch extglob nullglob failglob",
                "# other patterns",
                "cd",
                "!echo:0 !!",
                "history",
            ),
            "keeps the status",
            "keeps the last argument",
            "keeps matches",
            "nor does this get there",
            "unset is an error",
            "no clobber",
            "all is exported",
            "other separators",
            "other patterns",
        )


class BashFilesTests(ShellCase):
    """Files and settings of users, with a few lines each."""

    def lines(
        self, rc: str, *more: Step, argv: Sequence[str] = ("bash",), caught: Sequence[str] = (), unended: bool = True
    ) -> None:
        self.files = {".bashrc": f"PS1='{PROMPT}'\n{rc}\n", ".inputrc": "", **self.others}
        steps: Sequence[Step] = (
            *more,
            *(["printf unended"] if unended else []),
            "(exit 3)",
            "# standard",
            "echo $?",
            ("cat <<E\r", "> ", "# document\r", "\n> ", "E\r", "# document"),
            pasted("# two\n# lines"),
            ENVIRONMENT,
            "fc -l -9",
        )
        self.compare(argv, steps, *caught, "standard", "two\nlines")

    others: Mapping[str, str] = {}

    def test_strict_options(self) -> None:
        self.lines("set -u; set -o pipefail; shopt -s failglob")
        self.lines("set -a -C")

    def test_errors_end_the_shell(self) -> None:
        self.files = {".bashrc": f"set -eu\nPS1='{PROMPT}'\n[[ -n '' ]] && false\n"}
        for wrapped in (True, False):
            shell = self.start("bash", wrapped=wrapped)
            self.run_in(shell, ["# caught", "", "if false; then :; fi", "! true"])
            self.assertEqual(shell.instructions, ["caught"] if wrapped else [])
            shell.type("false\r")
            self.assertEqual(shell.ended(), 1)

    def test_prompt_command(self) -> None:
        self.lines("PROMPT_COMMAND='echo p=$?; false'")
        self.lines("PROMPT_COMMAND=('echo p=$?' false 'echo q=$?')")
        self.lines(f"PROMPT_COMMAND='PS1=\"\\w {PROMPT}\"'")
        self.lines("export PROMPT_COMMAND='true'", "unset PROMPT_COMMAND", "# not seen", "# seen", caught=["seen"])
        self.lines("", "PROMPT_COMMAND='echo new'", "# still seen", caught=["still seen"])
        self.lines("", f"PROMPT_COMMAND+=('PS1=\"\\w {PROMPT}\"')", "# still seen", caught=["still seen"])
        self.lines("", "PROMPT_COMMAND=(true)", "# not seen", "# seen", caught=["seen"])

    def test_prompts(self) -> None:
        self.lines(f"PS1='\\[\\e[1m\\]\\u $((1 + 1))\\n\\! \\#{PROMPT}\\[\\e[0m\\]'")
        self.lines(f"export PS1='exported {PROMPT}'; PS0='ps0 $((2 + 3))\\n'", "echo $PS1")
        self.lines(f"PS1='changed {PROMPT}'; shopt -u promptvars")

    def test_an_interrupt_that_ends_their_reading(self) -> None:
        self.files = {".bashrc": f"PS1='{PROMPT}'\nf() {{ kill -INT $$; echo never; }}\nf\nPS1='never'\n"}
        f = "f() { echo ${#FUNCNAME[@]}; # inner\n}\n"
        self.compare(["bash"], ["# one", "echo $?", pasted(f), "f", "# two"], "one", "two")

    def test_debug_trap(self) -> None:
        self.lines("trap 'echo \"[$? $_ $BASH_COMMAND]\"' DEBUG", "clear", "false", "f() { true; }; f")
        self.lines("", "trap 'echo \"$BASH_COMMAND\" # ' DEBUG", "clear", "false", "trap DEBUG", "echo x")
        self.lines(
            "began() { [[ -n $waits ]] || return; waits=; echo began; }; trap began DEBUG; PROMPT_COMMAND='waits=1'",
            "clear",
            "echo x",
            "# no command",
            "",
            "echo y",
            caught=["no command"],
        )
        self.lines("trap 'echo failed' ERR; set -E", "false")

    def test_line_editor(self) -> None:
        self.lines("set -o vi", f"x# in vi mode{ESC}0x", f"free{ESC}I# {ESC}$", caught=["in vi mode", "free"])
        self.lines("bind 'set enable-bracketed-paste off'", "clear", unended=False)
        self.files = {".bashrc": f"PS1='{PROMPT}'\nbind 'set show-mode-in-prompt on'\n"}
        self.compare(("bash",), ("printf unended", "# caught", pasted("# two\n# lines")), "caught", "two\nlines")

    def test_own_keys(self) -> None:
        self.lines(
            'bind \'"\\C-m": "\\C-e\\C-j"\'; bind -x \'"\\C-t": echo key\'; bind \'"\\C-g": "# macro\\C-m"\'',
            ("\x07", "macro"),
            ("\x14", "key", "echo x\r", "x"),
            caught=["macro"],
        )
        self.lines("", "bind '\"\\C-m\": accept-line'", "# bound again", caught=["bound again"])
        more = (f'"\\C-x{key}": accept-line' for key in ("a", ", ", '\\"', "\\C-e", "b", "c"))
        self.lines(
            "; ".join(f"bind '{binding}'" for binding in more),
            ("# one more key\x18a", "key"),
            ('# quote\x18"', "quote"),
            caught=["one more key", "quote"],
        )

    def test_history_settings(self) -> None:
        self.lines("HISTCONTROL=ignoreboth HISTIGNORE='#*'", "# one", "# one", " echo blank", caught=["one", "one"])
        self.lines("set +o history", "# one", caught=["one"])

    def test_other_aliases_and_functions(self) -> None:
        self.lines("alias local=false set=false; printf() { echo mine; }; bind() { echo mine; }")

    def test_login(self) -> None:
        self.others = {".bash_profile": f"PS1='{PROMPT}'\necho profile\n", ".profile": "echo wrong\n"}
        for argv in (("bash", "-l"), ("bash", "--login")):
            self.lines("echo not read", "shopt login_shell", "shopt", "set -o", "echo $HISTFILE $ENV", argv=argv)
        self.others = {".profile": f"PS1='{PROMPT}'\nset -u\n. ~/.bashrc\n"}
        self.lines("echo read", argv=("bash", "-l"))

    def test_no_files(self) -> None:
        self.files = {".bashrc": "echo not read\n"}
        self.compare(("bash", "--norc"), ("echo x", "# caught", "shopt", "set -o"), "caught", PS1=PROMPT, ENV="theirs")

    def test_comments_are_off(self) -> None:
        self.files = {".bashrc": f"PS1='{PROMPT}'\nshopt -u interactive_comments\n"}
        shell = self.start("bash")
        self.run_in(shell, ["# caught", "echo $?", "echo a #b", pasted("# c\n# d"), "shopt interactive_comments"])
        self.assertEqual(shell.instructions, ["caught", "c\nd"])
        self.assertIn("a #b", shell.screen())
        self.assertIn("off", shell.new)
        self.assertNotIn("not found", "\n".join(shell.screen()))

    def test_without_utf_8(self) -> None:
        self.files = {".bashrc": f"PS1='{PROMPT}'\n"}
        self.compare(["bash"], ("echo x", "# caught", "echo y"), "caught", LC_ALL="C")

    def test_an_escaped_comment_is_the_shells(self) -> None:
        self.files = {".bashrc": f"PS1='{PROMPT}'\nunset HISTFILE\n"}
        shell = self.start("bash")
        self.run_in(shell, ["(exit 3)", "\\# it's $(a", "echo $?", "echo x; \\#", "fc -ln -4"])
        self.assertEqual(shell.instructions, [])
        self.assertIn("3", shell.screen())
        self.assertIn("\t # it's $(a", shell.new)

    def test_marks(self) -> None:
        self.files = {".bashrc": f"PS1='{PROMPT}'\n"}
        self.marks("bash")
