"""The server under sway, which root must not run: as nobody then."""

from __future__ import annotations

import glob
import subprocess
from typing import ClassVar

from twisted.trial.unittest import SynchronousTestCase

from tests.desktop.desktops import BLACK, SECONDS, Desktop, Server, colours, wait_for
from tests.programs import program

_SETTINGS = "output HEADLESS-1 resolution 1000x700\nxwayland disable\ndefault_border none\n"


class SwayDesktop(Desktop):
    """One with sway, shown nowhere."""

    def show(self) -> None:
        """Start a display."""
        for name in ("sway", "grim", "wl-copy"):
            program(name)
        with open(f"{self.top}/config", "w") as settings:
            settings.write(_SETTINGS)
        self.environ |= {"WLR_BACKENDS": "headless", "WLR_RENDERER": "pixman", "WLR_LIBINPUT_NO_DEVICES": "1"}
        self.run("sway", "--config", f"{self.top}/config")
        (socket,) = wait_for(lambda: glob.glob(f"{self.top}/sway-ipc.*.sock"), "sway")
        wait_for(lambda: glob.glob(f"{self.top}/wayland-?"), "the display")
        self.environ |= {"SWAYSOCK": socket, "WAYLAND_DISPLAY": "wayland-1"}

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
        self.assertEqual(dialog.communicate(timeout=10)[0], b"Ada\n")

    def test_window_is_clicked_where_the_call_says_and_closed(self) -> None:
        dialog = self.dialog("--info", "--title", "Click", "--text", "x")
        window = self.server.window("zenity", "Click")
        x, y, width, height = window["bounds"]
        at = {"app": "zenity", "window": window["window"], "point": [x + width // 2, y + height // 2]}
        self.assertIn("the window is now at", self.server.refusal("click", **at, bounds=[x + 1, y, width, height]))
        self.server.call("click", **at, bounds=window["bounds"])
        self.assertIsNone(dialog.poll())
        self.server.call("window", app="zenity", window=window["window"], title="Click", action="close")
        self.assertEqual(dialog.wait(10), 1)

    def test_password_in_a_window_that_is_not_in_the_corner_is_in_no_picture(self) -> None:
        self.dialog("--info", "--title", "Corner", "--text", "x")
        self.dialog("--password", "--title", "Key")
        corner, window = self.server.window("zenity", "Corner"), self.server.window("zenity", "Key")
        move = {"app": "zenity", "action": "move", "bounds": [0, 0, 0, 0]}
        self.server.call("window", **move, window=corner["window"], title="Corner")
        self.desktop.sway(f"[con_id={window['window']}] floating enable, move absolute position 300 200")
        window = self.server.window("zenity", "Key")
        self.assertGreater(min(window["bounds"][:2]), 99)
        picture, about = self.server.parts("screenshot", app="screen")
        self.assertEqual(colours(picture, about["text"], window["bounds"]), BLACK)

    def test_status_names_what_is_missing(self) -> None:
        status = self.server.call("status")
        for sense in ("windows", "screenshot", "tree, press, set_value, select", "clipboard_read, clipboard_write"):
            self.assertEqual(status[sense], "available")
        self.assertIn(status["key, type"], ("available", "unsupported: the program wtype is not installed"))

    def test_clipboard_is_written_and_read(self) -> None:
        self.server.call("clipboard_write", text="copied ü")
        self.assertEqual(self.server.call("clipboard_read"), {"text": "copied ü"})
