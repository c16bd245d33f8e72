"""Commands of the agent stay out of the history of the shell; what its user types is there as ever."""

from __future__ import annotations

from collections.abc import Mapping

from ironcurtain.shell_integration.typed_marks import UNRECORDED
from tests.shell_integration.comparison import ShellCase
from tests.shell_integration.shells import PROMPT, pasted

OF_AGENT = ("echo of-ag''ent", "printf '%s\n' of-''agent")


class HistoryTests(ShellCase):
    files: Mapping[str, str] = {
        ".bashrc": f"PS1='{PROMPT}'\nHISTFILE=~/saved HISTIGNORE='pw?'\n",
        ".zshrc": f"PS1='{PROMPT}'\nHISTFILE=~/saved SAVEHIST=100 HISTSIZE=100\n",
        ".config/fish/config.fish": f"function fish_prompt; printf '{PROMPT}'; end; function fish_greeting; end\n",
    }

    def check(self, name: str) -> None:
        """What a shell keeps of a session."""
        shell = self.start(name)
        shell.enter("echo mi''ne")
        for command in OF_AGENT:
            self.assertIn("\nof-agent\n", shell.enter(UNRECORDED + pasted(command)))
        shell.enter("# an instruction")
        shell.enter("   echo bl''ank")
        shown = shell.enter("history")
        self.assertNotIn("agent", shown)
        self.assertIn("mi''ne", shown)
        shell.type("exit\r")
        shell.ended()
        (saved,) = (
            path for path in (shell.home / "saved", shell.home / ".local/share/fish/fish_history") if path.exists()
        )
        self.assertIn("mi''ne", saved.read_text())
        self.assertNotIn("agent", saved.read_text())

    def test_bash(self) -> None:
        self.check("bash")

    def test_zsh(self) -> None:
        self.check("zsh")

    def test_fish(self) -> None:
        self.check("fish")

    def test_bash_has_its_own_settings_again(self) -> None:
        for setting, value in (("", "<pw?>"), ("unset HISTIGNORE", "<unset>"), ("HISTIGNORE=", "<>")):
            shell = self.start("bash")
            shell.enter(setting)
            shell.enter(UNRECORDED + pasted("true"))
            self.assertIn(value, shell.enter('echo "<${HISTIGNORE-unset}>"'))
            shell.enter(UNRECORDED + pasted(")"))  # is no command
            self.assertIn(value, shell.enter('echo "<${HISTIGNORE-unset}>"'))
