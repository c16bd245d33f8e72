"""Arguments held against schemas."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.policy.annotations import Condition
from ironcurtain.policy.arguments import DEPTH_LIMIT, problem
from ironcurtain.policy.scalars import equal, fold, truthy
from tests.examples import examples


def fits(value: Any, schema: Any) -> bool:
    """:returns: whether a value fits a schema, as an argument named ``a``."""
    return problem({"a": value}, {"type": "object", "properties": {"a": schema}}) is None


class TypeTests(SynchronousTestCase):
    """Types, and what combines them."""

    def test_types_are_exact(self) -> None:
        values: list[Any] = ["x", 1, 1.0, 1.5, True, None, [], {}]
        fitting: dict[str, list[Any]] = {
            "string": ["x"],
            "integer": [1, 1.0],
            "number": [1, 1.0, 1.5],
            "boolean": [True],
            "null": [None],
            "array": [[]],
            "object": [{}],
            "unheard-of": [],
        }
        for name, expected in fitting.items():
            found = [value for value in values if fits(value, {"type": name})]
            self.assertEqual(list(map(repr, found)), list(map(repr, expected)), name)
        self.assertTrue(fits(None, {"type": ["string", "null"]}) and not fits(1, {"type": ["string", "null"]}))

    def test_values(self) -> None:
        self.assertTrue(fits(1.0, {"enum": [1]}) and not fits(True, {"enum": [1]}) and not fits("1", {"enum": [1]}))
        self.assertTrue(fits([{"x": 1}], {"const": [{"x": 1}]}) and not fits([{"x": True}], {"const": [{"x": 1}]}))

    def test_combinations(self) -> None:
        text, number = {"type": "string"}, {"type": "number"}
        self.assertTrue(fits("x", {"anyOf": [text, number]}) and not fits([], {"anyOf": [text, number]}))
        self.assertTrue(fits(1.5, {"oneOf": [number, {"type": "integer"}]}))
        self.assertFalse(fits(1, {"oneOf": [number, {"type": "integer"}]}))
        self.assertFalse(fits("x", {"allOf": [text, number]}) or fits("x", {"not": text}) or fits("x", False))

    def test_what_is_inside(self) -> None:
        self.assertFalse(fits(["x", 1], {"items": {"type": "string"}}))
        self.assertFalse(fits([1, "x"], {"prefixItems": [{"type": "string"}]}))
        inner = {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}
        self.assertTrue(fits({"x": "", "y": 1}, inner) and not fits({"x": 1}, inner) and not fits({}, inner))
        self.assertFalse(fits({"x": "", "y": 1}, {**inner, "additionalProperties": False}))

    def test_references(self) -> None:
        schema = {"$defs": {"p": {"type": "string"}}, "properties": {"a": {"$ref": "#/$defs/p"}}}
        self.assertIsNone(problem({"a": "x"}, schema))
        self.assertIsNotNone(problem({"a": 1}, schema))
        for reference in ("#/$defs/q", "https://a.test/", 1):
            self.assertIsNotNone(problem({"a": 1}, {"properties": {"a": {"$ref": reference}}}))
        self.assertIsNotNone(problem({"a": 1}, {"properties": {"a": {"$ref": "#/properties/a"}}}))


class NameTests(SynchronousTestCase):
    """Which arguments there may be."""

    def test_a_silent_schema_forbids_others(self) -> None:
        named: dict[str, Any] = {"properties": {"a": {}}}
        self.assertIsNotNone(problem({"b": 1}, named))
        self.assertIsNotNone(problem({"b": 1}, {**named, "additionalProperties": False}))
        self.assertIsNotNone(problem({"b": 1}, {"type": "object"}))
        self.assertIsNone(problem({"b": 1}, {**named, "additionalProperties": True}))
        self.assertIsNone(problem({"b": 1}, {**named, "additionalProperties": {"type": "integer"}}))
        self.assertIsNotNone(problem({"b": "x"}, {**named, "additionalProperties": {"type": "integer"}}))

    def test_what_is_required(self) -> None:
        schema = {"properties": {"a": {}, "b": {}}, "required": ["a"]}
        self.assertIsNotNone(problem({"b": 1}, schema))
        self.assertIsNone(problem({"a": None}, schema))

    def test_a_schema_cannot_cost_much(self) -> None:
        node: dict[str, Any] = {"type": "integer"}
        for _ in range(40):
            node = {"anyOf": [node, node]}
        self.assertIsNotNone(problem({"a": "x"}, {"properties": {"a": node}}))

    @given(st.lists(st.booleans(), min_size=1, max_size=400))
    def test_arguments_are_nested_to_a_limit_whatever_the_schema_permits(self, lists: list[bool]) -> None:
        value: Any = "x"
        for is_list in lists:
            value = ["x", value] if is_list else {"b": 1, "a": value}
        found = problem({"a": value}, {"properties": {"a": True}})
        self.assertEqual(found, None if len(lists) < DEPTH_LIMIT else "the arguments are nested too deeply")

    @settings(max_examples=examples(200), deadline=None, database=None)
    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.sampled_from(["type", "properties", "items", "enum", "anyOf", "$ref", "a"]), inner)
            ),
            max_leaves=12,
        )
    )
    def test_any_schema_has_an_answer(self, schema: Any) -> None:
        self.assertIsInstance(problem({"a": [1, {"a": "x"}]}, schema), str | None)


class ScalarTests(SynchronousTestCase):
    """Comparing JSON values."""

    def test_equal(self) -> None:
        same: list[Any] = [(1, 1.0), (0, -0.0), ("a", "a"), (None, None), ([1], [1.0]), (False, False)]
        for left, right in same:
            self.assertTrue(equal(left, right), (left, right))
        other: list[Any] = [(1, True), (0, False), ("1", 1), (None, False), ("", None), ([0], [False]), ({}, [])]
        for left, right in other:
            self.assertFalse(equal(left, right), (left, right))

    def test_truthy(self) -> None:
        false: list[Any] = [None, False, 0, 0.0, "", float("nan")]
        true: list[Any] = [True, 1, "0", "false", [], {}]
        self.assertEqual([truthy(value) for value in false + true], [False] * 6 + [True] * 6)

    def test_only_ascii_letters_fold(self) -> None:
        self.assertEqual(fold("AbC"), "abc")
        self.assertEqual(fold("\u212aÉX"), "\u212aÉx")

    def test_a_condition_is_one_condition(self) -> None:
        self.assertRaises(ValueError, Condition, "a")
        self.assertRaises(ValueError, Condition, "a", equals=1, state="present")
