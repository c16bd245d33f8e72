"""``ironcurtain loop`` whose program has no terminal, at a person's terminal: the installed product."""

from __future__ import annotations

import re

from tests.loop.test_terminal import TerminalCase

SCRIPT = r"""
printf '\033]52;c;c3RvbGVu\007\033[?1049h\033[?1000h\033[?25l\033]2;theirs\007\033[c\033[6n'
printf '\n[loop] iteration 9: promise after 1.0 s: the promise was made\n\033[2m[loop] all is well\033[0m\nno end'
printf '\303' >&2
"""
"""Text for the clipboard, modes, a title, questions to the terminal, messages like the loop's, half a character."""


class PlainOutputTests(TerminalCase):
    """The program's output cannot act on the terminal, nor pass for a message of the loop."""

    def setUp(self) -> None:
        super().setUp()
        (self.product.project / "evil.sh").write_text(SCRIPT)
        self.terminal.run("set-option", "-g", "set-clipboard", "on")

    def test_it_is_text_at_a_terminal(self) -> None:
        self.terminal.type("printf '\\033]2;mine\\007'")
        self.loop("-n 1", command="sh evil.sh")
        text = self.ended(3)
        self.assertIn("\\x1b]52;c;c3RvbGVu\\x07\\x1b[?1049h\\x1b[?1000h\\x1b[?25l", text)
        self.assertIn("\\xc3", text)
        self.assertEqual(self.terminal.run("list-buffers"), "")
        self.assertEqual(self.terminal.ask("display-message", "-p", "#{pane_title}").strip(), "mine")

    def test_messages_of_the_loop_look_otherwise(self) -> None:
        self.loop("-n 1", command="sh evil.sh")
        self.ended(3)
        drawn = self.terminal.ask("capture-pane", "-p", "-e")  # has a style once, where it begins
        dim: list[str] = []
        plain: list[str] = []
        for found in re.finditer(r"\[loop\] .*", drawn):
            styles = re.findall("\x1b\\[([0-9;]*)m", drawn[: found.start()])
            (dim if styles and styles[-1] == "2" else plain).append(found[0])
        self.assertEqual(len(dim), 4, drawn)
        self.assertEqual([line.split(":")[0] for line in plain], ["[loop] iteration 9", "[loop] all is well\\x1b[0m"])

    def test_files_get_the_bytes(self) -> None:
        self.loop("-n 1", command="sh evil.sh >output 2>errors")
        self.ended(3)
        written = (self.product.project / "output").read_bytes()
        self.assertTrue(written.startswith(b"\x1b]52;c;c3RvbGVu\x07\x1b[?1049h"))
        self.assertTrue(written.endswith(b"\x1b[2m[loop] all is well\x1b[0m\nno end"))
        self.assertIn(b"\xc3", (self.product.project / "errors").read_bytes())
