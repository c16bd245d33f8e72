"""Names of applications, terminals, and windows with IronCurtain in them, by tables of processes."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.servers.desktop.processes import (
    Process,
    app_name,
    holds_terminal,
    may_run_commands,
    own_windows,
    read_processes,
)


def process(pid: int, parent: int = 1, program: str = "/usr/bin/x", words: str = "", terminal: int = 0) -> Process:
    name = os.path.basename(program) or "hidden"
    return Process(pid, parent, name, program, tuple(words.split()), terminal)


def table(*processes: Process) -> dict[int, Process]:
    return {each.pid: each for each in processes}


class NameTests(SynchronousTestCase):
    def test_a_program_is_called_by_its_file(self) -> None:
        self.assertEqual(app_name(process(5, program="/usr/bin/mousepad", words="firefox --title x")), "mousepad")

    def test_a_script_is_called_by_its_own_name(self) -> None:
        for program, words, name in (
            ("/usr/bin/python3.11", "python3 -I /usr/bin/terminator", "terminator"),
            ("/usr/bin/python3.11", "python3 -m guake.main", "guake.main"),
            ("/usr/bin/python3.11", "python3 -c exec(x)", "python3.11"),
            ("/usr/bin/python3.11", "python3", "python3.11"),
            ("/usr/lib/electron28/electron", "electron /usr/lib/notes/app.asar", "app"),
            ("/usr/bin/java", "java -Xmx1g -jar /opt/plan.jar", "plan.jar"),
        ):
            self.assertEqual(app_name(process(5, program=program, words=words)), name)

    def test_a_program_that_hides_has_the_name_that_it_gives_itself(self) -> None:
        self.assertEqual(app_name(process(5, program="")), "hidden")


class TerminalTests(SynchronousTestCase):
    def check(self, asked: Process, *others: Process, holds: bool = False) -> bool:
        return may_run_commands(asked, table(asked, *others), holds)

    def test_an_editor_runs_no_commands(self) -> None:
        editor = process(5, program="/usr/bin/mousepad", terminal=34816)
        self.assertFalse(self.check(editor, process(6, 5, terminal=34816), process(7, 5), process(8, 1, terminal=9)))

    def test_launchers_editors_and_other_machines_run_commands(self) -> None:
        for name in ("rofi", "dmenu_run", "emacs-gtk", "gvim", "ssh", "xtigervncviewer", "Xwayland", "gnome-shell"):
            self.assertTrue(self.check(process(5, program=f"/usr/bin/{name}")), name)
        for name in ("gedit", "firefox-esr", "soffice.bin", "evince", "zenity"):
            self.assertFalse(self.check(process(5, program=f"/usr/bin/{name}")), name)

    def test_terminals_are_known_by_name_by_children_by_what_they_hold_and_by_hiding(self) -> None:
        self.assertTrue(self.check(process(5, program="/usr/bin/xterm")))
        self.assertTrue(self.check(process(5, program="/usr/bin/python3", words="python3 /usr/bin/Terminator")))
        self.assertTrue(self.check(process(5), process(6, 5, terminal=34817)))
        self.assertTrue(self.check(process(5), holds=True))
        self.assertTrue(self.check(process(5, program="")))

    def test_a_shell_may_be_started_by_a_helper(self) -> None:
        helper = process(6, 5, program="/usr/bin/helper")
        self.assertTrue(self.check(process(5), helper, process(7, 6, terminal=34817)))

    def test_a_terminal_that_was_started_from_elsewhere_is_an_application_of_its_own(self) -> None:
        terminal = process(6, 5, program="/usr/bin/foot")
        self.assertFalse(self.check(process(5), terminal, process(7, 6, terminal=34817)))

    @given(st.lists(st.tuples(st.integers(2, 9), st.integers(0, 9)), max_size=12))
    def test_any_table_is_looked_through(self, pairs: list[tuple[int, int]]) -> None:
        self.assertFalse(self.check(process(5), *(process(pid, parent) for pid, parent in pairs if pid != 5)))

    def test_a_process_with_a_pseudoterminal_holds_one(self) -> None:
        self.assertFalse(holds_terminal(os.getpid()))
        one, other = pty.openpty()
        self.addCleanup(os.close, one)
        self.addCleanup(os.close, other)
        self.assertTrue(holds_terminal(os.getpid()))
        self.assertTrue(holds_terminal(2**22 + 1), "what cannot be seen is taken for one")


class OwnWindowTests(SynchronousTestCase):
    def test_all_above_us_and_above_any_of_ours_are_ours(self) -> None:
        found = own_windows(
            table(
                process(2, words="sway"),
                process(3, 2, words="foot"),
                process(4, 3, words="bash"),
                process(5, 4, words="/usr/bin/python3 /usr/bin/ironcurtain shell"),
                process(6, 5, words="python -I -m ironcurtain.servers.desktop"),
                process(10, 2, words="xterm"),
                process(11, 10, words="python3 -m ironcurtain console"),
                process(20, 2, words="mousepad"),
                process(21, 20, words="helper"),
            ),
            6,
        )
        self.assertEqual(found, {2, 3, 4, 5, 6, 10, 11})

    def test_a_console_in_a_multiplexer_closes_all_terminals_that_show_one(self) -> None:
        processes = table(
            process(3, 1, words="xterm"),
            process(4, 3, program="/usr/bin/tmux", words="tmux attach"),
            process(5, 1, program="/usr/bin/tmux", words="tmux new"),
            process(6, 5, words="bash"),
            process(7, 6, words="ironcurtain console"),
            process(8, 1, words="mousepad"),
            process(9, 1, words="python"),
        )
        self.assertEqual(own_windows(processes, 9), {3, 4, 5, 6, 7, 9})
        del processes[7]
        self.assertEqual(own_windows(processes, 9), {9})

    @given(st.lists(st.tuples(st.integers(2, 9), st.integers(0, 9)), max_size=12))
    def test_any_table_ends(self, pairs: list[tuple[int, int]]) -> None:
        processes = table(*(process(pid, parent, words="ironcurtain x") for pid, parent in pairs))
        self.assertLessEqual(set(processes), own_windows(processes, 1) | {1})

    def test_the_processes_of_this_machine_are_read(self) -> None:
        child = subprocess.Popen([sys.executable, "-I", "-c", "input()"], stdin=subprocess.PIPE)
        self.addCleanup(child.wait)
        self.addCleanup(child.stdin.close)  # type: ignore[union-attr]
        found = read_processes()[child.pid]
        self.assertEqual((found.parent, found.words[1]), (os.getpid(), "-I"))
        self.assertIn(os.getpid(), own_windows(read_processes(), child.pid))
