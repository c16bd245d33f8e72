"""Changes of one member: all else stays, comments too."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.json_comments import plain_json
from ironcurtain.home.json_editing import with_member, without_member
from tests.examples import examples

PLACE = ("mcpServers",)
COMMENTED = """\
{
  // a note
  "mcpServers": {
    "a": {"command": "x"}, // first
    /* b, too */ "b": {
      "command": "y"
    }, // last,
  },
  "z": [1, {"q": {}}],
}
"""

VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)
TABLES = st.dictionaries(st.text(max_size=3), VALUES, max_size=3)


def parsed(text: str) -> Any:
    """:returns: the value of a JSON text with comments."""
    return json.loads(plain_json("f", text))


class EditingTests(SynchronousTestCase):
    """A member is added at the end, and removed from anywhere."""

    def test_comments_stay(self) -> None:
        added = with_member("f", COMMENTED, PLACE, "new", {"command": "z", "args": ["}"]})
        for comment in ("// a note", "// first", "/* b, too */", "// last,"):
            self.assertIn(comment, added)
            for name in ("a", "b"):
                self.assertIn(comment, without_member("f", COMMENTED, PLACE, name))
        self.assertIn('    }, // last,\n    "new": {\n      "command": "z",', added)
        self.assertEqual(parsed(added)["mcpServers"]["new"], {"command": "z", "args": ["}"]})
        self.assertEqual(parsed(without_member("f", added, PLACE, "new")), parsed(COMMENTED))

    def test_what_was_added_last_can_be_removed_without_a_trace(self) -> None:
        text = '{\n\t"mcpServers": {\n\t\t"a": {}\n\t}\n}'
        added = with_member("f", text, PLACE, "b", {"x": 1})
        self.assertIn('\n\t\t"b": {\n\t\t\t"x": 1\n\t\t}\n', added)
        self.assertEqual(without_member("f", added, PLACE, "b"), text)

    def test_object_on_one_line_stays_on_it(self) -> None:
        added = with_member("f", '{"mcpServers": {"a": {}}}', PLACE, "b", {"x": 1})
        self.assertEqual(added, '{"mcpServers": {"a": {}, "b": {"x": 1}}}')

    def test_place_that_is_no_object_is_refused(self) -> None:
        for text in ('{"mcpServers": []}', "{}"):
            with self.assertRaises(ConfigurationError):
                with_member("f", text, PLACE, "b", {})

    @settings(max_examples=examples(150), deadline=None, database=None)
    @given(
        TABLES,
        TABLES,
        st.text(max_size=3),
        VALUES.filter(lambda value: value is not None),
        st.sampled_from([None, 1, "\t"]),
    )
    def test_only_the_member_changes(self, table: Any, beside: Any, name: str, value: Any, indent: Any) -> None:
        whole = {**beside, "mcpServers": table}
        for keys in ([*beside, "mcpServers"], ["mcpServers", *beside]):
            text = json.dumps({key: whole[key] for key in keys}, indent=indent)
            for member in table:
                left = {key: each for key, each in table.items() if key != member}
                self.assertEqual(parsed(without_member("f", text, PLACE, member)), {**whole, "mcpServers": left})
            if name not in table:
                added = with_member("f", text, PLACE, name, value)
                self.assertEqual(parsed(added), {**whole, "mcpServers": {**table, name: value}})
                self.assertEqual(parsed(without_member("f", added, PLACE, name)), whole)
