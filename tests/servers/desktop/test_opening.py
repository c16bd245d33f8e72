"""Entries of menus, from which applications are started."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.servers.desktop.model import DesktopError
from ironcurtain.servers.desktop.opening import PLACES, Entry, find, read_entry

EDITOR = "[Desktop Entry]\nType=Application\nName=Editor\nExec=editor --new %U\n[Desktop Action x]\nExec=rm -rf /\n"


class EntryTests(SynchronousTestCase):
    def test_the_words_of_the_first_group_start_it(self) -> None:
        self.assertEqual(read_entry(EDITOR), Entry(("editor", "--new"), False))
        self.assertEqual(read_entry(EDITOR + "[Desktop Entry]\nTerminal=true\n"), Entry(("editor", "--new"), True))

    def test_what_is_no_application_is_none(self) -> None:
        for text in ("", "Exec=x", EDITOR.replace("Application", "Link"), EDITOR.replace("%U", '"'), EDITOR[:30]):
            self.assertIsNone(read_entry(text), text)

    def test_the_entry_with_the_fewest_words_is_taken(self) -> None:
        with TemporaryDirectory() as top:
            for name, words in (("a", "editor --preferences"), ("b", "/usr/bin/editor %f"), ("c", "other editor")):
                Path(top, f"{name}.desktop").write_text(EDITOR.replace("editor --new %U", words))
            self.assertEqual(find("editor", [top]).words, ("/usr/bin/editor",))
            for app in ("a", "nano", "", "../x", "editor --preferences", "sh -c x"):
                with self.assertRaises(DesktopError):
                    find(app, [top])

    def test_only_root_can_add_entries(self) -> None:
        self.assertTrue(all(place.startswith("/usr/") for place in PLACES))
