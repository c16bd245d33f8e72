from __future__ import annotations

import time
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.servers.files import edits, globs
from ironcurtain.servers.files.arguments import check
from ironcurtain.servers.files.failures import FileError, shown
from ironcurtain.servers.files.table import DEFINITIONS, SCHEMAS

TEXTS = st.text(alphabet="ab\n", max_size=80)


class EditTests(SynchronousTestCase):
    def test_edits_apply_in_order(self) -> None:
        made = edits.apply("one two", [edits.Edit("one", "three"), edits.Edit("three two", "four")])
        self.assertEqual(made, "four")

    def test_what_occurs_more_than_once_is_refused_with_a_count(self) -> None:
        error = self.assertRaises(FileError, edits.apply, "a\nb\na\na", [edits.Edit("a", "c")])
        self.assertIn("occurs 3 times (first at lines 1, 3, 4)", str(error))

    def test_overlapping_occurrences_count(self) -> None:
        self.assertRaises(FileError, edits.apply, "aaa", [edits.Edit("aa", "b")])

    def test_the_number_of_the_failing_edit_is_named(self) -> None:
        error = self.assertRaises(FileError, edits.apply, "x", [edits.Edit("x", "y"), edits.Edit("z", "")])
        self.assertIn("edit 2: oldText does not occur", str(error))

    def test_other_white_space_is_pointed_out(self) -> None:
        error = self.assertRaises(FileError, edits.apply, "def f():\n\treturn 1\n", [edits.Edit("    return 1", "")])
        self.assertIn("line 2 differs from it only in white space", str(error))

    @given(TEXTS, st.text(alphabet="ab \n", max_size=5))
    def test_whatever_is_missing_is_said(self, text: str, old: str) -> None:
        if old not in text:
            self.assertRaises(FileError, edits.apply, text, [edits.Edit(old, "")])

    def test_crlf_texts_keep_their_line_ends(self) -> None:
        self.assertEqual(edits.apply("a\r\nb\r\nc", [edits.Edit("a\nb", "x\ny\nz")]), "x\r\ny\r\nz\r\nc")

    def test_no_edits_empty_passages_and_floods_are_refused(self) -> None:
        for wrong in ([], [edits.Edit("", "x")], [edits.Edit("a", "a")] * (edits.EDIT_LIMIT + 1)):
            self.assertRaises(FileError, edits.apply, "a", wrong)


class GlobTests(SynchronousTestCase):
    def assertMatches(self, pattern: str, path: str, expected: bool = True) -> None:
        self.assertEqual(globs.matcher(pattern)(path.split("/")), expected, (pattern, path))

    def test_patterns(self) -> None:
        for pattern, path in [
            ("*.py", "a.py"),
            ("*.py", "x/y/a.py"),
            ("src/*.py", "src/a.py"),
            ("src/**/*.py", "src/a.py"),
            ("src/**/*.py", "src/x/y/a.py"),
            ("**/b/**/d", "a/b/b/c/d"),
            ("**", "a/b"),
            ("a/**", "a/b/c"),
            ("[ab]?.txt", "b1.txt"),
            ("**/test", "test"),
            (".*", ".git"),
        ]:
            self.assertMatches(pattern, path)

    def test_patterns_that_do_not_match(self) -> None:
        for pattern, path in [
            ("*.py", "a.pyc"),
            ("src/*.py", "src/x/a.py"),
            ("src/*.py", "lib/src/a.py"),
            ("a/b", "a/b/c"),
            ("a/b/c", "a/b"),
            ("A.py", "a.py"),
            ("?", ""),
        ]:
            self.assertMatches(pattern, path, False)

    @given(
        st.lists(st.sampled_from(["a", "b", "*", "**", "a*"]), min_size=2, max_size=6),
        st.lists(st.sampled_from(["a", "b", "ab"]), min_size=1, max_size=6),
    )
    def test_it_agrees_with_trying_everything(self, pattern: list[str], names: list[str]) -> None:
        def tries(left: list[str], rest: list[str]) -> bool:
            if not left:
                return not rest
            if left[0] == "**":
                return any(tries(left[1:], rest[n:]) for n in range(len(rest) + 1))
            return bool(rest) and globs.matcher(left[0])([rest[0]]) and tries(left[1:], rest[1:])

        self.assertEqual(globs.matcher("/".join(pattern))(names), tries(pattern, names))

    def test_patterns_made_to_be_slow_are_not(self) -> None:
        started = time.process_time()
        self.assertMatches("*a" * 400 + "b", "a" * 4000, False)
        self.assertMatches("**/" * 300 + "b", "/".join("a" * 2000), False)
        self.assertLess(time.process_time() - started, 2.0)

    def test_empty_and_endless_patterns_are_refused(self) -> None:
        for wrong in ("", "a" * (globs.PATTERN_LIMIT + 1)):
            self.assertRaises(ValueError, globs.matcher, wrong)


class ArgumentTests(SynchronousTestCase):
    def refused(self, tool: str, **arguments: Any) -> str:
        return str(self.assertRaises(FileError, check, SCHEMAS[tool], arguments))

    def test_defaults_are_filled_in(self) -> None:
        checked = check(SCHEMAS["edit_file"], {"path": "a", "edits": []})
        self.assertEqual(checked, {"path": "a", "edits": [], "dryRun": False})

    def test_what_does_not_fit_is_named(self) -> None:
        self.assertIn("'path' is missing", self.refused("read_file"))
        self.assertIn("unknown argument 'pth'", self.refused("read_file", pth="a", path="b"))
        self.assertIn("'path' must be of type string", self.refused("read_file", path=["a"]))
        self.assertIn("'head' must be of type number", self.refused("read_file", path="a", head=True))
        self.assertIn("'sortBy' must be one of", self.refused("list_directory_with_sizes", path="a", sortBy="x"))
        self.assertIn("'paths' is empty", self.refused("read_multiple_files", paths=[]))
        self.assertIn("'edits[0].newText' is missing", self.refused("edit_file", path="a", edits=[{"oldText": "x"}]))

    def test_every_argument_of_every_schema_can_be_checked(self) -> None:
        samples: dict[str, Any] = {"string": "x", "number": 1, "boolean": True, "array": []}
        for definition in DEFINITIONS:
            properties = definition["inputSchema"]["properties"]
            for name, schema in properties.items():
                self.assertRaises(FileError, check, definition["inputSchema"], {name: object()})
                self.assertIn(schema["type"], samples)


class NameTests(SynchronousTestCase):
    def test_names_that_would_forge_lines_are_escaped(self) -> None:
        self.assertEqual(shown("a\n[FILE] b\x1b"), "a\\x0a[FILE] b\\x1b")
        self.assertEqual(shown("\udcff.txt"), "\\xff.txt")
        self.assertEqual(shown("\u202etxt.exe"), "\\u202etxt.exe")
        self.assertEqual(shown("naïve 文.txt"), "naïve 文.txt")
