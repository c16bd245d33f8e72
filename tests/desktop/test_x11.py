"""The server on a desktop with X11: what it sees, what it does, and what it refuses at the act."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from typing import Any, ClassVar

from twisted.trial.unittest import SynchronousTestCase

from tests.desktop.desktops import BLACK, SCREEN, SECONDS, Server, XDesktop, colours, wait_for
from tests.desktop.gtk4 import choose_password
from tests.programs import program

TAKER = """
from Xlib import X, display
d = display.Display()
w = d.screen().root.create_window(0, 0, 9, 9, 0, X.CopyFromParent, event_mask=X.KeyPressMask, override_redirect=1)
w.map()
print(w.grab_keyboard(False, X.GrabModeAsync, X.GrabModeAsync, X.CurrentTime), flush=True)
while True:
    d.next_event()
"""
"""A program that takes the keyboard for itself, as launchers do."""


class XCase(SynchronousTestCase):
    """Has one desktop for all of its tests, and a new window for each that wants one."""

    desktop: ClassVar[XDesktop]
    server: ClassVar[Server]

    @classmethod
    def setUpClass(cls) -> None:
        cls.desktop = XDesktop()
        cls.addClassCleanup(cls.desktop.close)
        cls.server = cls.desktop.server()
        cls.addClassCleanup(cls.server.close)

    def dialog(self, *words: str, **options: Any) -> subprocess.Popen[bytes]:
        """:returns: a running dialog."""
        started = self.desktop.run("zenity", *words, stdout=subprocess.PIPE, **options)
        self.addCleanup(self.end, started)
        return started

    def end(self, process: subprocess.Popen[bytes]) -> None:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()

    def place(self, window: dict[str, Any], x: float = 0.5, y: float = 0.5) -> dict[str, Any]:
        """:returns: the arguments that name a point of a window; ``x`` and ``y`` are parts of its size."""
        left, top, width, height = window["bounds"]
        point = [int(left + x * width), int(top + y * height)]
        return {"app": window["app"], "window": window["window"], "bounds": window["bounds"], "point": point}


class SeeingTests(XCase):
    def black_in_picture(self, bounds: list[int]) -> None:
        """Wait until a place is black in the picture of zenity, as a window that covers it is to lie there."""

        def black() -> bool:
            picture, about = self.server.parts("screenshot", app="zenity")
            return colours(picture, about["text"], bounds) == BLACK

        wait_for(black, "the window above it, in black,")

    def test_dialog_is_read_filled_in_and_closed(self) -> None:
        dialog = self.dialog("--entry", "--title", "Name", "--text", "Who?")
        window = self.server.window("zenity")
        self.assertEqual((window["title"], window["pid"]), ("Name", dialog.pid))
        field = self.server.element("zenity", "text")
        after = self.server.call("set_value", **self.server.on(field, "zenity"), value="Ada Grüße")
        self.assertEqual(after["value"], "Ada Grüße")
        button = self.server.element("zenity", "push button", "OK")
        self.server.call("press", **self.server.on(button, "zenity"))
        self.assertEqual(dialog.communicate(timeout=SECONDS)[0].decode(), "Ada Grüße\n")

    def test_titles_are_escaped(self) -> None:
        self.dialog("--info", "--title", "a\x1b[31mb\u202ec", "--text", "x")
        self.assertEqual(self.server.window("zenity")["title"], "a\\x1b[31mb\\u202ec")
        self.assertEqual(self.server.element("zenity", "dialog", "a\\x1b[31mb\\u202ec")["depth"], 1)

    def test_list_of_windows_that_a_program_wrote_is_cut_and_no_window_is_in_it_twice(self) -> None:
        from Xlib import Xatom, display

        self.dialog("--info", "--text", "x")
        number = int(self.server.window("zenity")["window"], 16)
        screen = display.Display(self.desktop.environ["DISPLAY"])
        self.addCleanup(screen.close)
        known, others = screen.intern_atom("_NET_CLIENT_LIST_STACKING"), [0x7000000 + each for each in range(600)]
        for written, seen in (([number, *others], 0), ([*others, number, number], 1)):
            screen.screen().root.change_property(known, Xatom.WINDOW, 32, written)
            screen.sync()
            self.assertEqual(len(self.server.call("windows", app="zenity")), seen)

    def test_password_is_in_no_tree_and_no_picture(self) -> None:
        self.dialog("--password", "--title", "Key")
        window, field = self.server.window("zenity"), self.server.element("zenity", "password text")
        self.server.call("set_value", **self.server.on(field, "zenity"), value="tiger")
        for app in ("zenity", "screen"):
            picture, about = self.server.parts("screenshot", app=app)
            self.assertEqual((picture["type"], picture["mimeType"]), ("image", "image/png"))
            self.assertEqual(colours(picture, about["text"], field["bounds"]), BLACK)
        self.assertNotIn("tiger", str(self.server.call("tree", app="zenity")))
        self.assertEqual(self.server.call("windows", app="zenity")[0]["window"], window["window"])

    def test_password_is_chosen_in_an_application_of_gtk_4(self) -> None:
        choose_password(self, self.desktop, self.server)

    def test_picture_has_at_most_1024_pixels_and_says_its_scale(self) -> None:
        self.dialog("--info", "--text", "x")
        self.server.window("zenity")
        about = self.server.call("screenshot", app="screen")
        self.assertEqual((about["size"], about["scale"]), ([1024, 640], 1024 / SCREEN[0]))
        part = self.server.call("screenshot", app="screen", region=[10, 20, 30, 40])
        self.assertEqual((part["origin"], part["size"], part["scale"]), ([10, 20], [30, 40], 1))

    def test_marks_number_what_can_be_pressed(self) -> None:
        self.dialog("--question", "--text", "Go?")
        self.server.element("zenity", "push button", "Yes")
        marks = self.server.call("screenshot", app="zenity", marks=True)["marks"]
        self.assertEqual({each["name"] for each in marks.values()}, {"Yes", "No"})

    def test_what_lies_above_a_window_is_not_in_its_picture(self) -> None:
        below = self.dialog("--info", "--title", "below", "--text", "x", "--width=400", "--height=300")
        window = self.server.window("zenity", "below")
        editor = self.desktop.run("mousepad")
        self.addCleanup(self.end, editor)
        above = self.server.window("mousepad")
        move = {"app": "mousepad", "window": above["window"], "title": above["title"]}
        x, y = window["bounds"][0] + 50, window["bounds"][1] + 60
        self.server.call("window", **move, action="resize", bounds=[x, y, 300, 300])
        self.server.call("window", **move, action="move", bounds=[x, y, 300, 300])
        self.server.call("window", **move, action="activate")
        self.black_in_picture([x + 20, y + 40, 100, 60])
        picture, about = self.server.parts("screenshot", app="zenity")
        self.assertGreater(len(colours(picture, about["text"], window["bounds"])), 1)
        self.assertIsNone(below.poll())

    def test_text_in_a_picture_is_read(self) -> None:
        program("tesseract")
        self.dialog("--info", "--text", "<span size='xx-large'>Calendar of Tuesday</span>")
        self.server.element("zenity", "push button", "OK")
        lines = self.server.call("read_text", app="zenity")["lines"]
        self.assertIn("Calendar of Tuesday", " ".join(line["text"] for line in lines))

    def test_region_that_is_no_rectangle_is_refused(self) -> None:
        for tool in ("screenshot", "read_text"):
            self.assertIn("a rectangle is", self.server.refusal(tool, app="screen", region=[1, 2, 3]))

    def test_application_that_hangs_does_not_stop_the_others(self) -> None:
        hung, fine = self.dialog("--info", "--text", "x"), self.desktop.run("mousepad")
        self.addCleanup(self.end, fine)
        self.server.element("zenity", "push button", "OK")
        hung.send_signal(signal.SIGSTOP)
        self.assertEqual(self.server.element("mousepad", "menu", "File")["more"], 19)
        self.assertIn("does not answer within 2 seconds", self.server.refusal("tree", app="zenity"))
        window = self.server.window("zenity")
        self.assertEqual(window["pid"], hung.pid)
        picture, about = self.server.parts("screenshot", app="screen")
        self.assertEqual(colours(picture, about["text"], window["bounds"]), BLACK, "it may show a password")

    def test_what_covers_an_application_is_not_in_its_picture(self) -> None:
        self.dialog("--info", "--text", "Below")
        below = self.server.window("zenity")
        editor = self.desktop.run("mousepad")
        self.addCleanup(self.end, editor)
        above = self.server.window("mousepad")
        move = {"app": "mousepad", "window": above["window"], "title": above["title"]}
        left, top, width, height = below["bounds"]
        self.server.call("window", **move, action="resize", bounds=[0, 0, width + 200, height + 200])
        self.server.call("window", **move, action="move", bounds=[left - 99, top - 99, 0, 0])
        self.server.call("window", **move, action="activate")
        self.black_in_picture(below["bounds"])

    def test_clipboard_is_written_and_read(self) -> None:
        program("xclip")
        self.server.call("clipboard_write", text="copied ü\nline")
        self.assertEqual(self.server.call("clipboard_read"), {"text": "copied ü\nline"})

    def test_password_on_the_clipboard_is_not_read(self) -> None:
        kind = ["-selection", "clipboard", "-t", "x-kde-passwordManagerHint", "-i"]
        copied = self.desktop.run("xclip", *kind, stdin=subprocess.PIPE)
        assert copied.stdin is not None
        copied.stdin.write(b"secret")
        copied.stdin.close()
        copied.wait(SECONDS)
        self.assertIn("a password is on the clipboard", self.server.refusal("clipboard_read"))


class OperatingTests(XCase):
    def test_keys_and_clicks_reach_the_window_of_the_call(self) -> None:
        first = self.dialog("--entry", "--title", "first")
        self.server.window("zenity", "first")
        second = self.dialog("--entry", "--title", "second")
        self.server.window("zenity", "second")
        for title, text in (("first", "One, two; three!"), ("second", "four")):
            window = self.server.window("zenity", title)
            self.server.call("type", app="zenity", window=window["window"], text=text)
            self.server.call("key", app="zenity", window=window["window"], keys="Enter")
        self.assertEqual(first.communicate(timeout=SECONDS)[0], b"One, two; three!\n")
        self.assertEqual(second.communicate(timeout=SECONDS)[0], b"four\n")

    def test_click_presses_what_is_at_the_point(self) -> None:
        dialog = self.dialog("--question", "--text", "Go?")
        x, y, width, height = self.server.element("zenity", "push button", "Yes")["bounds"]
        at = {**self.place(self.server.window("zenity")), "point": [x + width // 2, y + height // 2]}
        self.server.call("click", **at)
        self.assertEqual(dialog.wait(SECONDS), 0)

    def test_row_of_a_list_is_selected(self) -> None:
        dialog = self.dialog("--list", "--column=Name", *(f"row{number}" for number in range(9)))
        row = self.server.element("zenity", "table cell", "row3")
        self.assertIn("selected", self.server.call("select", **self.server.on(row, "zenity"))["states"])
        self.server.call("press", **self.server.on(self.server.element("zenity", "push button", "OK"), "zenity"))
        self.assertEqual(dialog.communicate(timeout=SECONDS)[0], b"row3\n")

    def test_list_is_scrolled(self) -> None:
        self.dialog("--list", "--column=Name", *(f"row{number}" for number in range(99)))
        row = self.server.element("zenity", "table cell", "row1")
        x, y, width, height = row["bounds"]
        at = {**self.place(self.server.window("zenity")), "point": [x + width // 2, y + height // 2]}
        self.server.call("scroll", **at, down=1)
        below = {**self.server.on(row, "zenity"), "name": "row0"}
        wait_for(lambda: self.server.element("zenity", "table cell", "row1").get("bounds") != row["bounds"], "the list")
        self.assertIn("the element is now", self.server.refusal("press", **below))

    def test_text_is_selected_by_dragging_over_it(self) -> None:
        dialog = self.dialog("--entry", "--entry-text=one two three")
        window, (x, y, width, height) = self.server.window("zenity"), self.server.element("zenity", "text")["bounds"]
        middle, away = y + height // 2, self.place(self.server.window("zenity"))["bounds"][1] - 5
        at = {**self.place(window), "point": [x + width - 3, middle]}
        self.assertIn("not in the window", self.server.refusal("drag", **at, to=[x + 3, away]))
        self.server.call("drag", **at, to=[x + 3, middle])
        self.server.call("type", app="zenity", window=window["window"], text="four\n")
        self.assertEqual(dialog.communicate(timeout=SECONDS)[0], b"four\n")

    def test_text_without_keys_is_not_typed_at_all(self) -> None:
        self.dialog("--entry")
        window = self.server.window("zenity")
        why = self.server.refusal("type", app="zenity", window=window["window"], text="Gr漢ße")
        self.assertIn("no key of this keyboard gives 漢", why)
        self.assertNotIn("value", self.server.element("zenity", "text"))

    def test_window_that_moved_is_not_clicked(self) -> None:
        dialog = self.dialog("--question", "--text", "Go?")
        window = self.server.window("zenity")
        move = {"app": "zenity", "window": window["window"], "title": window["title"]}
        self.server.call("window", **move, action="move", bounds=[100, 100, 0, 0])
        wait_for(lambda: self.server.window("zenity")["bounds"] != window["bounds"], "the window")
        self.assertIn("the window is now at", self.server.refusal("click", **self.place(window)))
        self.assertIn(
            "the window is now called", self.server.refusal("window", **{**move, "title": "x"}, action="close")
        )
        self.assertIsNone(dialog.poll())

    def test_what_lies_above_the_window_is_not_clicked(self) -> None:
        self.dialog("--question", "--text", "Go?", "--width=300")
        window = self.server.window("zenity")
        editor = self.desktop.run("mousepad")
        self.addCleanup(self.end, editor)
        above = self.server.window("mousepad")
        move = {"app": "mousepad", "window": above["window"], "title": above["title"]}
        self.server.call("window", **move, action="move", bounds=[*window["bounds"][:2], 0, 0])
        self.server.call("window", **move, action="activate")
        wait_for(lambda: self.server.window("mousepad")["focused"], "the focus")
        why = self.server.refusal("click", **self.place(window))
        self.assertIn("belongs to mousepad, not to zenity; nothing was done", why)

    def test_another_program_that_takes_the_keyboard_gets_nothing(self) -> None:
        self.dialog("--entry")
        window = self.server.window("zenity")
        taker = self.desktop.run(sys.executable, "-c", TAKER, stdout=subprocess.PIPE)
        self.addCleanup(self.end, taker)
        assert taker.stdout is not None
        self.assertEqual(taker.stdout.readline(), b"0\n")
        named = {"app": "zenity", "window": window["window"]}
        for tool, given in (("type", {"text": "x"}), ("key", {"keys": "Enter"})):
            self.assertIn("has taken the keyboard", self.server.refusal(tool, **named, **given), tool)
        self.assertIn("has taken the keyboard", self.server.refusal("click", **self.place(window)))
        taker.kill()
        taker.wait()

        def typed() -> bool:
            asked = self.server.send("tools/call", name="type", arguments={**named, "text": "y"})
            return not self.server.answer(asked)["isError"]

        wait_for(typed, "the keyboard")
        self.assertEqual(self.server.element("zenity", "text")["value"], "y")

    def test_another_window_of_the_application_is_not_clicked(self) -> None:
        editor = self.desktop.run("mousepad")
        self.addCleanup(self.end, editor)
        window = self.server.window("mousepad")
        self.server.call("key", app="mousepad", window=window["window"], keys="Ctrl+o")
        dialog = self.server.window("mousepad", "Open")
        left, top, width, height = dialog["bounds"]
        point = [left + width // 2, top + height // 2]
        at = {**self.place(self.server.window("mousepad", "Untitled")), "point": point}
        self.assertIn("another window of mousepad is at", self.server.refusal("click", **at))
        self.server.call("click", **{**self.place(dialog), "point": point})

    def test_element_that_changed_or_is_of_another_application_is_not_pressed(self) -> None:
        dialog = self.dialog("--question", "--text", "Go?")
        yes = self.server.on(self.server.element("zenity", "push button", "Yes"), "zenity")
        for change, why in (
            ({"name": "No"}, "the element is now the push button 'Yes'"),
            ({"role": "label"}, "the element is now the push button 'Yes'"),
            ({"app": "mousepad"}, "the element belongs to zenity, not to mousepad"),
            ({"ref": "77.1/3"}, "the application of this element has ended"),
            ({"ref": "/etc/passwd"}, "ref must be one that tree returned"),
        ):
            self.assertIn(why, self.server.refusal("press", **{**yes, **change}))
        self.assertIsNone(dialog.poll())
        self.end(dialog)
        self.assertIn("has ended", self.server.refusal("press", **yes))

    def test_keys_of_the_desktop_are_refused(self) -> None:
        self.dialog("--entry")
        window = self.server.window("zenity")
        for keys in ("Super+e", "Alt+F4", "Ctrl+Alt+t", "Alt+Tab", "XF86Sleep"):
            self.assertIn("desktop", self.server.refusal("key", app="zenity", window=window["window"], keys=keys))

    def test_input_to_what_runs_commands_needs_the_word_terminal(self) -> None:
        one, other = pty.openpty()
        self.addCleanup(os.close, one)
        self.addCleanup(os.close, other)
        dialog = self.dialog("--entry", pass_fds=[one])
        window, field = self.server.window("zenity"), self.server.element("zenity", "text")
        entry = {"app": "zenity", "window": window["window"]}
        for tool, given in (
            ("type", {**entry, "text": "x"}),
            ("key", {**entry, "keys": "x"}),
            ("click", self.place(window)),
            ("set_value", {**self.server.on(field, "zenity"), "value": "x"}),
        ):
            self.assertIn("say terminal = true", self.server.refusal(tool, **given), tool)
        self.server.call("type", **entry, text="seen\n", terminal=True)
        self.assertEqual(dialog.communicate(timeout=SECONDS)[0], b"seen\n")

    def test_windows_with_ironcurtain_in_them_get_no_input(self) -> None:
        own = subprocess.Popen(
            ["ironcurtain", "--question", "--text", "Approve?"], executable=program("zenity"), env=self.desktop.environ,
            start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.addCleanup(self.end, own)
        window, yes = self.server.window("zenity"), self.server.element("zenity", "push button", "Yes")
        for tool, given in (
            ("type", {"app": "zenity", "window": window["window"], "text": "\n", "terminal": True}),
            ("click", {**self.place(window), "terminal": True}),
            ("press", {**self.server.on(yes, "zenity"), "terminal": True}),
            ("window", {"app": "zenity", "window": window["window"], "title": window["title"], "action": "close"}),
        ):
            self.assertIn("gets no input from agents", self.server.refusal(tool, **given), tool)
        self.assertIsNone(own.poll())


class NoticeTests(XCase):
    def test_notification_tells_the_choice_and_gets_no_click(self) -> None:
        program("dunst")
        self.assertEqual(self.server.call("status")["notify"], "available")
        asked = self.server.send(
            "tools/call", name="notify", arguments={"title": "<b>Go</b>", "actions": ["Yes"], "seconds": 60}
        )

        def dunstctl(*words: str) -> bytes:
            line = [program("dunstctl"), *words]
            return subprocess.run(line, env=self.desktop.environ, capture_output=True, check=False).stdout

        wait_for(lambda: dunstctl("count", "displayed").strip() == b"1", "the notification")
        dunstctl("action", "0")
        result = self.server.answer(asked)
        self.assertEqual(result["content"][0]["text"], '{"chosen": "Yes"}')
        self.server.call("notify", title="IronCurtain: approve?", body="<a href='x'>y</a>")

        def in_history() -> bytes:
            dunstctl("close")
            history = dunstctl("history")
            return history if b"approve?" in history else b""

        history = wait_for(in_history, "the notification")
        self.assertIn(b"Agent: IronCurtain: approve?", history)
        self.assertNotIn(b"<a href", history)
