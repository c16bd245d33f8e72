"""The server under sway, which root must not run: as nobody then."""

from __future__ import annotations

import glob
import subprocess
from select import select
from typing import ClassVar

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.servers.desktop.hands import PIECE
from tests.desktop.desktops import BLACK, SECONDS, Desktop, Server, colours, wait_for
from tests.desktop.gtk4 import choose_password
from tests.programs import program

_SETTINGS = "output * resolution 1000x700\nxwayland disable\ndefault_border none\n"


class HeadlessDesktop(Desktop):
    """One with sway, shown nowhere, without a mouse or a keyboard."""

    def show(self) -> None:
        """Start a display."""
        self.start_sway("headless")

    def start_sway(self, *backends: str) -> None:
        """Start sway, with backends of wlroots."""
        for name in ("sway", "grim", "wl-copy", "wtype"):
            program(name)
        with open(f"{self.top}/config", "w") as settings:
            settings.write(_SETTINGS)
        of_sway = {"WLR_BACKENDS": ",".join(backends), "WLR_RENDERER": "pixman", "WLR_LIBINPUT_NO_DEVICES": "1"}
        self.compositor = self.run("sway", "--config", f"{self.top}/config", env={**self.environ, **of_sway})
        (socket,) = wait_for(lambda: glob.glob(f"{self.top}/sway-ipc.*.sock"), "sway")
        wait_for(lambda: glob.glob(f"{self.top}/wayland-?"), "the display")
        self.environ |= {"SWAYSOCK": socket, "WAYLAND_DISPLAY": "wayland-1"}


class SwayDesktop(HeadlessDesktop):
    """One with sway in a window of X11, from which it has a mouse and a keyboard."""

    def show(self) -> None:
        """Start both displays."""
        self.environ["DISPLAY"] = self.start_x()
        self.start_sway("x11")
        del self.environ["DISPLAY"]

    def sway(self, order: str) -> None:
        """Give sway an order."""
        self.run("swaymsg", order).wait(SECONDS)


class SwayTests(SynchronousTestCase):
    desktop: ClassVar[SwayDesktop]
    server: ClassVar[Server]

    @classmethod
    def setUpClass(cls) -> None:
        cls.desktop = SwayDesktop(as_nobody=True)
        cls.addClassCleanup(cls.desktop.close)
        cls.server = cls.desktop.server()
        cls.addClassCleanup(cls.server.close)

    def dialog(self, *words: str) -> subprocess.Popen[bytes]:
        started = self.desktop.run("zenity", *words, stdout=subprocess.PIPE)
        self.addCleanup(self.end, started)
        return started

    def end(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()

    def test_dialog_is_seen_and_answered(self) -> None:
        dialog = self.dialog("--entry", "--title", "Name")
        window = self.server.window("zenity", "Name")
        self.assertEqual(window["focused"], True)
        field = self.server.element("zenity", "text")
        self.server.call("set_value", **self.server.on(field, "zenity"), value="Ada")
        about = self.server.call("screenshot", app="zenity")
        self.assertEqual((about["origin"], about["size"]), (window["bounds"][:2], window["bounds"][2:]))
        button = self.server.element("zenity", "push button", "OK")
        self.server.call("press", **self.server.on(button, "zenity"))
        self.assertEqual(dialog.communicate(timeout=SECONDS)[0], b"Ada\n")

    def test_window_is_clicked_where_the_call_says_and_closed(self) -> None:
        dialog = self.dialog("--info", "--title", "Click", "--text", "x")
        window = self.server.window("zenity", "Click")
        x, y, width, height = window["bounds"]
        at = {"app": "zenity", "window": window["window"], "point": [x + width // 2, y + height // 2]}
        self.assertIn("the window is now at", self.server.refusal("click", **at, bounds=[x + 1, y, width, height]))
        self.server.call("click", **at, bounds=window["bounds"])
        self.assertIsNone(dialog.poll())
        self.server.call("window", app="zenity", window=window["window"], title="Click", action="close")
        self.assertEqual(dialog.wait(SECONDS), 1)

    def test_password_in_a_window_that_is_not_in_the_corner_is_in_no_picture(self) -> None:
        self.dialog("--info", "--title", "Corner", "--text", "x")
        self.dialog("--password", "--title", "Key")
        corner, window = self.server.window("zenity", "Corner"), self.server.window("zenity", "Key")
        move = {"app": "zenity", "action": "move", "bounds": [0, 0, 0, 0]}
        self.server.call("window", **move, window=corner["window"], title="Corner")
        self.desktop.sway(f"[con_id={window['window']}] floating enable, move absolute position 300 200")
        field = self.server.element("zenity", "password text")
        self.assertGreater(min(field["bounds"][:2]), 199)
        self.server.call("set_value", **self.server.on(field, "zenity"), value="tiger")
        picture, about = self.server.parts("screenshot", app="screen")
        self.assertEqual(colours(picture, about["text"], field["bounds"]), BLACK)
        self.assertGreater(len(colours(picture, about["text"], window["bounds"])), 1)

    def test_window_that_does_not_fit_in_its_place_is_hidden_with_its_password(self) -> None:
        self.dialog("--password", "--title", "Key")
        window = self.server.window("zenity", "Key")
        other = self.desktop.run("mousepad", stdout=subprocess.PIPE)
        self.addCleanup(self.end, other)
        self.server.window("mousepad")
        self.desktop.sway(f"[con_id={window['window']}] resize set width 110 px")
        wait_for(lambda: self.server.window("zenity", "Key")["bounds"][2] < 120, "a small window")
        wait_for(lambda: "bounds_in_window" in self.server.element("zenity", "password text"), "no place")
        window = self.server.window("zenity", "Key")
        picture, about = self.server.parts("screenshot", app="screen")
        self.assertEqual(colours(picture, about["text"], window["bounds"]), BLACK)
        self.assertIn("nobody tells where", self.server.refusal("screenshot", app="zenity", marks=True))

    def test_element_is_clicked_where_tree_says_that_it_is(self) -> None:
        dialog = self.dialog("--question", "--title", "Go", "--text", "x")
        window = self.server.window("zenity", "Go")
        self.desktop.sway(f"[con_id={window['window']}] floating enable, move absolute position 300 200")
        window = self.server.window("zenity", "Go")
        yes = self.server.element("zenity", "push button", "Yes")
        self.assertEqual(self.server.element("zenity", "push button", "Yes", yes["ref"])["bounds"], yes["bounds"])
        x, y, width, height = yes["bounds"]
        at = {"app": "zenity", "window": window["window"], "bounds": window["bounds"]}
        self.server.call("click", **at, point=[x + width // 2, y + height // 2])
        self.assertEqual(dialog.wait(SECONDS), 0)

    def test_text_and_keys_reach_the_window_of_the_call(self) -> None:
        dialog, editor = self.dialog("--entry", "--title", "Line"), self.desktop.run("mousepad", stdout=subprocess.PIPE)
        self.addCleanup(self.end, editor)
        line, text = self.server.window("zenity", "Line"), self.server.window("mousepad")
        for words in ("-Grüße, 漢!", "One\ttwo\n", f"{'abcdefghij' * 5}\n"):
            self.server.call("type", app="mousepad", window=text["window"], text=words)
        written = "-Grüße, 漢!One\ttwo\n" + "abcdefghij" * 5 + "\n"
        wait_for(lambda: self.server.element("mousepad", "text").get("value") == written, "the text")
        for keys in ("Ctrl+a", "Shift+x", "Y", "-"):
            self.server.call("key", app="mousepad", window=text["window"], keys=keys)
        wait_for(lambda: self.server.element("mousepad", "text").get("value") == "XY-", "the keys")
        self.server.call("type", app="zenity", window=line["window"], text="Müller\n")
        self.assertEqual(dialog.communicate(timeout=SECONDS)[0].decode(), "Müller\n")

    def test_window_that_takes_the_focus_gets_no_more_than_a_piece_of_text(self) -> None:
        self.dialog("--entry", "--title", "Mine")
        window = self.server.window("zenity", "Mine")
        named = {"app": "zenity", "window": window["window"]}
        asked = self.server.send("tools/call", name="type", arguments={**named, "text": "x" * 10_000})
        takers, output = [self.dialog("--entry", "--title", "Taker")], self.server.process.stdout
        assert output is not None
        while not select([output], [], [], 10)[0]:  # it had the focus before anything was typed
            takers.append(self.dialog("--entry", "--title", "Taker"))
        result = self.server.answer(asked)
        self.assertTrue(result["isError"], result)
        self.assertRegex(
            result["content"][0]["text"], r"does not have the focus, but (zenity|another window) .* of 10000 characters"
        )
        left = list(takers)
        while left:
            self.server.call("key", app="zenity", window=self.server.window("zenity", "Taker")["window"], keys="Enter")
            for ended in wait_for(lambda: [each for each in left if each.poll() is not None], "the end of a window"):
                left.remove(ended)
        self.assertLessEqual(sum(len(taker.communicate(timeout=SECONDS)[0]) for taker in takers), PIECE + len(takers))

    def test_password_is_chosen_in_an_application_of_gtk_4(self) -> None:
        choose_password(self, self.desktop, self.server)

    def test_status_names_what_is_missing(self) -> None:
        status = self.server.call("status")
        for sense in ("windows", "screenshot", "tree, press, set_value, select", "clipboard_read, clipboard_write"):
            self.assertEqual(status[sense], "available")
        self.assertEqual(status["key, type"], "available")

    def test_clipboard_is_written_and_read(self) -> None:
        self.server.call("clipboard_write", text="copied ü")
        self.assertEqual(self.server.call("clipboard_read"), {"text": "copied ü"})


class HeadlessTests(SynchronousTestCase):
    def test_without_devices_text_is_typed_and_clicks_are_refused(self) -> None:
        desktop = HeadlessDesktop(as_nobody=True)
        self.addCleanup(desktop.close)
        server = desktop.server()
        self.addCleanup(server.close)
        dialog = desktop.run("zenity", "--entry", stdout=subprocess.PIPE)
        window = server.window("zenity")
        x, y, width, height = window["bounds"]
        at = {"app": "zenity", "window": window["window"]}
        point = {"bounds": window["bounds"], "point": [x + width // 2, y + height // 2]}
        self.assertIn("has no mouse", server.refusal("click", **at, **point))
        self.assertIn("has no mouse", server.call("status")["click, drag, scroll"])
        server.call("type", **at, text="Grüße, all of it\n")
        self.assertEqual(dialog.communicate(timeout=SECONDS)[0].decode(), "Grüße, all of it\n")
        desktop.compositor.kill()
        desktop.compositor.wait()
        self.assertEqual(server.refusal("windows"), "sway has ended, or does not answer")
