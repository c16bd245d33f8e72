"""``ironcurtain replay`` as a person uses it, at a real terminal and without one."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.home.session_paths import SessionPaths
from ironcurtain.session.terminal import RecordingFile
from ironcurtain.terminal.recording import Recording
from tests.product import Product
from tests.tmux import Tmux

QUESTIONS = (
    b"\x1b[c\x1b[>c\x1b[6n\x1b[5n\x1b[?6n\x1b[18t\x1b[21t\x1b]10;?\x07\x1b]11;?\x1b\\\x1bP+q544e\x1b\\\x1b[?u\x05"
)
"""Whatever a terminal answers; the answers would be typed into the shell."""

MEDDLING = b"\x1b]52;c;cm0gLXJm\x07\x1b]0;evil\x07\x1b]2;evil\x07\x1b[?1000h\x1b[?2004h\x1b[>1u\x1b[?1h\x1b="


class ReplayCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.product = Product()
        self.product.home.mkdir(mode=0o700)
        self.addCleanup(self.product.close)
        self.file = self.product.project / "some.cast"

    def record(self, path: Path, columns: int = 70, rows: int = 20, times: float = 1.0) -> None:
        recording = Recording(RecordingFile(path), 0.0, columns, rows, timestamp=1e9, title="an agent")
        recording.output(0.1 * times, QUESTIONS + MEDDLING + b"\x1b[?1049h\x1b[2J\x1b[Hfirst\r\n")
        recording.marker(1.0 * times, "filesystem.read_text_file: allow\x1b[31m")
        recording.output(2.0 * times, b"\x1b[1msecond\x1b[0m " + "é".encode() + b"\r\n" + QUESTIONS)
        recording.marker(3.0 * times, "filesystem.write_file: deny")
        recording.output(4.0 * times, b"third\r\n" + QUESTIONS)
        recording.end()


class TerminalTests(ReplayCase):
    """In tmux."""

    def setUp(self) -> None:
        super().setUp()
        self.terminal = Tmux(self.product)
        self.addCleanup(self.terminal.close)
        self.line = " ".join(self.product.command("replay", "./some.cast"))

    def play(self, *options: str) -> None:
        """Play, and afterwards say how it ended, and what was typed into the shell."""
        run = f"{self.line} {' '.join(options)}"
        self.terminal.keys(
            f"stty -g >before; {run}; echo st''atus $?; stty -g >after; read -r typed; echo \"<$typed>\""
        )
        self.terminal.keys("Enter")

    def is_as_before(self, status: int) -> None:
        self.terminal.wait(f"^status {status}$")
        time.sleep(0.3)  # for answers that should not come, there is nothing to wait for
        self.terminal.keys("Enter")
        self.terminal.wait("^<>$")
        before, after = ((self.product.project / name).read_text() for name in ("before", "after"))
        self.assertEqual(before, after)
        modes = "#{alternate_on}#{mouse_any_flag}#{keypad_flag}#{keypad_cursor_flag}#{cursor_flag}"
        self.assertEqual(self.terminal.ask("display-message", "-p", modes).strip(), "00001")
        self.assertNotIn("evil", self.terminal.ask("display-message", "-p", "#{pane_title}"))
        self.assertEqual(self.terminal.run("list-buffers"), "")

    def test_it_plays_and_leaves_everything_as_it_was(self) -> None:
        self.terminal.run("set-option", "-g", "set-clipboard", "on")
        shown = self.product.project / "shown"
        shown.touch()
        self.terminal.run("pipe-pane", f"cat >{shown}")
        self.record(self.file)
        self.play("--speed", "4")
        self.is_as_before(0)
        self.terminal.until(lambda: re.search(b"(?s)first.*second.*third", shown.read_bytes()) is not None)

    def test_keys(self) -> None:
        self.record(self.file, times=1000.0)
        self.play("--at", "1:45")
        self.terminal.wait("^first")
        self.terminal.keys("Space")
        self.terminal.wait("paused at [1-9]:[0-9]+ of 1:06:40")
        self.terminal.keys("]", "]")
        self.terminal.wait("^second é")
        self.terminal.wait("paused at 50:00 ")
        self.terminal.keys("[")
        self.terminal.wait("paused at 16:40 ")
        self.terminal.until(lambda: "second" not in self.terminal.text)
        self.terminal.keys("Right", "Left", "Left")
        self.terminal.wait("paused at 16:35 ")
        self.terminal.keys(".", ".", ".", ".")
        self.terminal.wait("^third")
        self.terminal.keys("q")
        self.is_as_before(0)

    def test_interrupted_by_a_key(self) -> None:
        self.record(self.file, times=1000.0)
        self.play("--at", "1:45")
        self.terminal.wait("^first")
        self.terminal.keys("C-c")
        self.is_as_before(130)

    def test_ended_by_a_signal(self) -> None:
        self.record(self.file, times=1000.0)
        for name, status in (("TERM", 143), ("HUP", 129)):
            self.terminal.keys("clear", "Enter")
            self.play("--at", "1:45")
            self.terminal.wait("^first")
            pid = self.terminal.ask("display-message", "-p", "#{pane_pid}").strip()
            [child] = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            self.terminal.run("run-shell", f"kill -{name} {child}")
            self.is_as_before(status)

    def test_a_terminal_that_is_too_small(self) -> None:
        self.record(self.file, columns=132, rows=43, times=1000.0)
        self.play("--at", "1:45")
        self.terminal.wait("Recorded at 132x43, and this terminal is 80x24")
        self.terminal.keys("x")
        self.terminal.wait("^first")
        self.terminal.keys("q")
        self.is_as_before(0)


class TextTests(ReplayCase):
    """Without a terminal."""

    def test_the_text_at_once(self) -> None:
        self.record(self.file, times=1000.0)
        done = self.product.run("replay", "./some.cast")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "first\nsecond é\nthird\n", ""))
        self.assertEqual(self.product.run("replay", "./some.cast", "--at", "33:20").stdout, "second é\nthird\n")

    def test_a_session_s_own(self) -> None:
        for number, name in ((1, "aaaa"), (2, "bbbb"), (3, "cccc")):
            paths = SessionPaths(self.product.home / "sessions" / name)
            paths.directory.mkdir(parents=True)
            paths.snapshot.write_text(json.dumps({"id": name, "number": number}))
            paths.log.touch()  # each session has one
            if number != 3:
                self.record(paths.recording, columns=70 + number)
        for word, columns in (("1", 71), ("bbb", 72)):
            self.assertEqual(self.product.json("replay", word, "--markers")["columns"], columns)
        done = self.product.run("replay")
        self.assertEqual(done.returncode, 69)
        self.assertIn("the session (last) has no recording", done.stderr)
        self.assertEqual(self.product.run("replay", "9").returncode, 69)

    def test_the_markers(self) -> None:
        self.record(self.file)
        done = self.product.run("replay", "some.cast", "--markers")
        self.assertEqual(
            done.stdout.splitlines(),
            ["TIME  MARKER", r"0:01  filesystem.read_text_file: allow\x1b[31m", "0:03  filesystem.write_file: deny"],
        )
        found = self.product.json("replay", "some.cast", "--markers")
        self.assertEqual((found["seconds"], [m["time"] for m in found["markers"]]), (4.0, [1.0, 3.0]))

    def test_torn_and_damaged(self) -> None:
        self.record(self.file)
        self.file.write_bytes(re.sub(rb"(\[1.0.*\n)", rb"\1damage\n", self.file.read_bytes())[:-5])
        done = self.product.run("replay", "some.cast")
        self.assertEqual((done.returncode, done.stdout), (0, "first\nsecond é\n"))
        self.assertIn("ends in the middle of a line", done.stderr)
        self.assertIn("Damaged in the recording, and ignored: 1 line.", done.stderr)

    def test_what_cannot_be_played(self) -> None:
        self.file.write_text("no recording")
        for words, status, why in (
            (("some.cast",), 64, "is not a recording of a terminal"),
            (("./none.cast",), 1, "No such file"),
            (("some.cast", "--at", "x"), 64, "is not a time"),
            (("some.cast", "--speed", "0"), 64, "--speed"),
            (("some.cast", "--json"), 64, "--json is for --markers"),
        ):
            done = self.product.run("replay", *words)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(why, done.stderr)
