from __future__ import annotations

from collections.abc import Mapping

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
)
from tests.shell_integration.shells import PROMPT, pasted

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

    def test_lines_that_wrap(self) -> None:
        self.compare(["fish"], WRAPPED, *CAUGHT_WRAPPED)

    def test_programs_with_the_screen(self) -> None:
        self.programs("fish")

    def test_editing(self) -> None:
        self.compare(["fish"], EDITED, *CAUGHT_EDITED)

    def test_continued_lines(self) -> None:
        self.compare(
            ["fish"],
            (
                ("for x in 1\r", "for", "# loop\r", "loop", "echo =$x; end\r", "=1"),
                ("echo 'a\r", "a", "# quoted\r", "quoted", "c'\r", "c"),
                ("begin\r", "begin", "# block\r", "block\n", CONTROL_C, ""),
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

    def test_variables_are_reported(self) -> None:
        self.variables("fish", "set -gx marks a' \\''b\\nc", "set -e LANG; set -g value unexported")

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
