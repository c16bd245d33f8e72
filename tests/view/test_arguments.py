"""The arguments of a call, as a person sees them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.text.columns import cells, unstyled
from ironcurtain.view.arguments import SHOWN, SHOWN_IN_ALL, brief, brief_json, full_lines, key_lines
from tests.text.visible import invisible

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=6,
)


class ShownTests(SynchronousTestCase):
    """What is shown is safe, and it is all there."""

    @given(st.dictionaries(st.text(max_size=60), JSON, max_size=6), st.integers(10, 100))
    def test_nothing_can_deceive_and_everything_fits(self, arguments: dict[str, Any], width: int) -> None:
        for line in [*key_lines(arguments, width), *full_lines(arguments, width)]:
            self.assertEqual(invisible(unstyled(line)), [])
            self.assertNotIn("\n", unstyled(line))
        for line in full_lines({"a": arguments}, width):
            self.assertLessEqual(cells(unstyled(line)), width + 60)
        self.assertEqual(invisible(brief(arguments)), [])

    def test_control_characters_of_all_kinds_are_escaped(self) -> None:
        (line,) = key_lines({"path": "a\x1b[2J\x9b1m\u202eb\u200bc"}, 80)
        self.assertEqual(unstyled(line), "path = a\\x1b[2J\\x9b1m\\u202eb\\u200bc")

    def test_a_value_that_fits_is_not_repeated(self) -> None:
        self.assertEqual(full_lines({"path": "short"}, 80), [])

    @given(st.text(max_size=20), st.integers(0, 3), st.integers(30, 100))
    def test_lines_of_a_text_are_lines_whatever_its_name_is_and_wherever_it_stands(
        self, name: str, levels: int, width: int
    ) -> None:
        value: Any = "one\ntwo"
        for level in range(levels):
            value = [value] if level % 2 else {"a": value}
        shown = [unstyled(line).split()[-1:] for line in full_lines({name: value}, width)]
        self.assertIn(["two"], shown)

    def test_a_long_value_has_its_length_and_comes_in_full(self) -> None:
        value = "".join(f"{number:05d} " for number in range(200))
        (line,) = key_lines({"text": value}, 76)
        self.assertTrue(unstyled(line).endswith("… (1,200 characters, below)"), unstyled(line))
        self.assertLessEqual(cells(unstyled(line)), 76)
        shown = "".join(unstyled(line) for line in full_lines({"text": value}, 76)[1:])
        self.assertEqual(shown.split(), value.split())

    def test_what_differs_does_not_hide_in_a_crowd(self) -> None:
        value = "x = 1\n" * 400 + "evil()\n" + "x = 1\n" * 1200 + "y\ny\ny"
        lines = [unstyled(line) for line in full_lines({"content": value}, 76)[1:]]
        folded = ["  x = 1", "… that line 400 times", "  evil()", "  x = 1", "… that line 1,200 times"]
        self.assertEqual(lines, [*folded, "  y", "  y", "  y"])

    def test_members_of_objects_and_lists_stand_below_each_other(self) -> None:
        inner = {"title": "a\nb", "labels": ["x", "y"], "text": "long " * 8 + '"labels": []'}
        lines = full_lines({"body": {"query": "{\n  me\n}\n", "variables": {"input": inner}, "n\ne": 1}}, 40)
        shown = [
            *('  "query":', "  | {", "  |   me", "  | }", "  | "),
            *('  "variables":', '    "input":', '      "title":', "      | a", "      | b"),
            *('      "labels": ["x","y"]', '      "text": "long long long long', "            long long long long"),
            *('            \\"labels\\": []"', '  "n\\ne": 1'),
        ]
        self.assertEqual([unstyled(line) for line in lines[1:]], shown)

    def test_an_empty_text_is_told_from_no_text(self) -> None:
        self.assertEqual([unstyled(line) for line in key_lines({"content": ""}, 76)], ["content = an empty text"])

    def test_a_megabyte_is_cut_and_counted(self) -> None:
        lines = full_lines({"text": "x" * 1_000_000}, 76)
        self.assertEqual(sum(unstyled(line).count("x") for line in lines[1:-1]), SHOWN)
        self.assertIn(f"{1_000_000 - SHOWN:,} more characters", unstyled(lines[-1]))

    def test_a_value_cannot_look_like_another_argument(self) -> None:
        lines = [unstyled(line) for line in full_lines({"text": "a\npath = /etc/passwd\n" + "b" * 200}, 40)]
        self.assertIn("  path = /etc/passwd", lines)
        self.assertTrue(all(line.startswith("  ") for line in lines[1:]))

    def test_the_fifth_argument_is_told_of_and_comes_in_full(self) -> None:
        arguments = {f"name{number}": number for number in range(6)}
        self.assertEqual(unstyled(key_lines(arguments, 80)[-1]), "and 2 more arguments, below")
        self.assertIn("name5: 1 characters", [unstyled(line) for line in full_lines(arguments, 80)])


class ChangeTests(SynchronousTestCase):
    """Edits, as what they change."""

    def edit(self, old: str, new: str) -> list[str]:
        edits = [{"oldText": old, "newText": new}]
        return [unstyled(line) for line in full_lines({"path": "x", "edits": edits}, 40)][2:]

    def test_an_edit_is_a_difference(self) -> None:
        old, new = "def mend():\n    return 1\nend of it\n", "def mend():\n    return 2\nend of it\n"
        self.assertEqual(
            self.edit(old, new), ["  def mend():", "-     return 1", "+     return 2", "  end of it", "  "]
        )

    def test_both_sides_as_arguments_are_a_difference(self) -> None:
        sides = {"old_string": "def mend():\n    return 1\n", "new_string": "def mend():\n    return 2\n"}
        for before in ({}, {f"name{number}": number for number in range(4)}):  # the fifth is below, too
            arguments = {**before, "file_path": "a.py", **sides, "replace_all": False}
            lines = [unstyled(line) for line in full_lines(arguments, 40)]
            begin = lines.index("old_string, new_string: 50 characters")
            change = ["  def mend():", "-     return 1", "+     return 2", "  "]
            self.assertEqual(lines[begin + 2 : begin + 6], change)
            self.assertEqual([line for line in lines if "def mend" in line], ["  def mend():"])
        short = {"old_str": "a", "new_str": "b"}
        self.assertEqual(([unstyled(line) for line in key_lines(short, 40)]), ["old_str = a", "new_str = b"])
        self.assertEqual(full_lines(short, 40), [])
        self.assertIn("new_str: 41 characters", unstyled(full_lines({"old_str": 1, "new_str": "b" * 41}, 40)[0]))

    def test_long_edits_are_shown_one_after_the_other(self) -> None:
        old, new = ("".join(f"{side}{number}\n" for number in range(300)) for side in "ab")
        lines = self.edit(old, new)
        self.assertEqual((lines[0], lines[-2], len(lines)), ("- a0", "+ b299", 602))

    def test_what_all_changes_cost_is_bounded(self) -> None:
        """Each of these takes some 0.1 s to compare."""
        old, new = "b\na\n" * 100, "x\na\n" * 100
        edits = [{"oldText": old, "newText": new}] * 10_000
        lines = [unstyled(line) for line in full_lines({"edits": edits}, 40)]
        self.assertLess(len(lines), SHOWN_IN_ALL)
        self.assertNotIn("  a", lines)  # what is equal, where two texts are compared
        self.assertRegex(lines[-1], "^… 9,[0-9]{3} more changes: 'ironcurtain escalations show' has all")
        small = [{"oldText": "b\na", "newText": "x\na"}] * 20
        lines = [unstyled(line) for line in full_lines({"edits": small + edits[:1] + small}, 40)]
        self.assertEqual(lines.count("  a"), 40)

    def test_what_has_more_to_it_is_shown_as_it_is(self) -> None:
        edits = [{"oldText": "a" * 40, "newText": "b", "also": 1}]
        lines = [unstyled(line) for line in full_lines({"edits": edits}, 40)]
        self.assertIn('"also":1', "".join(lines).replace(" ", ""))

    def test_what_a_file_will_hold_is_marked_as_new(self) -> None:
        lines = full_lines({"path": "x", "content": "one\ntwo\n" * 20}, 40)
        self.assertEqual(lines[1][1].style, "new")


class BriefJsonTests(SynchronousTestCase):
    """Arguments as events carry them."""

    def test_names_and_values(self) -> None:
        self.assertEqual(brief_json('{"path": "notes.txt", "head": 3}'), "path=notes.txt head=3")

    def test_what_is_no_json_stays(self) -> None:
        self.assertEqual(brief_json('{"path": "notes… (+200 characters)'), '{"path": "notes… (+200 characters)')

    def test_deep_nesting_is_survived(self) -> None:
        self.assertEqual(brief_json("[" * 100_000), "[" * 100_000)

    @given(st.text())
    def test_it_is_escaped(self, text: str) -> None:
        self.assertEqual(invisible(brief_json(text)), [])


class LinesTests(SynchronousTestCase):
    """All arguments together."""

    def test_none_at_all(self) -> None:
        self.assertEqual([unstyled(line) for line in key_lines({}, 76)], ["no arguments"])

    def test_without_a_limit_nothing_is_left_out(self) -> None:
        text, old = "x" * 200_000, "a\n" * 100_000
        lines = full_lines({"text": text, "edits": [{"oldText": old, "newText": "b"}]}, 10**6, None)
        shown = "\n".join(map(unstyled, lines))
        self.assertIn(text, shown)
        self.assertIn("that line 100,000 times", shown)
        self.assertNotIn("more characters", shown)


class ContentTests(SynchronousTestCase):
    def test_written_lines_are_shown_as_lines(self) -> None:
        shown = [unstyled(line) for line in full_lines({"path": "/f", "content": "a\nb\n"}, 60)]
        self.assertEqual(shown[shown.index("  a") + 1], "  b")
