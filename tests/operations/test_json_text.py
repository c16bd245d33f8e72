from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.operations.json_text import json_text
from ironcurtain.operations.model import EscalationView, PermissionView
from tests.console.doubles import escalation, permission


class JsonTests(SynchronousTestCase):
    def test_times_are_iso_8601_whatever_carries_them(self) -> None:
        told = json.loads(json_text([escalation(1, {"since": 1.5}), escalation(2, closed_at=1_700_000_001.25)]))
        self.assertEqual(told[0]["raised_at"], "2023-11-14T22:13:19.000Z")
        self.assertEqual((told[0]["expires_at"], told[0]["closed_at"]), ("2023-11-14T22:18:19.000Z", None))
        self.assertEqual(told[0]["arguments"], {"since": 1.5})
        self.assertEqual(told[1]["closed_at"], "2023-11-14T22:13:21.250Z")
        self.assertEqual(json.loads(json_text(permission()))["since"], "2023-11-14T22:12:20.000Z")

    def test_all_else_is_as_it_is(self) -> None:
        for view in (escalation(), permission()):
            told = json.loads(json_text(view))
            self.assertEqual(list(told), list(view.__struct_fields__))
            self.assertFalse([name for name, value in told.items() if isinstance(value, float)])
        for value in ([], [1, 2], {"seconds": 1.5}, "x", None):
            self.assertEqual(json.loads(json_text(value)), value)

    @given(st.text() | st.sampled_from(["\x1b[2J\x7f\x9b\u202e\u200b\U000e0101\U0001f600 ä"]))
    def test_what_a_terminal_would_obey_is_escaped(self, text: str) -> None:
        told = json_text({text: [text]})
        self.assertEqual(json.loads(told), {text: [text]})
        self.assertTrue(told.replace("\n", "").isprintable(), told)

    def test_nothing_that_is_listed_has_another_number_with_a_fraction(self) -> None:
        """Whoever adds a time has to say so in the module."""
        for kind, times in ((EscalationView, {"raised_at", "expires_at", "closed_at"}), (PermissionView, {"since"})):
            fields = {name for name, type_ in kind.__annotations__.items() if type_ == "float"}
            self.assertEqual(fields, times)
