from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from difflib import unified_diff
from pathlib import Path
from types import MappingProxyType

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.shell.marks import CommandBegan, CommandEnded, DirectoryChanged, PromptEnded
from tests.shell.shells import PROMPT, InteractiveShell, pasted

UP, HOME, LEFT, ESC = "\x1b[A", "\x01", "\x1b[D", "\x1b"
CONTROL_C, CONTROL_D, CONTROL_R, CONTROL_U = "\x03", "\x04", "\x12", "\x15"

Step = str | tuple[str, ...]
"""A line to type and to enter at a prompt; or keys, and what to wait for after them, in turn."""

ENVIRONMENT = r"""env | grep -v '^_=\|^SHLVL=' | LC_ALL=C sort"""


class ShellCase(SynchronousTestCase):
    maxDiff = None
    """One shell with marks and one without, in a home directory each that has the same files."""

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
        self.addCleanup(lambda: os.system(f"rm -rf {home} 2>/dev/null"))
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
                    shell.waits()
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
        seen, expected = (
            [line.replace(os.fspath(shell.home), "~") for line in shell.screen()] for shell in (wrapped, plain)
        )
        self.assertEqual("\n".join(unified_diff(expected, seen, "plain", "wrapped", n=1, lineterm="")), "")

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


class BashTests(ShellCase):
    files: Mapping[str, str] = {".bashrc": f"PS1='{PROMPT}'\nunset HISTFILE\n"}

    def test_lines(self) -> None:
        self.compare(["bash"], EVERYWHERE[:-1], *CAUGHT_EVERYWHERE)

    def test_programs(self) -> None:
        self.compare(["bash"], PROGRAMS)

    def test_typed_ahead(self) -> None:
        self.typed_ahead("bash")

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


class ZshTests(ShellCase):
    files: Mapping[str, str] = {".zshrc": f"PS1='{PROMPT}'\nsetopt interactive_comments\n"}

    def test_lines(self) -> None:
        self.compare(["zsh"], EVERYWHERE[:-1], *CAUGHT_EVERYWHERE)

    def test_programs(self) -> None:
        self.compare(["zsh"], PROGRAMS)

    def test_typed_ahead(self) -> None:
        self.typed_ahead("zsh")

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


FISH = f"set -g fish_greeting\nfunction fish_prompt; echo -n '{PROMPT}'; end\n"
FISH_CAUGHT = tuple(text for text in CAUGHT_EVERYWHERE if "\\" not in text)


class FishTests(ShellCase):
    files: Mapping[str, str] = {".config/fish/config.fish": FISH}

    def test_lines(self) -> None:
        self.compare(["fish"], [step for step in EVERYWHERE[:-1] if "\\" not in step], *FISH_CAUGHT)

    def test_programs(self) -> None:
        self.compare(["fish"], PROGRAMS)

    def test_typed_ahead(self) -> None:
        self.typed_ahead("fish")

    def test_editing(self) -> None:
        self.compare(["fish"], EDITED, *CAUGHT_EDITED)

    def test_continued_lines(self) -> None:
        self.compare(
            ["fish"],
            (
                ("for x in 1\r", "for", "# loop\r", "loop", "echo =$x; end\r", "=1"),
                ("echo 'a\r", "a", "# quoted\r", "quoted", "c'\r", "c"),
                ("begin\r", "begin", "# block\r", "block", CONTROL_C, ""),
                "# after a continued line",
                pasted("begin\n# comment\nend"),
            ),
            "after a continued line",
        )

    def test_what_reads_in_the_shell(self) -> None:
        self.compare(
            ["fish"],
            (
                ("read x\r", "read> ", "# read\r", "# read"),
                "echo $x",
                ("read -P 'e''dit? ' x\r", "edit? ", "# edited\r", "# edited"),
                ("read -P 'e''dit? ' x\r", "edit? ", "\\# edited\r", "# edited"),
                "echo $x",
                ("bash --norc\r", "bash-", "PS1='n''ested '\r", "nested ", "# nested\r", "\nnested ", "exit\r", "exit"),
                "# after all",
            ),
            "after all",
        )

    def test_state_is_kept(self) -> None:
        self.compare(
            ["fish"],
            (
                "sh -c 'exit 3'",
                "# keeps the status",
                "echo $status",
                "false | true | false",
                "# keeps all of them",
                "echo $pipestatus",
                "echo $SHLVL $history[1]",
                "abbr; alias; trap",
                "set -gx | grep -v '^SHLVL\\|^_ '",
                ENVIRONMENT,
                "function exit_code; return 7; end; exit_code",
                "echo $status",
                "functions -n | string match -v '*ironcurtain*'",
                "history",
            ),
            "keeps the status",
            "keeps all of them",
        )

    def test_vi_keys(self) -> None:
        self.files = {".config/fish/config.fish": f"{FISH}fish_vi_key_bindings\n"}
        self.compare(
            ["fish"],
            (
                ("echo v''i", "echo", ESC, "[N]", "\r", "vi"),
                "# caught",
                ("x# in normal mode", "mode", ESC, "[N]", "0x\r", "\n"),
                "fish_default_key_bindings",
                "# again",
                "bind --preset | grep -c 'execute$'",
            ),
            "caught",
            "in normal mode",
            "again",
        )

    def test_own_keys_and_prompts(self) -> None:
        self.files = {
            ".config/fish/config.fish": f"""
                set -g fish_greeting
                function mine; commandline -a ' '; commandline -f execute; end
                bind \\r mine
                function fish_prompt; echo; echo -n $status '{PROMPT}'; end
                function before --on-event fish_prompt; echo prompt $status; end
                function command_begins --on-event fish_preexec; echo begins $argv; end
                function command_ends --on-event fish_postexec; echo ends $status; end
            """
        }
        self.compare(
            ["fish"],
            (
                "echo x",
                "false",
                "# caught",
                f"function fish_prompt; echo -n 'new {PROMPT}'; end",
                "# with a new prompt",
                "printf unended",
                pasted("# two\n# lines"),
            ),
            "caught",
            "with a new prompt",
            "two\nlines",
        )

    def test_arguments(self) -> None:
        self.compare(["fish", "-l", "-C", "echo theirs"], ("status is-login; echo $status", "# caught"), "caught")

    def test_an_escaped_comment_is_the_shells(self) -> None:
        shell = self.start("fish")
        self.run_in(shell, ["false", "\\# it's (a", "echo =$status", "history"])
        self.assertEqual(shell.instructions, [])
        self.assertIn("=1", shell.screen())
        self.assertIn("# it's (a", shell.screen())

    def test_marks(self) -> None:
        self.marks("fish")
