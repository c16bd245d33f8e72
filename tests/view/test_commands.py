"""The commands of both input lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.text.columns import cells, unstyled
from ironcurtain.view.commands import CONSOLE, CONVERSATION, Command, Wrong, help_lines, parse


class ParseTests(SynchronousTestCase):
    """Lines that a person types."""

    def test_each_command_of_the_console(self) -> None:
        expected = {
            "/approve 7": Command("approve", 7),
            " /deny  7 ": Command("deny", 7),
            "/approve 7 keep": Command("approve", 7, "keep"),
            "/answer 7": Command("answer", 7),
            "/permissions": Command("permissions"),
            "/revoke 7": Command("revoke", 7),
            "/approve all": Command("approve", option="all"),
            "/deny ALL": Command("deny", option="all"),
            "/Sessions": Command("sessions"),
            "/filter two words": Command("filter", text="two words"),
            "/filter": Command("filter"),
            "/start": Command("start"),
            "/start don't stop  here": Command("start", text="don't stop  here"),
            "/message go on": Command("message", text="go on"),
        }
        self.assertEqual({line: parse(line, CONSOLE) for line in expected}, expected)

    def test_each_command_of_a_conversation(self) -> None:
        expected = {
            "/approve": Command("approve"),
            "/deny 12": Command("deny", 12),
            "/deny build-3/12": Command("deny", parse("/stop build-3/12", CONSOLE).number),  # type: ignore[union-attr]
            "/approve 12 keep": Command("approve", 12, "keep"),
            "/show": Command("show"),
            "/show 12": Command("show", 12),
            "/deny all": Command("deny", option="all"),
            "/answer 3 name=ada lang='a b'": Command("answer", 3, text="name=ada lang='a b'"),
            "/answer name=ada": Command("answer", text="name=ada"),
            "/undo": Command("undo"),
            "/undo 12": Command("undo", 12),
            "/Undo YES": Command("undo", option="yes"),
            "/model opus": Command("model", text="opus"),
            "/QUIT ": Command("quit"),
        }
        self.assertEqual({line: parse(line, CONVERSATION) for line in expected}, expected)

    def test_what_is_wrong_says_what_to_type(self) -> None:
        for rest in ("", " x", " 1 2", " -1", " ²", f" {'9' * 16}", " all keep", " 1 keeps", " keep"):
            why = parse(f"/approve{rest}", CONSOLE)
            self.assertEqual(why, Wrong("type /approve N or /approve all or /approve N keep"), rest)
        for line in ("/revoke", "/revoke x", "/revoke 1 2", "/message", "/deny 1 keep", "/quit now", "/"):
            self.assertIsInstance(parse(line, CONSOLE), Wrong, line)
        for line in ("/show x", "/approve all", "/approve keep", "/deny all 1", "/approve ٣", "/undo 1 yes", "/stop 1"):
            self.assertIsInstance(parse(line, CONVERSATION), Wrong, line)
        self.assertEqual(parse("/quit now", CONSOLE), Wrong("/quit takes no argument"))
        self.assertEqual(parse("/aprove 1", CONSOLE), Wrong("there is no command /aprove: see /help"))

    @given(st.text() | st.builds(lambda text: f"/approve {text}", st.text()))
    def test_no_line_is_too_much(self, line: str) -> None:
        command = parse(line, CONSOLE)
        if isinstance(command, Command) and command.word == "approve" and command.number is not None:
            self.assertIn(str(command.number), line.replace("0", "") + line)

    def test_each_form_in_the_help_is_a_command(self) -> None:
        for usages in (CONSOLE, CONVERSATION):
            for usage in usages:
                line = usage.form.replace("N]", "3]").replace(" N", " 3").replace("[", "").replace("]", "")
                self.assertIsInstance(parse(line, usages), Command, line)

    def test_help_fits_and_names_every_command(self) -> None:
        for usages in (CONSOLE, CONVERSATION):
            lines = [unstyled(line) for line in help_lines(usages, 79)]
            shown = "\n".join(lines)
            for usage in usages:
                form = usage.form if usage.help else f"/{usage.word}"
                self.assertTrue(form in shown or form == "/help", form)
            self.assertLess(max(map(cells, lines)), 80)

    def test_help_of_a_conversation_fits_a_small_screen(self) -> None:
        self.assertLessEqual(len(help_lines(CONVERSATION, 79)), 19)  # of 24, with a line below, status and input
