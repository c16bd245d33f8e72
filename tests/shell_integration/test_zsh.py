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


class ZshTests(ShellCase):
    files: Mapping[str, str] = {".zshrc": f"PS1='{PROMPT}'\nsetopt interactive_comments\n"}

    def test_lines(self) -> None:
        self.compare(["zsh"], EVERYWHERE[:-1], *CAUGHT_EVERYWHERE)

    def test_programs(self) -> None:
        self.compare(["zsh"], PROGRAMS)

    def test_typed_ahead(self) -> None:
        self.typed_ahead("zsh")

    def test_lines_that_wrap(self) -> None:
        self.compare(["zsh"], WRAPPED, *CAUGHT_WRAPPED)

    def test_programs_with_the_screen(self) -> None:
        self.programs("zsh")

    def test_editing(self) -> None:
        self.compare(["zsh"], (*EDITED, "fc -l -20"), *CAUGHT_EDITED)

    def test_continued_lines(self) -> None:
        self.compare(
            ["zsh"],
            (
                ("cat <<E\r", "heredoc> ", "# document\r", "\nheredoc> ", "E\r", "# document"),
                ("for x in 1\r", "for> ", "# loop\r", "\nfor> ", "do echo $x; done\r", "1"),
                ("echo 'a\r", "quote> ", "# quoted\r", "\nquote> ", "c'\r", "c"),
                ("echo a \\\r", "> ", "# continued\r", "a"),
                ("case x in\r", "case> ", "# case\r", "\ncase> ", "x) echo y;; esac\r", "y"),
                ("f() {\r", "function> ", "# function\r", "\nfunction> ", "echo f; }\r", "f"),
                ("true &&\r", "cmdand> ", "# list\r", "\ncmdand> ", "echo list\r", "list"),
                ("for x in 1\r", "for> ", CONTROL_C, ""),
                "# after a continued line",
                pasted("cat <<E\n# document\nE"),
                "fc -l -20",
            ),
            "after a continued line",
        )

    def test_what_reads_in_the_shell(self) -> None:
        self.compare(
            ["zsh"],
            (
                ("printf g''o; read x\r", "go", "# read\r", "# read"),
                ("x=; vared -p 'e''dit? ' x\r", "edit? ", "# edited\r", "# edited"),
                "echo $x",
                ("select x in a b; do echo =$x; break; done\r", "?# ", "# select\r", "\n=\n"),
                ("PS1='n''ested ' zsh -f\r", "nested ", "echo # n\r", "nested ", "exit\r", "exit"),
                ("bash --norc\r", "bash-", "PS1='n''ested '\r", "nested ", "# nested\r", "\nnested ", "exit\r", "exit"),
                "# after all",
            ),
            "after all",
        )

    def test_variables_are_reported(self) -> None:
        self.variables("zsh", "export marks=$'a \\'b\\nc'", "unset LANG; value=unexported")

    def test_state_is_kept(self) -> None:
        self.compare(
            ["zsh"],
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
                "# keeps all of them",
                "echo $pipestatus",
                "[[ ab == (#b)a(?) ]]; [[ ab =~ 'a(.)' ]]",
                "# keeps matches",
                "echo $MATCH $match",
                "set -- a b",
                "echo $# $0 $- $SHLVL $ZDOTDIR",
                "setopt",
                "trap",
                "alias",
                "bindkey | grep -v ironcurtain",
                "zmodload | grep -v sched",
                "sched",
                "print -r -- $PS1 $WORDCHARS $histchars",
                ENVIRONMENT,
                "exit_code() { return 7; }; exit_code",
                "echo $?",
                "exec >out",
                "echo to a file",
                "# nor does this get there",
                "exec >/dev/tty",
                "cat -v out",
                "setopt no_unset no_clobber all_export sh_word_split ksh_arrays glob_subst no_multibyte",
                "# other options",
                "unsetopt no_unset no_clobber all_export sh_word_split ksh_arrays glob_subst no_multibyte",
                ENVIRONMENT,
                "IFS=0123456789abcdef",
                "# other separators",
                "cd /usr",
                "unset IFS",
                "cd",
                "fc -l -60",
            ),
            "keeps the status",
            "keeps the last argument",
            "keeps all of them",
            "keeps matches",
            "nor does this get there",
            "other options",
            "other separators",
        )


class ZshFilesTests(ShellCase):
    others: Mapping[str, str] = {}

    def lines(
        self, rc: str, *more: Step, argv: Sequence[str] = ("zsh",), caught: Sequence[str] = (), **environ: str
    ) -> None:
        self.files = {".zshrc": f"PS1='{PROMPT}'\nsetopt interactive_comments\n{rc}\n", **self.others}
        steps: Sequence[Step] = (
            *more,
            "printf unended",
            "(exit 3)",
            "# standard",
            "echo $?",
            ("cat <<E\r", "> ", "# document\r", "\nheredoc> ", "E\r", "# document"),
            pasted("# two\n# lines"),
            ENVIRONMENT,
            "fc -l -9",
        )
        self.compare(argv, steps, *caught, "standard", "two\nlines", **environ)

    def test_strict_options(self) -> None:
        self.lines("setopt no_unset pipe_fail no_match")
        self.lines("setopt all_export no_clobber ksh_arrays sh_word_split")

    def test_comments_stay_on_where_arrays_are_those_of_ksh(self) -> None:
        self.files = {".zshrc": f"setopt ksh_arrays interactive_comments\nPS1='{PROMPT}'\n"}
        self.compare(["zsh"], ("# caught", "echo a # b", "setopt"), "caught")

    def test_traced_commands(self) -> None:
        self.files = {".zshrc": f"setopt interactive_comments\nPS1='{PROMPT}'\n"}
        steps = ("set -x", "echo hi", "# caught", "f() { echo in f; }; f", "false", "set +x", "echo end")
        self.compare(["zsh"], steps, "caught")

    def test_errors_end_the_shell(self) -> None:
        self.files = {
            ".zshrc": f"setopt interactive_comments err_exit no_unset\nPS1='{PROMPT}'\n[[ -n '' ]] && false\n"
        }
        for wrapped in (True, False):
            shell = self.start("zsh", wrapped=wrapped)
            self.run_in(shell, ["# caught", "", "if false; then :; fi", "! true"])
            self.assertEqual(shell.instructions, ["caught"] if wrapped else [])
            shell.type("false\r")
            self.assertEqual(shell.ended(), 1)

    def test_functions_before_prompts_and_commands(self) -> None:
        self.lines("precmd() { echo p=$?; false; }\npreexec() { echo x=$1; }")
        self.lines("f() { echo p=$?; }; precmd_functions=(f); preexec_functions=(f)")
        self.lines("precmd_functions=()", "precmd_functions=(); preexec_functions=()")
        self.lines(f"precmd() {{ PS1='%~ {PROMPT}'; }}")

    def test_prompts(self) -> None:
        self.lines(f"setopt prompt_subst; PS1='%B%n $((1 + 1))'$'\\n''%! {PROMPT}%b'", "clear")
        self.lines(f"export PS1='exported {PROMPT}'", "echo $PS1")
        self.files = {".zshrc": f"PS1='{PROMPT}'\nsetopt no_prompt_percent interactive_comments\n"}
        self.compare(("zsh",), ("echo x", "# caught", "printf unended"), "caught")
        self.lines("setopt no_prompt_sp no_prompt_cr", "echo x")

    def test_traps(self) -> None:
        self.lines("TRAPZERR() { echo failed; }", "false")
        self.lines("TRAPDEBUG() { (( n += 1 )); }")

    def test_line_editor(self) -> None:
        self.lines("bindkey -v", f"x# in vi mode{ESC}0x", f"free{ESC}I# {ESC}$", caught=["in vi mode", "free"])
        self.lines("unset zle_bracketed_paste", "echo x")

    def test_own_widgets(self) -> None:
        self.lines(
            'mine() { BUFFER="$BUFFER"; zle .accept-line; }; zle -N accept-line mine',
            "# kept",
            "echo y",
            caught=["kept"],
        )
        self.lines("mine() { zle accept-line; }; zle -N mine; bindkey '^M' mine", "# kept", caught=["kept"])
        self.lines(
            "",
            "mine() { zle theirs; }; zle -A accept-line theirs; zle -N accept-line mine",
            "echo y",
            "# above ours",
            "mine() { zle .accept-line; }; zle -N accept-line mine",
            "echo y",
            "# instead of ours",
            caught=["above ours", "instead of ours"],
        )
        self.lines(f"zle-line-init() {{ PS1='init {PROMPT}'; zle reset-prompt; }}; zle -N zle-line-init")

    def test_files(self) -> None:
        for argv in (("zsh",), ("zsh", "-l")):
            self.others = {
                ".zshenv": "echo env $ZDOTDIR\n",
                ".zprofile": "echo profile $ZDOTDIR\n",
                ".zlogin": "echo login $ZDOTDIR\n",
            }
            self.lines("echo rc $ZDOTDIR", argv=argv)
            self.others = {
                ".zshenv": "ZDOTDIR=~/other\n",
                "other/.zshrc": f"PS1='other {PROMPT}'; setopt interactivecomments\n",
            }
            self.lines("echo wrong", argv=argv)
        self.others = {"other/.zshenv": "echo env\n", "other/.zshrc": f"PS1='{PROMPT}'; setopt interactivecomments\n"}
        self.lines("echo wrong", ZDOTDIR="other")
        self.files = {".zshenv": "setopt no_rcs\n", ".zshrc": "echo not read\n"}
        self.compare(("zsh",), ("echo x", "setopt"), PS1=PROMPT)

    def test_comments_are_off(self) -> None:
        self.files = {".zshrc": f"PS1='{PROMPT}'\n"}
        shell = self.start("zsh")
        self.run_in(
            shell, ["(exit 3)", "# caught", "echo $? #b", pasted("# c\n# d"), "setopt", "\\# it's $(a", "fc -l"]
        )
        self.assertEqual(shell.instructions, ["caught", "c\nd"])
        screen = shell.screen()
        for line in ("3 #b", "READY> # caught", "    2  # caught", "READY> # it's $(a", "    6  # it's $(a"):
            self.assertIn(line, screen)
        self.assertNotIn("interactivecomments", screen)
        self.assertNotIn("not found", "\n".join(screen))

    def test_an_escaped_comment_is_the_shells(self) -> None:
        self.files = {".zshrc": f"PS1='{PROMPT}'\nsetopt interactive_comments\n"}
        shell = self.start("zsh")
        self.run_in(shell, ["(exit 3)", "\\# it's $(a", "echo $?", "fc -l"])
        self.assertEqual(shell.instructions, [])
        self.assertIn("3", shell.screen())
        self.assertIn("    2  # it's $(a", shell.screen())

    def test_marks(self) -> None:
        self.files = {".zshrc": f"PS1='{PROMPT}'\n"}
        self.marks("zsh")
