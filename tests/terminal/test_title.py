from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.terminal.title import NO_TITLE, Title


class TitleTests(SynchronousTestCase):
    def test_words_are_shown_once_until_they_change(self) -> None:
        written: list[str] = []
        title = Title("xterm-256color", written.append)
        title.begin()
        for words in (": 1 waiting", ": 1 waiting", ""):
            title.show(words)
        title.end()
        shown = ["\x1b]2;ironcurtain: 1 waiting\a", "\x1b]2;ironcurtain\a"]
        self.assertEqual(written, ["\x1b[22;0t", *shown, "\x1b[23;0t"])

    def test_terminal_that_would_show_it_as_text_gets_nothing(self) -> None:
        written: list[str] = []
        for term in NO_TITLE:
            title = Title(term, written.append)
            title.begin()
            title.show(": 1 waiting")
            title.end()
        self.assertEqual(written, [])
