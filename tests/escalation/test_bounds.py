"""What an argument may be where an approval is kept: only what the schema bounds, however it writes a choice."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.escalation.bounds import bounds
from ironcurtain.policy.arguments import problem
from ironcurtain.text.display import one_line
from tests.escalation.test_permission import scope, sure
from tests.text.visible import invisible

CHOICES: tuple[dict[str, Any], ...] = (
    {"enum": ["soft", "hard"]},
    {"type": "string", "enum": ["soft", "hard"]},
    {"$ref": "#/$defs/Mode"},
    {"$ref": "#/$defs/Again"},
    {"$ref": "#/definitions/Mode"},
    {"$ref": "#/properties/other"},
    {"anyOf": [{"const": "soft"}, {"const": "hard"}]},
    {"oneOf": [{"const": "soft", "title": "S"}, {"const": "hard", "title": "H"}]},
    {"anyOf": [{"type": "string", "enum": ["soft", "hard"]}, {"type": "null"}]},
    {"anyOf": [{"$ref": "#/$defs/Mode"}, {"type": "null"}], "default": None},
    {"allOf": [{"$ref": "#/$defs/Mode"}], "default": "soft"},
    {"allOf": [{"type": "string"}, {"enum": ["soft", "hard"]}]},
    {"type": "string", "anyOf": [{"const": "soft"}, {"const": "hard"}]},
    {"type": "string", "pattern": "^(soft|hard)$"},
    {"type": "string", "not": {"not": {"enum": ["soft", "hard"]}}},
    {"type": "string", "if": {"const": "soft"}, "else": {"const": "hard"}},
    {"type": "string", "x-choices": ["soft", "hard"]},
    {"type": ["string", "boolean"]},
    {"anyOf": [{"type": "string"}, {"type": "boolean"}]},
    {"$ref": "#/$defs/Round"},
    {"$ref": "https://example.org/mode.json"},
    {"$ref": 7},
    {"type": "string", "maxLength": 3},
    {},
    {"type": 7},
)
"""Ways to say that there is more to an argument than free text."""

DEFINITIONS: dict[str, Any] = {
    "$defs": {
        "Mode": {"type": "string", "enum": ["soft", "hard"]},
        "Again": {"$ref": "#/$defs/Mode"},
        "Round": {"$ref": "#/$defs/Round"},
    },
    "definitions": {"Mode": {"const": "soft"}},
}

EDITS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"oldText": {"type": "string"}, "newText": {"$ref": "#/$defs/Text"}},
        "required": ["oldText", "newText"],
    },
}

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab\n"), inner, max_size=2),
    max_leaves=4,
)

SCHEMAS: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from(
        [
            {"type": "string"}, {"type": "string", "maxLength": 3}, {"type": "integer", "minimum": 0, "maximum": 5},
            {"type": "number", "minimum": -1, "maximum": 2.5}, {"type": "integer"}, {"type": ["string", "null"]},
            {"$ref": "#/$defs/Mode"}, {"type": "boolean"}, {}, True, None, [], 3,
        ]
    ),
    lambda inner: st.one_of(
        inner.map(lambda items: {"type": "array", "items": items}),
        st.dictionaries(st.sampled_from("ab\n"), inner, max_size=2).map(lambda p: {"type": "object", "properties": p}),
        st.lists(inner, max_size=2).map(lambda forms: {"anyOf": forms}),
    ),
    max_leaves=4,
)  # fmt: skip


def schema(**properties: Any) -> dict[str, Any]:
    """:returns: the schema of a tool's arguments."""
    return {"type": "object", "properties": properties, **DEFINITIONS}


def of(value: Any, known: Any) -> str | None:
    """:returns: the bound of a value under its schema."""
    whole = {**schema(it=known), "$defs": {**DEFINITIONS["$defs"], "Text": {"type": "string"}}}
    return bounds({"it": value}, whole).get("it")


class ChoiceTests(SynchronousTestCase):
    """Whatever may be a choice keeps the value that was shown."""

    def test_each_way_to_write_one(self) -> None:
        for known in CHOICES:
            whole = schema(mode=known, other={"enum": ["soft", "hard"]})
            kept = sure(scope(tool="reset", schema=whole, arguments={"mode": "soft"}))
            self.assertEqual(kept.words, 'every call of filesystem.reset with mode="soft"', known)
            self.assertTrue(kept.covers(sure(scope(tool="reset", schema=whole, arguments={"mode": "soft"}))))
            for other in ("hard", None, True, ["soft"]):
                new = sure(scope(tool="reset", schema=whole, arguments={"mode": other}))
                self.assertFalse(kept.covers(new), (known, other))
            self.assertFalse(kept.covers(sure(scope(tool="reset", schema=whole, arguments={}))), known)

    def test_what_is_said_of_all_arguments_together(self) -> None:
        extra: tuple[dict[str, Any], ...] = (
            {"anyOf": [{"properties": {"mode": {"const": "soft"}}}]},
            {"if": {}},
            {"$ref": "#/$defs/Mode"},
        )
        for more in extra:
            whole = {**schema(mode={"type": "string"}), **more}
            self.assertEqual(bounds({"mode": "soft"}, whole), {}, more)

    def test_an_argument_that_the_schema_does_not_name(self) -> None:
        kept = sure(scope(tool="reset", schema=schema(), arguments={"mode": "soft"}))
        self.assertFalse(kept.covers(sure(scope(tool="reset", schema=schema(), arguments={"mode": "hard"}))))

    def test_an_argument_more_is_asked_about(self) -> None:
        whole = schema(note={"type": "string"})
        kept = sure(scope(tool="reset", schema=whole, arguments={}))
        self.assertFalse(kept.covers(sure(scope(tool="reset", schema=whole, arguments={"note": "a"}))))

    def test_a_long_value_is_told_by_its_digest(self) -> None:
        kept = sure(scope(tool="put", arguments={"body": "x" * 5000}))
        self.assertRegex(kept.words, r"body=the 5002 characters that were shown \(sha256 [0-9a-f]{64}\)$")
        self.assertTrue(kept.covers(sure(scope(tool="put", arguments={"body": "x" * 5000}))))
        self.assertFalse(kept.covers(sure(scope(tool="put", arguments={"body": "x" * 4999 + "y"}))))

    def test_a_name_cannot_look_like_more(self) -> None:
        kept = sure(scope(tool="put", arguments={"force=false, note: any text": 1}))
        self.assertEqual(kept.words, 'every call of filesystem.put with "force=false, note: any text"=1')


class BoundTests(SynchronousTestCase):
    """What may differ, and how it is said."""

    def test_in_words(self) -> None:
        for value, known, words in (
            ("a", {"type": "string", "title": "Note", "default": ""}, "any text"),
            ("a", {"type": "string", "maxLength": 3}, "any text of at most 3 characters"),
            ("a", {"type": ["string", "null"]}, "any text"),
            ("a", {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}, "any text"),
            ("a", {"$ref": "#/$defs/Text"}, "any text"),
            (3, {"type": "integer", "minimum": 1, "maximum": 9}, "a whole number from 1 to 9"),
            (0.5, {"type": "number", "minimum": 0, "maximum": 1}, "a number from 0 to 1"),
            (["a", "b"], {"type": "array", "items": {"type": "string"}}, "a list of: any text"),
            ([{"oldText": "a", "newText": "b"}], EDITS, "a list of: {newText: any text, oldText: any text}"),
        ):
            self.assertEqual(of(value, known), words, known)

    def test_what_has_no_bound(self) -> None:
        for value, known in (
            (None, {"type": ["string", "null"]}),
            (None, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
            (3, {"type": "integer"}),
            (3, {"type": "integer", "minimum": 1}),
            (10, {"type": "integer", "minimum": 1, "maximum": 9}),
            (True, {"type": "integer", "minimum": 0, "maximum": 9}),
            (True, {"type": "boolean"}),
            ("abcd", {"type": "string", "maxLength": 3}),
            ([], {"type": "array", "items": {"type": "string"}}),
            (["a"], {"type": "array"}),
            ({"a": 1}, {"type": "object"}),
            ([{"oldText": "a", "newText": "b", "all": True}], EDITS),
            (3, {"type": "string"}),
        ):
            self.assertIsNone(of(value, known), known)

    @given(VALUES, VALUES, SCHEMAS)
    def test_what_is_covered_fits_the_schema_and_what_was_said(self, first: Any, second: Any, known: Any) -> None:
        """A kept approval covers the very value, or one that the schema allows in the same words."""
        kept = sure(scope(tool="a", schema=schema(it=known), arguments={"it": first}))
        new = sure(scope(tool="a", schema=schema(it=known), arguments={"it": second}))
        self.assertEqual(kept.covers(new), kept.words == new.words)
        self.assertEqual(invisible(one_line(kept.words)), [])
        if kept.covers(new) and repr(first) != repr(second):
            self.assertIsNone(problem({"it": second}, schema(it=known)), (first, second))
