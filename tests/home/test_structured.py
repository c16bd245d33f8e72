from __future__ import annotations

from typing import Annotated, Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.structured import check_version, convert, parse_json, parse_toml
from ironcurtain.home.toml_lines import line_of

KEYS = st.sampled_from(("name", "inner", "table", "many", "count", "x", "a.b", "[0]", "...", "a`b", ""))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


class Inner(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    count: Annotated[int, msgspec.Meta(ge=1)] = 1


class Outer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str = ""
    inner: Inner = Inner()
    table: dict[str, Inner] = {}
    many: list[Inner] = []


class MessageTests(SynchronousTestCase):
    def refuse(self, text: str) -> ConfigurationError:
        parsed = parse_toml("f.toml", text)
        error: ConfigurationError = self.assertRaises(ConfigurationError, convert, "f.toml", parsed, Outer, text)
        return error

    def test_file_line_and_field(self) -> None:
        for text, line, field in (
            ("name = 1", 1, "name"),
            ("\n[inner]\n# comment\ncount = 'x'", 4, "inner.count"),
            ("[inner]\n  count=0", 2, "inner.count"),
            ("inner.count = 0", 1, "inner.count"),
            ("name = 'a'\ninner = { count = 0 }", 2, "inner.count"),
            ("[inner]\ncuont = 1", 2, "inner.cuont"),
            ("[iner]\ncount = 1", 1, "iner"),
            ("[table.one]\ncount = 1\n[table.two]\ncount = 0", 4, "table.two.count"),
            ("[table.'a.b']\ncount = 0", 2, "table.a.b.count"),
            ("[[many]]\ncount = 1\n[[many]]\n\ncount = 0", 5, "many[1].count"),
        ):
            error = self.refuse(text)
            self.assertEqual((error.line, error.field), (line, field), text)
            self.assertTrue(str(error).startswith(f"f.toml:{line}: {field}: "), str(error))

    def test_broken_files(self) -> None:
        error = self.assertRaises(ConfigurationError, parse_toml, "f.toml", "a = 1\nb = = 2\n")
        self.assertEqual((error.line, error.exit_status), (2, 78))
        for data in (b"{", b"\xff", b'"\\ud800"', b"[" * 5000, b""):
            self.assertRaises(ConfigurationError, parse_json, "f.json", data)

    def test_a_key_that_stands_twice_in_json_is_named(self) -> None:
        for data in (b'{"then": 1, "then": 1}', b'[{"a": {"then": 1, "b": 2, "the\\u006e": {}}}]'):
            with self.assertRaisesRegex(ConfigurationError, 'f.json: "then" stands twice in one object'):
                parse_json("f.json", data)
        self.assertEqual(parse_json("f.json", b'[{"a": {"a": 1}}, {"a": 2}]'), [{"a": {"a": 1}}, {"a": 2}])

    def test_versions(self) -> None:
        fine: tuple[Any, ...] = ({}, {"version": 1}, {"version": 2}, [])
        for value in fine:
            check_version("f", value, 2)
        for version in (0, 3, -1, "1", 1.0, True, None):
            error = self.assertRaises(ConfigurationError, check_version, "f", {"version": version}, 2)
            self.assertEqual(error.field, "version")

    @given(st.text(max_size=60))
    def test_any_text_is_read_or_refused(self, text: str) -> None:
        for read in (lambda: parse_toml("f", text), lambda: parse_json("f", text.encode(errors="surrogatepass"))):
            try:
                read()
            except ConfigurationError:
                continue

    @given(VALUES)
    def test_any_value_fits_or_is_refused(self, value: Any) -> None:
        try:
            self.assertIsInstance(convert("f", value, Outer), Outer)
        except ConfigurationError as e:
            self.assertTrue(str(e).startswith("f: "))

    @given(st.text("a.=[]'\"\n #{}1", max_size=40), st.lists(KEYS, max_size=3))
    def test_a_line_is_one_of_the_text(self, text: str, path: list[str]) -> None:
        line = line_of(text, path)
        self.assertTrue(line is None or 1 <= line <= len(text.splitlines()))
