"""Combinations of keys, as written in calls."""

from __future__ import annotations

import contextlib

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.servers.desktop.keys import Chord, parse
from ironcurtain.servers.desktop.model import DesktopError


class KeyTests(SynchronousTestCase):
    def test_names_and_signs_become_symbols(self) -> None:
        for text, expected in (
            ("Ctrl+s", "Ctrl+s"),
            ("shift + CONTROL + Home", "Ctrl+Shift+Home"),
            ("Enter", "Return"),
            ("Ctrl++", "Ctrl+plus"),
            ("+", "plus"),
            ("/", "slash"),
            (" ", "space"),
            ("Alt+f", "Alt+f"),
            ("F10", "F10"),
            ("A", "A"),
        ):
            self.assertEqual(str(parse(text)), expected, text)

    def test_keys_of_the_desktop_are_refused(self) -> None:
        desktop = (
            "Alt+F4 Alt+Tab Alt+Shift+Tab Ctrl+Alt+Delete Ctrl+Alt+t Alt+space Alt+Escape Ctrl+Escape Ctrl+Alt+Left"
        )
        for text in desktop.split():
            with self.assertRaisesRegex(DesktopError, "belongs to the desktop"):
                parse(text)
        for text in ("", "Super+e", "Meta+x", "Hyper+x", "Print", "XF86PowerOff", "Ctrl+", "ab", "Ctrl+ü"):
            with self.assertRaisesRegex(DesktopError, "no combination"):
                parse(text)

    @given(st.text(st.sampled_from("CtrlAltShiftSuper+ abF4Tab\n"), max_size=20))
    def test_anything_is_a_combination_or_refused(self, text: str) -> None:
        with contextlib.suppress(DesktopError):
            found = parse(text)
            self.assertEqual(parse(str(found)), Chord(found.modifiers, found.symbol))
