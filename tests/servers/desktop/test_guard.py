"""Who gets input."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.servers.desktop.guard import Guard
from ironcurtain.servers.desktop.model import DesktopError
from ironcurtain.servers.desktop.processes import Process


def process(pid: int, parent: int, program: str, *words: str) -> Process:
    return Process(pid, parent, words[0], program, words, 0)


PROCESSES = {
    each.pid: each
    for each in (
        process(2, 1, "/usr/bin/foot", "foot"),
        process(3, 2, "/usr/bin/python3", "python3", "-m", "ironcurtain", "console"),
        process(4, 1, "/usr/bin/mousepad", "mousepad"),
        process(5, 1, "/usr/bin/dunst", "dunst"),
        process(6, 1, "/usr/bin/xterm", "xterm"),
        process(7, 1, "/usr/bin/code", "code"),
        process(8, 1, "", "mousepad"),
        process(9, 1, "/usr/bin/a\x1b[2Jb", "x"),
    )
}


class GuardTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.guard = Guard(5, PROCESSES, 99, lambda pid: pid == 7)

    def refusal(self, pid: int, app: str, terminal: bool = False) -> str:
        with self.assertRaises(DesktopError) as caught:
            self.guard.check_input(pid, app, terminal, "the window")
        return str(caught.exception)

    def test_the_application_of_the_call_gets_input(self) -> None:
        self.guard.check_input(4, "mousepad", False, "the window")

    def test_another_application_gets_none(self) -> None:
        for app in ("foot", "Mousepad", "mousepad ", "", "screen"):
            self.assertIn("belongs to mousepad", self.refusal(4, app), app)

    def test_a_process_that_is_not_known_gets_none(self) -> None:
        for pid in (0, 77):
            self.assertIn("no process that can be seen", self.refusal(pid, ""))

    def test_ironcurtain_and_notifications_get_none_whatever_the_call_says(self) -> None:
        self.assertIn("IronCurtain runs or asks", self.refusal(2, "foot", True))
        self.assertIn("shows notifications", self.refusal(5, "dunst", True))

    def test_what_runs_commands_needs_the_word(self) -> None:
        for pid, app in ((6, "xterm"), (7, "code")):
            self.assertIn("say terminal = true", self.refusal(pid, app))
            self.guard.check_input(pid, app, True, "the window")

    def test_a_program_that_hides_counts_as_one_that_runs_commands(self) -> None:
        self.assertIn("say terminal = true", self.refusal(8, self.guard.app(8)))

    def test_helpers_belong_to_the_application_that_started_them(self) -> None:
        self.assertTrue(self.guard.belongs(3, "foot") and self.guard.belongs(2, "foot"))
        self.assertFalse(self.guard.belongs(4, "foot") or self.guard.belongs(77, "foot"))
        self.assertTrue(self.guard.is_above(2, 3))
        self.assertFalse(self.guard.is_above(3, 2))

    def test_names_of_programs_are_escaped(self) -> None:
        self.assertEqual(self.guard.app(9), "a\\x1b[2Jb")
