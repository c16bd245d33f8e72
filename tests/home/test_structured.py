from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.lines import json_places, line_of
from ironcurtain.home.parsing import parse_json, parse_toml
from ironcurtain.home.structured import check_version, convert

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


class Enumerated(msgspec.Struct):
    kind: Literal["a", "b"] | None = None
    kinds: tuple[Literal["a", "b"], ...] = ()
    named: dict[str, Literal["a", "b"]] = {}


def members(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """:returns: the place of everything within a value, in order."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*place, key)
        yield from members(inner, (*place, key))


class Typed(msgspec.Struct):
    text: str | None = None
    whole: Annotated[int, msgspec.Meta(ge=1, le=65535)] = 1
    number: Annotated[float, msgspec.Meta(gt=0, lt=1e9)] | None = None
    truth: bool = False
    many: list[str] = []
    inner: Inner = Inner()
    either: Literal["none"] | Inner = "none"


class MessageTests(SynchronousTestCase):
    def refuse(self, text: str) -> ConfigurationError:
        parsed = parse_toml("f.toml", text)
        error: ConfigurationError = self.assertRaises(ConfigurationError, convert, "f.toml", parsed, Outer, text)
        return error

    def test_what_a_value_must_be_is_said_in_words(self) -> None:
        for value, words in (
            ({"text": 5}, "text: must be text, not a whole number"),
            ({"whole": "x"}, "whole: must be a whole number, not text"),
            ({"whole": 0}, "whole: must be at least 1"),
            ({"whole": 65536}, "whole: must be at most 65535"),
            ({"number": []}, "number: must be a number, not a list"),
            ({"number": 0}, "number: must be more than 0"),
            ({"number": 1e9}, "number: must be less than 1000000000"),
            ({"truth": 1}, "truth: must be true or false, not a whole number"),
            ({"many": "x"}, "many: must be a list, not text"),
            ({"many": [None]}, "many[0]: must be text, not null"),
            ({"inner": 0.5}, "inner: must be a table of named values, not a number"),
            ({"inner": True}, "inner: must be a table of named values, not true or false"),
            ({"either": "x"}, 'either: must be one of "none", a table of named values'),
            ({"either": 1}, "either: must be text or a table of named values, not a whole number"),
        ):
            error = self.assertRaises(ConfigurationError, convert, "f", value, Typed)
            self.assertEqual(str(error), f"f: {words}")
        self.assertEqual(
            str(self.assertRaises(ConfigurationError, convert, "f", [], Typed)),
            "f: must be a table of named values, not a list",
        )

    def test_the_end_of_a_file_has_a_line(self) -> None:
        error = self.assertRaises(ConfigurationError, parse_toml, "f", "a = 1\nb")
        self.assertRegex(str(error), r"\Af:2: not TOML: Expected .*[^)]\Z")

    def test_a_name_with_a_value_and_a_table_is_explained(self) -> None:
        for text in ("a = 1\na = 2", "[r]\na = true\n[r.a]\nb = 1"):
            error = self.assertRaises(ConfigurationError, parse_toml, "f", text)
            self.assertIn(": not TOML: a name here has a value above already: write one value, or one", str(error))

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

    def test_lines_of_json(self) -> None:
        text = (
            '{"name": "x",\n "table": {\n  "one": {"count": 1},\n  "two": {\n "count": 0}},\n "many": [{},\n{"x": 1}]}'
        )
        for value, line, field in (
            ({"table": {"two": {"count": 0}}}, 5, "table.two.count"),
            ({"many": [{}, {"x": 1}]}, 7, "many[1].x"),
            ({"inner": {"count": 0}}, None, "inner.count"),
        ):
            error = self.assertRaises(ConfigurationError, convert, "f.json", value, Outer, text)
            self.assertEqual((error.line, error.field), (line, field))
        error = self.assertRaises(ConfigurationError, parse_json, "f.json", b'{"a": 1,\n"b" 2}')
        self.assertEqual(str(error), "f.json:2: not JSON: Expecting ':' delimiter")

    def test_an_enumeration_names_its_values(self) -> None:
        for text in ("kind = 'c'", "kinds = ['c']", "named.x = 'c'"):
            error = self.assertRaises(
                ConfigurationError, convert, "f.toml", parse_toml("f.toml", text), Enumerated, text
            )
            self.assertIn('must be one of "a", "b"', str(error))

    def test_broken_files(self) -> None:
        error = self.assertRaises(ConfigurationError, parse_toml, "f.toml", "a = 1\nb = = 2\n")
        self.assertEqual((error.line, error.exit_status), (2, 78))
        for data in (b"{", b"\xff", b'"\\ud800"', b"[" * 5000, b""):
            self.assertRaises(ConfigurationError, parse_json, "f.json", data)

    def test_comments_may_have_the_same_key(self) -> None:
        for key in ("_comment", "//", "#"):
            self.assertEqual(list(parse_json("f", f'{{"{key}": "a", "b": 1, "{key}": "c"}}')), [key, "b"])
        for text in ('{"_comment": {}, "_comment": "c"}', '{"_comment": "a", "b": 1, "_comment": "c", "b": 2}'):
            with self.assertRaisesRegex(ConfigurationError, "occurs twice"):
                parse_json("f", text)

    def test_a_key_that_stands_twice_in_json_is_named(self) -> None:
        for data in (b'{"then": 1, "then": 1}', b'[{"a": {"then": 1, "b": 2, "the\\u006e": {}}}]'):
            with self.assertRaisesRegex(ConfigurationError, 'f.json:1: "then" occurs twice in one object'):
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

    @given(VALUES)
    def test_every_place_of_json_has_a_line(self, value: Any) -> None:
        text = json.dumps(value, indent=0)
        places = [place for _, place in json_places(text)]
        self.assertEqual(places, list(members(value)))

    @given(st.text("{a.=[]'\"\n #{}1", max_size=40), st.lists(KEYS, max_size=3))
    def test_a_line_is_one_of_the_text(self, text: str, path: list[str]) -> None:
        line = line_of(text, path)
        self.assertTrue(line is None or 1 <= line <= len(text.splitlines()))
